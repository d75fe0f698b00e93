/** The rule of pauses: the end date stands meanwhile, and is later afterwards by the time paused. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { instantSetting } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { EndDate, lastEndDate } from "./end-date.ts"

/** A membership's pause. */
export interface Pause {
  /** When it began, in milliseconds since the epoch. */
  readonly since: number
  /** When it ends by itself, in milliseconds since the epoch; `undefined` if somebody has to end it. */
  readonly until: number | undefined
}

/** Tells whether a pause has ended by itself at an instant, in milliseconds since the epoch. */
export const isOver = ({ until = Infinity }: Pause, at: number): boolean => until <= at

/**
 * Returns a membership's end date after a pause: later by the time paused. What is for life stays so.
 *
 * @param endDate - the end date that stands
 * @param at - when the pause ends, in milliseconds since the epoch
 */
export const endAfterPause = (endDate: EndDate, { since }: Pause, at: number): EndDate =>
  EndDate(Math.min(endDate + Math.max(0, at - since), lastEndDate))

/** A pause as a returned membership has it. */
export interface GivenPause {
  readonly pausedAt?: unknown
  readonly resumesAt?: unknown
}

const instant = Setting.optional(instantSetting)

/**
 * Reads the pause of a membership. Returns `undefined` if both fields are missing.
 *
 * @param names - the fields' names in errors
 */
export const readPause = (
  { pausedAt, resumesAt }: GivenPause,
  names: { readonly pausedAt: string; readonly resumesAt: string },
  source: Setting.Source,
): Result.Result<Pause | undefined, InvalidInput> =>
  Result.gen(function* () {
    if (pausedAt === undefined && resumesAt === undefined) return undefined
    const refuse = (problem: string) =>
      Result.fail(new InvalidInput({ field: names.resumesAt, problem }))
    const since = yield* instant.read(pausedAt, names.pausedAt, source)
    const until = yield* instant.read(resumesAt, names.resumesAt, source)
    if (since === undefined) return yield* refuse(`must be left out without ${names.pausedAt}`)
    if (until !== undefined && until <= since)
      return yield* refuse(`must be after ${names.pausedAt}`)
    return { since, until }
  })
