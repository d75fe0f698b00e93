/** Reads what the bodies of requests say of a change of memberships. */

import * as Result from "effect/Result"
import type { InvalidInput } from "../base/InvalidInput.ts"
import { own } from "../base/Own.ts"
import * as Setting from "../base/Setting.ts"
import * as Bulk from "../memberships/Bulk.ts"
import * as EndDate from "../memberships/EndDate.ts"
import { Reason } from "../memberships/Reason.ts"
import type { JsonObject } from "./RequestBody.ts"

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
  body: JsonObject,
  name: string,
  setting: Setting.Setting<unknown, O>,
): Result.Result<O, InvalidInput> => setting.read(own(body, name), name)

/** Reads the end date of an extension, in either of its two formats. */
const extendOf = (body: JsonObject) => EndDate.decode(own(body, "extend"))

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
export const grant = (body: JsonObject) =>
  Result.map(grantBody.read(body, ""), ({ end_date: date, reason: why }) => ({
    endDate: date,
    reason: why,
  }))

const names = ["expected_end_date", "dry_run", "reason"]

/** What most extensions say besides the date. */
const nothing = { expectedEndDate: undefined, dryRun: undefined, reason: undefined }

/** What an extension of one membership says. */
export const extension = (body: JsonObject) =>
  names.some((name) => Object.hasOwn(body, name))
    ? Result.all({
        endDate: extendOf(body),
        expectedEndDate: read(body, "expected_end_date", optional.expectedEndDate),
        dryRun: read(body, "dry_run", optional.dryRun),
        reason: read(body, "reason", optional.reason),
      })
    : Result.map(extendOf(body), (date) => ({ endDate: date, ...nothing }))

/** What an extension of all memberships says. */
export const bulkExtension = (body: JsonObject) =>
  Result.all({
    endDate: extendOf(body),
    expectedEndDate: read(body, "expected_end_date", optional.noExpectedEndDate),
    dryRun: read(body, "dry_run", optional.dryRun),
    reason: read(body, "reason", optional.reason),
    mode: read(body, "mode", optional.mode),
  })
