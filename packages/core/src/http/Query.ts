/** Reads the query parameters of a request. */

import * as Effect from "effect/Effect"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"

const parseLimit = (given: unknown): number | undefined =>
  typeof given === "string" && /^([1-9]\d{0,2}|1000)$/.test(given) ? Number(given) : undefined

/** The parameters of every paged list. */
export const page = {
  // The most items to return.
  limit: Setting.withDefault(
    Setting.make<string, number>("a whole number from 1 to 1,000", parseLimit),
    "100",
  ),
  // The cursor that the page before has as `next`.
  after: Setting.optional(Setting.text("a cursor, as `next` of the page before", () => true)),
}

/** The ticket by which a client follows the feed. Authentication redeems it. */
export const ticket = Setting.optional(Setting.text("a ticket", () => true))

/**
 * Reads query parameters as their definitions say. Fails with `InvalidInput`, which names the
 * parameter, if one is invalid, unknown or repeated.
 */
export const read = <F extends Setting.Fields>(
  { query = "" }: { readonly query?: string | undefined },
  parameters: F,
): Effect.Effect<{ readonly [Name in keyof F]: Setting.Output<F[Name]> }, InvalidInput> => {
  const sent = new URLSearchParams(query)
  const names = [...sent.keys()]
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  return repeated === undefined
    ? Setting.read(Setting.struct(parameters), Object.fromEntries(sent))
    : Effect.fail(new InvalidInput({ field: repeated, problem: "was sent more than once" }))
}
