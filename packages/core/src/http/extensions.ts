/** The operations that extend memberships, and what their bodies say. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { requestInstantFormat, shownInstant } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput, toInstantInput } from "../base/time.ts"
import { getOwn } from "../base/values.ts"
import { EventId } from "../events/event.ts"
import { type BulkExtensionRecord, type BulkPreview } from "../memberships/bulk-extension.ts"
import type { EventsPreview } from "../memberships/dry-run.ts"
import {
  DurationText,
  fixedDurationFormat,
  fixedMillis,
  formatDuration,
} from "../memberships/duration.ts"
import {
  type BulkMode,
  type EndDate,
  type InvalidEndDate,
  bulkModeNames,
  bulkModes,
  decodeEndDate,
  formatEndDate,
  parseEndDate,
  bulkChangeNames,
} from "../memberships/end-date.ts"
import type { EndCounts } from "../memberships/ends.ts"
import {
  type ByDuration,
  type ExtensionResult,
  type ToDate,
  durationStarts,
} from "../memberships/extensions.ts"
import { Reason } from "../memberships/membership.ts"
import { Memberships } from "../memberships/memberships.ts"
import type { ApiError } from "./errors.ts"
import {
  type Call,
  type JsonObject,
  type Operations,
  bodyOf,
  decodePathParam,
  isoOrNull,
  objectWith,
  optionalObject,
  originOf,
  pageQuery,
  parseJson,
  projectOf,
  readField,
  readQuery,
} from "./operation.ts"
import { pageReply } from "./response.ts"

/** Reads an instant that a client sends. Services take it as hosts pass it. */
export const parseJsonInstant = (json: unknown): InstantInput | undefined => {
  const millis = parseEndDate(json)
  return millis === undefined ? undefined : toInstantInput(millis)
}

export const endDateField = Setting.custom<number | string, InstantInput>(
  requestInstantFormat,
  parseJsonInstant,
  shownInstant,
)

export const reasonField = Setting.custom<Reason>(Reason.expected, (given) =>
  typeof given === "string" && Reason.is(given) ? given : undefined,
)

// A client that sends it hopes for a protection that it would not get.
const absent = Setting.custom<never>("left out: it is for one membership", () => undefined)

const modeOf = (given: unknown): BulkMode | undefined =>
  bulkModes.find((mode) => bulkModeNames[mode] === given)

const optional = {
  mode: Setting.optional(
    Setting.custom<BulkMode>(
      `one of ${Object.values(bulkModeNames)
        .map((name) => `"${name}"`)
        .join(", ")}`,
      modeOf,
    ),
  ),
  expectedEndDate: Setting.optional(endDateField),
  noExpectedEndDate: Setting.optional(absent),
  dryRun: Setting.optional(Setting.boolean),
  events: Setting.optional(Setting.boolean),
  reason: Setting.optional(reasonField),
}

const durationOf = (given: unknown): DurationText | undefined =>
  typeof given === "string" && DurationText.is(given) ? given : undefined

const fixedDurationOf = (given: unknown): DurationText | undefined => {
  const duration = durationOf(given)
  return duration !== undefined && fixedMillis(duration) !== undefined ? duration : undefined
}

// Fields of extensions to a date, and fields of extensions of one membership.
const noDate = Setting.optional(Setting.custom<never>("left out beside extend_by", () => undefined))

const byDuration = {
  extendBy: Setting.custom<DurationText>(DurationText.expected, durationOf),
  extendAllBy: Setting.custom<DurationText>(fixedDurationFormat, fixedDurationOf),
  from: Setting.optional(Setting.oneOf(durationStarts)),
  noFrom: Setting.optional(absent),
}

/** The names of the fields besides the date. */
const names = ["extend_by", "from", "expected_end_date", "dry_run", "events", "reason", "mode"]

/** The body of an extension. */
const format = objectWith("extend", ...names)

/** What most extensions say besides the date. */
const nothing = {
  expectedEndDate: undefined,
  dryRun: undefined,
  events: undefined,
  reason: undefined,
  mode: undefined,
}

/** The letters and digits of a field's name. */
const lettersOf = (name: string): string => name.replaceAll(/[^\p{L}\p{N}]/gu, "").toLowerCase()

const rightNames = new Map(
  [
    // A word of a single part can only be written in one way.
    ...names.filter((name) => name !== "from").map((name) => [name, name] as const),
    [bulkModeNames.neverShorten, `mode": "${bulkModeNames.neverShorten}`] as const,
  ].map(([name, right]) => [lettersOf(name), right]),
)

