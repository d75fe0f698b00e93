/** The list that an import takes. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/InvalidInput.ts"
import { owned } from "../base/Own.ts"
import * as EndDate from "./EndDate.ts"
import { type Dated, UserId } from "./Membership.ts"

/** A membership as a host passes it. */
export interface Input {
  readonly userId: string
  readonly endDate: EndDate.Input
}

/** The most memberships of one import. */
export const maxMemberships = 10_000

const invalid = (field: string, problem: string): Result.Result<never, InvalidInput> =>
  Result.fail(new InvalidInput({ field, problem }))

const readOne = (given: Input, field: string): Result.Result<Dated, InvalidInput> => {
  const { endDate: date, userId } = owned(given)
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return invalid(`${field}.userId`, `must be ${UserId.expected}`)
  }
  return Result.mapBoth(EndDate.fromInput(date), {
    onFailure: ({ message }) => new InvalidInput({ field: `${field}.endDate`, problem: message }),
    onSuccess: (endDate) => ({ userId, endDate }),
  })
}

/** Checks and converts the list. Fails at the first membership that is invalid or repeats a user. */
export const read = (
  given: ReadonlyArray<Input>,
): Result.Result<ReadonlyArray<Dated>, InvalidInput> => {
  if (!Array.isArray(given) || given.length > maxMemberships) {
    return invalid("memberships", "must be an array of at most 10,000 memberships")
  }
  const byUser = new Map<UserId, Dated>()
  for (let index = 0; index < given.length; index++) {
    const field = `memberships[${index}]`
    const dated = readOne(given[index], field)
    if (Result.isFailure(dated)) return Result.fail(dated.failure)
    const { userId } = dated.success
    if (byUser.has(userId)) return invalid(`${field}.userId`, "must not be that of another one")
    byUser.set(userId, dated.success)
  }
  return Result.succeed([...byUser.values()])
}
