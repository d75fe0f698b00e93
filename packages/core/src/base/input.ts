/** Decodes arguments of in-process calls. Each function fails with an error that names the field. */

import * as Effect from "effect/Effect"
import { InvalidInput } from "./errors.ts"
import * as Setting from "./setting.ts"
import { type InstantInput, instantFormat, instantHint, readInstant } from "./time.ts"
import { type BrandConstructor, ProjectId } from "./values.ts"

/** Fails because an argument is not what it must be. */
export const invalidArgument = (
  field: string,
  expected: string,
): Effect.Effect<never, InvalidInput> =>
  Effect.fail(new InvalidInput({ field, problem: `must be ${expected}` }))

/** Decodes text by the constructor of a refined type. */
export const readBranded = <A extends string>(
  field: string,
  { expected, is }: BrandConstructor<string, A>,
  text: string,
): Effect.Effect<A, InvalidInput> => {
  if (typeof text !== "string") {
    return invalidArgument(field, `text: ${expected}; received ${Setting.shown(text)}`)
  }
  return is(text) ? Effect.succeed(text) : invalidArgument(field, expected)
}

/**
 * Decodes text that somebody else may have sent. Returns `undefined` for text that cannot be right, as for an id that
 * nobody has. Fails if it is no text, which is a mistake of the host's.
 */
export const readPossible = <A extends string>(
  field: string,
  brand: BrandConstructor<string, A>,
  text: string,
): Effect.Effect<A | undefined, InvalidInput> =>
  typeof text !== "string" || brand.is(text) ? readBranded(field, brand, text) : Effect.undefined

/** Decodes a value as the option of the same definition is read. */
export const readArgument = <I, O>(
  field: string,
  setting: Setting.Setting<I, O>,
  given: NoInfer<I>,
): Effect.Effect<O, InvalidInput> => Effect.fromResult(setting.read(given, field))

/** Decodes the id of a project. */
export const readProjectId = (text: string): Effect.Effect<ProjectId, InvalidInput> =>
  readBranded("projectId", ProjectId, text)

/** Describes an invalid instant. */
export const shownInstant = (given: unknown): string =>
  `${Setting.shown(given)}${instantHint(given)}`

/** An instant, in milliseconds since the epoch. */
export const instantSetting = Setting.custom<InstantInput, number>(
  instantFormat,
  (given) =>
    typeof given === "string" || typeof given === "number" || given instanceof Date
      ? readInstant(given)
      : undefined,
  shownInstant,
)

/** Decodes an instant into milliseconds since the epoch. */
export const readInstantArgument = (
  field: string,
  input: InstantInput,
): Effect.Effect<number, InvalidInput> => readArgument(field, instantSetting, input)

const pageSizes = Setting.integer({ most: 10_000 })

/** Decodes the `limit` of a paged list: 1 to 10,000 items. */
export const readPageSize = (limit: number): Effect.Effect<number, InvalidInput> =>
  readArgument("limit", pageSizes, limit)
