/** Reads what the bodies of requests say of a change of memberships. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/InvalidInput.ts"
import { own } from "../base/Own.ts"
import * as Setting from "../base/Setting.ts"
import * as Bulk from "../memberships/Bulk.ts"
import * as EndDate from "../memberships/EndDate.ts"
import { Reason } from "../memberships/Reason.ts"
import * as RequestBody from "./RequestBody.ts"

/** What an end date looks like, for error messages. */
export const endDates =
  "a Unix timestamp in milliseconds (13 digits) or text such as 2027-01-01T00:00:00.000Z"

const endDate = Setting.make<EndDate.EndDate>(endDates, EndDate.parse)

const reason = Setting.make<Reason>(Reason.expected, (given) =>
  typeof given === "string" && Reason.is(given) ? given : undefined,
)

// A client that sends it hopes for a protection that it would not get.
const absent = Setting.make<never>("left out: it is for one membership", () => undefined)

const read = <O>(
  body: RequestBody.JsonObject,
  name: string,
  setting: Setting.Setting<unknown, O>,
): Result.Result<O, InvalidInput> => setting.read(own(body, name), name)

const modeOf = (given: unknown): Bulk.Mode | undefined =>
  Bulk.modes.find((mode) => Bulk.modeNames[mode] === given)

const optional = {
  mode: Setting.optional(
    Setting.make<Bulk.Mode>(
      `one of ${Object.values(Bulk.modeNames)
        .map((name) => `"${name}"`)
        .join(", ")}`,
      modeOf,
    ),
  ),
  expectedEndDate: Setting.optional(endDate),
  noExpectedEndDate: Setting.optional(absent),
  dryRun: Setting.optional(Setting.flag),
  reason: Setting.optional(reason),
}

// Whoever sends another field, such as `dry_run`, hopes for a protection that a grant does not have.
const grantBody = Setting.struct({ end_date: endDate, reason: optional.reason })

/** What a grant says, and nothing else. */
export const grant = (body: RequestBody.JsonObject) =>
  Result.map(grantBody.read(body, ""), ({ end_date: date, reason: why }) => ({
    endDate: date,
    reason: why,
  }))

/** The names of the fields besides the date. */
const names = ["expected_end_date", "dry_run", "reason", "mode"]

/** The body of an extension. */
export const format = RequestBody.objectWith("extend", ...names)

/** What most extensions say besides the date. */
const nothing = {
  expectedEndDate: undefined,
  dryRun: undefined,
  reason: undefined,
  mode: undefined,
}

/** The letters and digits of a field's name. */
const lettersOf = (name: string): string => name.replaceAll(/[^\p{L}\p{N}]/gu, "").toLowerCase()

const rightNames = new Map(
  [
    ...names.map((name) => [name, name] as const),
    [Bulk.modeNames.neverShorten, `mode": "${Bulk.modeNames.neverShorten}`] as const,
  ].map(([name, right]) => [lettersOf(name), right]),
)

/**
 * Refuses fields that are known by another spelling, such as `dryRun`: the client hopes for a protection that it
 * would not get. The contract knows only `extend`, so that all other fields are ignored.
 */
const refuseMisspelled = (body: RequestBody.JsonObject): Result.Result<void, InvalidInput> => {
  for (const name of Object.keys(body)) {
    const right = names.includes(name) ? undefined : rightNames.get(lettersOf(name))
    if (right !== undefined) {
      return Result.fail(new InvalidInput({ field: name, problem: `must be written "${right}"` }))
    }
  }
  return Result.void
}

/** Reads the end date of an extension, in either of its two formats. */
const extendOf = (body: RequestBody.JsonObject) =>
  Result.flatMap(EndDate.decode(own(body, "extend")), (date) =>
    Result.map(refuseMisspelled(body), () => date),
  )

/** What an extension of one membership says. */
export const extension = (body: RequestBody.JsonObject) =>
  names.some((name) => Object.hasOwn(body, name))
    ? Result.all({
        endDate: extendOf(body),
        expectedEndDate: read(body, "expected_end_date", optional.expectedEndDate),
        dryRun: read(body, "dry_run", optional.dryRun),
        reason: read(body, "reason", optional.reason),
        mode: read(body, "mode", optional.mode),
      })
    : Result.map(extendOf(body), (date) => ({ endDate: date, ...nothing }))

/** What an extension of all memberships says. */
export const bulkExtension = (body: RequestBody.JsonObject) =>
  Result.all({
    endDate: extendOf(body),
    expectedEndDate: read(body, "expected_end_date", optional.noExpectedEndDate),
    dryRun: read(body, "dry_run", optional.dryRun),
    reason: read(body, "reason", optional.reason),
    mode: read(body, "mode", optional.mode),
  })
