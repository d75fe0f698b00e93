/** Reads and performs an import. Its body has a membership on each line. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { InvalidLines, LineFault } from "../api/errors.ts"
import type { ImportPreview } from "../api/membership-replies.ts"
import { membershipOperations } from "../api/memberships.ts"
import { InvalidInput } from "../base/errors.ts"
import { endDateHint, requestInstantFormat } from "../base/input.ts"
import { faultOfJson } from "../base/json-text.ts"
import * as Setting from "../base/setting.ts"
import { currentUnixMillis } from "../base/time.ts"
import { getOwn } from "../base/values.ts"
import { Day, keptDaySetting, timeZoneSetting } from "../memberships/calendar.ts"
import { lastEndDate, parseEndDate } from "../memberships/end-date.ts"
import { MembershipActs } from "../memberships/membership-acts.ts"
import { type ImportedMembership, UserId, maxMemberships } from "../memberships/membership.ts"
import { metadataSetting } from "../memberships/metadata.ts"
import { readPause } from "../memberships/pause.ts"
import { jsonLines, parseJson } from "./body.ts"
import { announcementsData, dryRunMessage, eventsData } from "./extensions.ts"
import { type Call, makeReader, originOf, readBody } from "./operation.ts"

const { import: declared } = membershipOperations
const { maxBodyBytes, reply } = declared
const read = makeReader(declared, declared.input, maxBodyBytes)

// Enough to see the problems in all lines.
const maxFaults = 100

// About a millisecond.
const linesPerTurn = 1000

const fields = new Set([
  "user_id",
  "end_date",
  "through",
  "time_zone",
  "kept_day",
  "metadata",
  "paused_at",
  "resumes_at",
])

const pauseNames = { pausedAt: "paused_at", resumesAt: "resumes_at" }

const metadataOfLine = Setting.optional(metadataSetting)

const zoneOfLine = Setting.optional(timeZoneSetting)

const keptDayOfLine = Setting.optional(keptDaySetting)

/** Reads when a membership ends. Returns a problem in place of that if it is invalid. */
const readDate = (date: unknown, through: unknown, timeZone: unknown) => {
  if (through === undefined) {
    if (timeZone !== undefined) return "time_zone must be left out without through"
    const endDate = date === null ? lastEndDate : parseEndDate(date)
    return endDate === undefined
      ? `end_date must be ${requestInstantFormat}, or null for life${endDateHint(date)}`
      : { endDate }
  }
  if (date !== undefined) return "end_date must be left out beside through"
  if (typeof through !== "string" || !Day.is(through)) return `through must be ${Day.expected}`
  const zone = zoneOfLine.read(timeZone, "time_zone")
  return Result.isFailure(zone) ? zone.failure.message : { through, timeZone: zone.success }
}

/** Reads a JSON line. Returns a problem in place of a membership if it is invalid. */
const readJsonLine = (line: string): ImportedMembership | string => {
  const value = parseJson(line)
  if (!Predicate.isObject(value)) return "the line must be a JSON object"
  if (!Object.keys(value).every((field) => fields.has(field))) {
    return "the line must have no fields but user_id, end_date or through, time_zone, kept_day, metadata, paused_at and resumes_at"
  }
  const fault = faultOfJson(line)
  if (fault !== undefined) return fault.message
  const userId = getOwn(value, "user_id")
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return `user_id must be ${UserId.expected}, as text`
  }
  const dated = readDate(
    getOwn(value, "end_date"),
    getOwn(value, "through"),
    getOwn(value, "time_zone"),
  )
  if (typeof dated === "string") return dated
  const keptDay = keptDayOfLine.read(getOwn(value, "kept_day"), "kept_day")
  if (Result.isFailure(keptDay)) return keptDay.failure.message
  const metadata = metadataOfLine.read(getOwn(value, "metadata"), "metadata")
  if (Result.isFailure(metadata)) return metadata.failure.message
  const given = { pausedAt: getOwn(value, "paused_at"), resumesAt: getOwn(value, "resumes_at") }
  const pause = readPause(given, pauseNames, "json")
  return Result.isFailure(pause)
    ? pause.failure.message
    : {
        userId,
        ...dated,
        keptDay: keptDay.success,
        metadata: metadata.success,
        pause: pause.success,
      }
}