/**
 * Refuses fields that are known by another spelling, such as `dryRun`: the client hopes for a protection that it
 * would not get. The contract knows only `extend`, so that all other fields are ignored.
 */
const refuseMisspelled = (body: JsonObject): Result.Result<void, InvalidInput> => {
  for (const name of Object.keys(body)) {
    const right = names.includes(name) ? undefined : rightNames.get(lettersOf(name))
    if (right !== undefined) {
      return Result.fail(new InvalidInput({ field: name, problem: `must be written "${right}"` }))
    }
  }
  return Result.void
}

/** Reads the end date of an extension, in either of its two formats. */
const extendOf = (body: JsonObject) =>
  Result.flatMap(decodeEndDate(getOwn(body, "extend")), (date) =>
    Result.map(refuseMisspelled(body), () => toInstantInput(date)),
  )

/** What both extensions by a duration say. */
const readByDuration = (body: JsonObject, extendBy: Setting.Setting<unknown, DurationText>) =>
  Result.flatMap(refuseMisspelled(body), () =>
    Result.all({
      by: readField(body, "extend_by", extendBy),
      noExtend: readField(body, "extend", noDate),
      noMode: readField(body, "mode", noDate),
      dryRun: readField(body, "dry_run", optional.dryRun),
      events: readField(body, "events", optional.events),
      reason: readField(body, "reason", optional.reason),
    }),
  )

const readOneByDuration = (body: JsonObject) =>
  Result.map(
    Result.all({
      goal: readByDuration(body, byDuration.extendBy),
      from: readField(body, "from", byDuration.from),
      expectedEndDate: readField(body, "expected_end_date", optional.expectedEndDate),
    }),
    ({ expectedEndDate, from, goal: { by, dryRun, events, reason } }) => ({
      by,
      from,
      expectedEndDate,
      dryRun,
      events,
      reason,
    }),
  )

const readOneToDate = (body: JsonObject) =>
  names.some((name) => Object.hasOwn(body, name))
    ? Result.all({
        endDate: extendOf(body),
        expectedEndDate: readField(body, "expected_end_date", optional.expectedEndDate),
        dryRun: readField(body, "dry_run", optional.dryRun),
        events: readField(body, "events", optional.events),
        reason: readField(body, "reason", optional.reason),
        mode: readField(body, "mode", optional.mode),
      })
    : Result.map(extendOf(body), (endDate) => ({ endDate, ...nothing }))

const readAllByDuration = (body: JsonObject) =>
  Result.map(
    Result.all({
      goal: readByDuration(body, byDuration.extendAllBy),
      noFrom: readField(body, "from", byDuration.noFrom),
      noExpectedEndDate: readField(body, "expected_end_date", optional.noExpectedEndDate),
    }),
    ({ goal: { by, dryRun, events, reason } }) => ({ by, dryRun, events, reason }),
  )

const readAllToDate = (body: JsonObject) =>
  Result.map(
    Result.all({
      endDate: extendOf(body),
      expectedEndDate: readField(body, "expected_end_date", optional.noExpectedEndDate),
      dryRun: readField(body, "dry_run", optional.dryRun),
      events: readField(body, "events", optional.events),
      reason: readField(body, "reason", optional.reason),
      mode: readField(body, "mode", optional.mode),
    }),
    ({ dryRun, endDate, events, mode, reason }) => ({ endDate, dryRun, events, reason, mode }),
  )

type Read<F extends (body: JsonObject) => Result.Result<unknown, unknown>> =
  ReturnType<F> extends Result.Result<infer A, unknown> ? A : never

const isByDuration = (body: JsonObject): boolean => Object.hasOwn(body, "extend_by")

/** What an extension of one membership says. */
const readExtensionBody = (
  body: JsonObject,
): Result.Result<
  Read<typeof readOneToDate> | Read<typeof readOneByDuration>,
  InvalidEndDate | InvalidInput
> => (isByDuration(body) ? readOneByDuration(body) : readOneToDate(body))

/** What an extension of all memberships says. */
const readBulkExtensionBody = (
  body: JsonObject,
): Result.Result<
  Read<typeof readAllToDate> | Read<typeof readAllByDuration>,
  InvalidEndDate | InvalidInput
> => (isByDuration(body) ? readAllByDuration(body) : readAllToDate(body))

// Whoever sends another field hopes for something that it does not do.
const undoBody = Setting.object({
  reason: optional.reason,
  dry_run: optional.dryRun,
  events: optional.events,
})