// Programs print nearly all lines like this. The text has no JSON escapes, no number, and each field
// once.
const plainLine = /^\{"user_id": ?"([\w.:@+-]+)", ?"end_date": ?"([\dTZ:.-]+)"\}$/

/** Reads a line, without parsing JSON if unnecessary. Same result as `readJsonLine`. */
const readLine = (line: string): ImportedMembership | string => {
  const [, userId = "", date] = plainLine.exec(line) ?? []
  const endDate = parseEndDate(date)
  return UserId.is(userId) && endDate !== undefined
    ? { userId, endDate, metadata: undefined }
    : readJsonLine(line)
}

/** Splits text into lines, one more than there may be. White space at the end is no line. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.trimEnd().split("\n", maxMemberships + 1)

// The act knows which user ids are valid, and what time it is.
const nameInLine = new Map([
  ["userId", "user_id"],
  ["pausedAt", "paused_at"],
])

/** Returns the problem with a field in the membership's line. */
const inLine = (error: InvalidInput): InvalidInput | InvalidLines => {
  const [, index, name = ""] = /^memberships\[(\d+)\]\.(\w+)$/.exec(error.field) ?? []
  if (error.field === "timeZone") {
    return new InvalidInput({ field: "time_zone", problem: error.problem })
  }
  return index === undefined
    ? error
    : {
        _tag: "InvalidLines",
        faults: [
          { line: Number(index) + 1, message: `${nameInLine.get(name) ?? name} ${error.problem}` },
        ],
      }
}

const fail = (...faults: InvalidLines["faults"]): Effect.Effect<never, InvalidLines> =>
  Effect.fail({ _tag: "InvalidLines", faults })

/**
 * Reads the memberships, in turns with the process's other work. Fails with the problems in the lines,
 * or with the first hundred.
 */
const readImportBody = Effect.fnUntraced(function* (body: string) {
  const lines = linesOf(body)
  if (lines.length > maxMemberships) {
    return yield* fail({ line: lines.length, message: "an import must have at most 10,000 lines" })
  }
  const memberships: Array<ImportedMembership> = []
  const lineByUser = new Map<string, number>()
  const faults: Array<LineFault> = []
  for (const [index, text] of lines.entries()) {
    if (index % linesPerTurn === 0) yield* Effect.yieldNow
    const line = index + 1
    const membership = readLine(text)
    if (typeof membership === "string") faults.push({ line, message: membership })
    else {
      const earlier = lineByUser.get(membership.userId)
      if (earlier !== undefined) {
        faults.push({ line, message: `user_id must not be that of line ${earlier}` })
      }
      lineByUser.set(membership.userId, earlier ?? line)
      memberships.push(membership)
    }
    if (faults.length === maxFaults) break
  }
  const [first, ...others] = faults
  return first === undefined ? memberships : yield* fail(first, ...others)
})

/** Makes the operation. */
export const makeImport = Effect.gen(function* () {
  const acts = yield* MembershipActs

  return Effect.fnUntraced(function* (call: Call) {
    const { dryRun, events, projectId } = yield* read(call)
    const memberships = yield* readImportBody(yield* readBody(call, maxBodyBytes, jsonLines))
    const context = {
      origin: originOf(call),
      at: yield* currentUnixMillis,
      idempotency: call.idempotency,
    }
    const given = { projectId, memberships, dryRun, events, reason: undefined }
    const imported = yield* Effect.mapError(acts.import(given, context), (error) =>
      error._tag === "InvalidInput" ? inLine(error) : error,
    )
    const { wouldGrant, wouldShorten, wouldStay } = imported
    const data: ImportPreview | null =
      wouldGrant === undefined || wouldShorten === undefined || wouldStay === undefined
        ? null
        : {
            would_grant: wouldGrant,
            would_shorten: wouldShorten,
            would_stay: wouldStay,
            ...announcementsData(imported.announcements),
            ...eventsData(imported.events),
          }
    return { total: imported.total, message: dryRun ? dryRunMessage : reply.message, data }
  })
})