/** Which days are counted, and after which extension of all memberships. */
const endsQuery = {
  // The service reads the days.
  from: Setting.optional(Setting.string("text", () => true)),
  to: Setting.optional(Setting.string("text", () => true)),
  extend: Setting.optional(
    Setting.custom<string, InstantInput>(
      requestInstantFormat,
      (given) =>
        parseJsonInstant(
          typeof given === "string" && /^\d{13}$/.test(given) ? Number(given) : given,
        ),
      shownInstant,
    ),
  ),
  extend_by: Setting.optional(byDuration.extendAllBy),
  mode: optional.mode,
}

type AskedEnds = {
  readonly [Name in keyof typeof endsQuery]: Setting.OutputOf<(typeof endsQuery)[Name]>
}

const alone = (field: string, problem: string) =>
  Result.fail(new InvalidInput({ field, problem: `must be left out ${problem}` }))

const whatIf = ({
  extend,
  extend_by: by,
  mode,
}: AskedEnds): Result.Result<ToDate | ByDuration | undefined, InvalidInput> => {
  if (by !== undefined) {
    if (extend !== undefined) return alone("extend", "beside extend_by")
    if (mode !== undefined) return alone("mode", "beside extend_by")
    return Result.succeed({ by })
  }
  if (extend !== undefined) return Result.succeed({ endDate: extend, mode })
  return mode === undefined ? Result.succeed(undefined) : alone("mode", "without extend")
}

const endsData = ({ at, days, endsIn7Days, endsToday, ...counts }: EndCounts) => ({
  at: isoOrNull(at),
  ...counts,
  ends_today: endsToday,
  ends_in_7_days: endsIn7Days,
  days: days.map(({ extended, ...one }) => ({ ...one, extended: extended ?? null })),
})

const membershipNotFound: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "MembershipNotFound",
})

/** Returns the error for an argument of the service, whose names differ from those of the fields. */
const toField = (error: InvalidInput): InvalidInput =>
  error.field === "by" ? new InvalidInput({ field: "extend_by", problem: error.problem }) : error

const unrepeatable = (alternative: string) =>
  new InvalidInput({
    field: "Idempotency-Key",
    problem: `must be sent with extend_by${alternative}, because a repetition would extend twice`,
  })

/** The message of each dry run. */
export const dryRunMessage = "This was a dry run: nothing was changed."

/** Returns the previewed webhooks, if there are any. */
export const eventsData = (events: EventsPreview | undefined) =>
  events && {
    events: {
      total: events.total,
      by_type: events.byType,
      first: events.first.map(({ body, type, url, webhookId }) => ({
        webhook_id: webhookId,
        url,
        type,
        body: parseJson(body),
      })),
    },
  }

const extendedMessage = (
  {
    dryRun,
    endDate: asked,
  }: { readonly dryRun?: boolean | undefined; readonly endDate?: InstantInput },
  endDate: EndDate,
): string => {
  if (dryRun === true) return dryRunMessage
  return asked === undefined || endDate === asked
    ? "The membership was extended."
    : "The membership ends later: nothing was changed."
}

/** What a dry run of a change of all memberships shows. */
const previewData = ({ capped, examples, reactivated, shortened, total }: BulkPreview) => ({
  would_shorten: shortened,
  would_reactivate: reactivated,
  would_be_capped: capped,
  total,
  examples: examples.map(({ endDate, userId, wouldEnd }) => ({
    user_id: userId,
    end_date: formatEndDate(endDate),
    would_end: formatEndDate(wouldEnd),
  })),
})

const recordData = ({ at, change, id, origin, reason, total, undone }: BulkExtensionRecord) => ({
  id,
  mode: bulkChangeNames[change.mode],
  end_date: change.mode === "extendBy" ? null : formatEndDate(change.endDate),
  extend_by: change.mode === "extendBy" ? formatDuration(change.by) : null,
  at: isoOrNull(at),
  reason: reason ?? null,
  key_id: origin.keyId ?? null,
  request_id: origin.requestId ?? null,
  total,
  undone_at: isoOrNull(undone?.at),
  undone_by: undone?.by.keyId ?? null,
})

/** Reads the body of an extension of one membership, which is made once if it is by a duration. */
const readOneExtension = (body: JsonObject, { once }: Pick<Call<never>, "once">) =>
  Result.flatMap(readExtensionBody(body), (extension) =>
    "by" in extension &&
    once === undefined &&
    extension.expectedEndDate === undefined &&
    extension.dryRun !== true
      ? Result.fail(unrepeatable(" and without expected_end_date"))
      : Result.succeed(extension),
  )

/** Fails as the client is told: an invalid user id cannot belong to a member. */
const failOfMember = <E extends ApiError>(error: E): Effect.Effect<never, ApiError> => {
  if (error._tag !== "InvalidInput") return Effect.fail(error)
  return error.field === "userId" ? membershipNotFound : Effect.fail(toField(error))
}

/** What an extension of one membership is answered. */
const extensionSuccess = (
  extension: Result.Result.Success<ReturnType<typeof readExtensionBody>>,
  { endDate, events }: ExtensionResult,
) => {
  const newEndDate = formatEndDate(endDate)
  return {
    total: 1,
    message: extendedMessage(extension, endDate),
    data: {
      new_end_date: newEndDate,
      ...("by" in extension && { end_date: newEndDate }),
      ...eventsData(events),
    },
  }
}

type ExtensionOperation =
  | "memberships.ends"
  | "memberships.extend"
  | "memberships.extendAll"
  | "memberships.bulkExtensions"
  | "memberships.undoBulkExtension"

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeExtensionOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const memberships = yield* Memberships

  return {
    // Without a generator, unlike the others: it is called far more often.
    "memberships.extend": (call) =>
      Effect.suspend(() =>
        Effect.flatMapEager(projectOf(call), (projectId) =>
          Effect.flatMapEager(decodePathParam(call.params.user_id), (userId) =>
            Effect.flatMapEager(bodyOf(call, maxBodyBytes, format), (body) => {
              const read = readOneExtension(body, call)
              if (Result.isFailure(read)) return Effect.fail(read.failure)
              const extension = read.success
              const extending = { ...extension, projectId, userId, idempotencyKey: call.once }
              const extended = memberships.extend(extending, originOf(call))
              return Effect.matchEffect(extended, {
                onFailure: failOfMember,
                onSuccess: (result) => Effect.succeed(extensionSuccess(extension, result)),
              })
            }),
          ),
        ),
      ),

    "memberships.extendAll": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const body = yield* bodyOf(call, maxBodyBytes, format)
      const extension = yield* Effect.fromResult(readBulkExtensionBody(body))
      const by = "by" in extension ? extension.by : undefined
      if (by !== undefined && call.once === undefined && !extension.dryRun) {
        return yield* unrepeatable("")
      }
      const { endDate, events, preview, total } = yield* Effect.mapError(
        memberships.extendAll(
          { projectId, ...extension, idempotencyKey: call.once },
          originOf(call),
        ),
        (error) => (error._tag === "InvalidInput" ? toField(error) : error),
      )
      return {
        total,
        message:
          preview === undefined ? "All memberships of the project were extended." : dryRunMessage,
        data: {
          // JSON leaves out what is undefined.
          new_end_date: endDate && formatEndDate(endDate),
          ...(by && { extend_by: by, total }),
          ...(preview && previewData(preview)),
          ...eventsData(events),
        },
      }
    }),

    "memberships.ends": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* readQuery(call.request, endsQuery)
      const { from, to } = query
      const extension = yield* Effect.fromResult(whatIf(query))
      const counts = yield* memberships.countEnds({ projectId, from, to, extension })
      return { message: "How many memberships end on each day.", data: endsData(counts) }
    }),

    "memberships.bulkExtensions": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const found = yield* memberships.bulkExtensions({ projectId, after, limit: limit + 1 })
      return {
        message: "The bulk extensions of the project, newest first.",
        ...pageReply(found, limit, ({ id }) => id, recordData),
      }
    }),

    "memberships.undoBulkExtension": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const id = yield* decodePathParam(call.params.bulk_extension_id)
      yield* readQuery(call.request, {})
      const body = yield* bodyOf(call, maxBodyBytes, optionalObject)
      const undoing = yield* Effect.fromResult(undoBody.read(body, ""))
      const { dry_run: dryRun, events: showsEvents, reason } = undoing
      if (!EventId.is(id)) return yield* Effect.fail({ _tag: "BulkExtensionNotFound" } as const)
      const { events, preview, total } = yield* memberships.undoBulkExtension(
        { projectId, id, reason, dryRun, events: showsEvents, idempotencyKey: call.once },
        originOf(call),
      )
      return {
        total,
        message: preview === undefined ? "The bulk extension was undone." : dryRunMessage,
        data: { total, ...(preview && previewData(preview)), ...eventsData(events) },
      }
    }),
  } satisfies Operations<ExtensionOperation>
})
