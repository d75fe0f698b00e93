/** Reads what the bodies of requests say of a change of memberships. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import { requestInstantFormat, shownInstant } from "../base/input.ts"
import { faultOfJson } from "../base/json-text.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput, instantHint } from "../base/time.ts"
import { getOwn } from "../base/values.ts"
import { roleCovers } from "../keys/api-key.ts"
import { formatDuration } from "../memberships/duration.ts"
import { formatEndDate } from "../memberships/end-date.ts"
import {
  type AuditRow,
  type CurrentMembership,
  type ImportRow,
  type ProjectSummary,
  UserId,
  UserIdPrefix,
  maxMemberships,
  membershipStates,
  parseUserIds,
  userIdsFormat,
} from "../memberships/membership.ts"
import { Memberships } from "../memberships/memberships.ts"
import { metadataPatchSetting, metadataSetting } from "../memberships/metadata.ts"
import { Webhooks } from "../webhooks/webhooks.ts"
import type { ApiError, InvalidLines, LineFault } from "./errors.ts"
import {
  dryRunMessage,
  endDateField,
  eventsData,
  makeExtensionOperations,
  parseJsonInstant,
  reasonField,
} from "./extensions.ts"
import {
  type Call,
  type JsonObject,
  type OperationsOn,
  bodyOf,
  decodePathParam,
  isoOrNull,
  jsonLines,
  originOf,
  pageQuery,
  parseJson,
  projectOf,
  readBody,
  readQuery,
  requireAllProjects,
} from "./operation.ts"
import { pageReply } from "./response.ts"
import { routes } from "./routes.ts"
import { cellsOf } from "./webhooks.ts"

// Whoever sends another field, such as `dry_run`, hopes for a protection that a grant does not have.
const grantBody = Setting.object({
  end_date: endDateField,
  metadata: Setting.optional(metadataSetting),
  reason: Setting.optional(reasonField),
})

/** What a grant says, and nothing else. */
const readGrantBody = (body: JsonObject) =>
  Result.map(grantBody.read(body, ""), ({ end_date: endDate, ...others }) => ({
    ...others,
    endDate,
  }))

const updateBody = Setting.object({
  metadata: metadataPatchSetting,
  reason: Setting.optional(reasonField),
})

/** Reads the body of an import: a membership in each line. */

// Enough to see what is wrong with all lines.
const mostFaults = 100

// About a millisecond.
const linesPerTurn = 1000

const fields = new Set(["user_id", "end_date", "metadata"])

const metadataOfLine = Setting.optional(metadataSetting)

/** Reads a line of JSON. Returns what is wrong with it in place of a membership. */
const readJsonLine = (line: string): ImportRow | string => {
  const value = parseJson(line)
  if (!Predicate.isObject(value)) return "the line must be a JSON object"
  if (!Object.keys(value).every((field) => fields.has(field))) {
    return "the line must have no fields but user_id, end_date and metadata"
  }
  const fault = faultOfJson(line)
  if (fault !== undefined) return fault.message
  const userId = getOwn(value, "user_id")
  if (typeof userId !== "string" || !UserId.is(userId)) {
    return `user_id must be ${UserId.expected}, as text`
  }
  const date = getOwn(value, "end_date")
  const endDate = parseJsonInstant(date)
  if (endDate === undefined) return `end_date must be ${requestInstantFormat}${instantHint(date)}`
  const metadata = metadataOfLine.read(getOwn(value, "metadata"), "metadata")
  return Result.isFailure(metadata)
    ? metadata.failure.message
    : { userId, endDate, metadata: metadata.success }
}

// As programs print nearly all lines. The text has nothing that JSON escapes, no number, and each field once.
const plainLine = /^\{"user_id": ?"([\w.:@+-]+)", ?"end_date": ?"([\dTZ:.-]+)"\}$/

/** Reads a line, without parsing JSON if it need not. Returns what `readJsonLine` returns. */
const readLine = (line: string): ImportRow | string => {
  const [, userId = "", date] = plainLine.exec(line) ?? []
  const endDate = parseJsonInstant(date)
  return UserId.is(userId) && endDate !== undefined
    ? { userId, endDate, metadata: undefined }
    : readJsonLine(line)
}

/** Splits text into lines, one more than there may be. White space at the end is no line. */
const linesOf = (text: string): ReadonlyArray<string> =>
  text.trimEnd().split("\n", maxMemberships + 1)

// Which users may become members is an option, so the service says the rest: as a field of the line of a membership.
const inLine = (error: InvalidInput): InvalidInput | InvalidLines => {
  const index = /^memberships\[(\d+)\]\.userId$/.exec(error.field)?.[1]
  return index === undefined
    ? error
    : {
        _tag: "InvalidLines",
        faults: [{ line: Number(index) + 1, message: `user_id ${error.problem}` }],
      }
}

const fail = (...faults: InvalidLines["faults"]): Effect.Effect<never, InvalidLines> =>
  Effect.fail({ _tag: "InvalidLines", faults })

/**
 * Reads the memberships, in turns with whatever else the process does. Fails with what is wrong with
 * the lines, or with the first hundred of them.
 */
const readImportBody = Effect.fnUntraced(function* (body: string) {
  const lines = linesOf(body)
  if (lines.length > maxMemberships) {
    return yield* fail({ line: lines.length, message: "an import must have at most 10,000 lines" })
  }
  const memberships: Array<ImportRow> = []
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
    if (faults.length === mostFaults) break
  }
  const [first, ...others] = faults
  return first === undefined ? memberships : yield* fail(first, ...others)
})

/** What responses show of the audit trail. */

/** Returns who changed a membership, when and why, from and to which date. */
const auditChangeData = (row: AuditRow) => ({
  at: isoOrNull(row.at),
  action: row.action,
  from: isoOrNull(row.from),
  to: isoOrNull(row.to),
  extend_by: row.by === undefined ? null : formatDuration(row.by),
  key_id: row.origin.keyId ?? null,
  key_name: row.keyName ?? null,
  request_id: row.origin.requestId ?? null,
  reason: row.reason ?? null,
})

const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Returns a row with what was changed: the member, or something else. */
const auditRowData = (row: AuditRow) => ({
  ...auditChangeData(row),
  user_id: row.userId ?? null,
  subject: row.subject ?? null,
  changes: row.changes.map(({ field, from, to }) => ({ field: snakeCase(field), from, to })),
})

/** The operations on memberships. */

const membershipNotFound: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "MembershipNotFound",
})

// The only argument that the operation has not checked.
const invalidUserId = ({ problem }: InvalidInput): InvalidInput =>
  new InvalidInput({ field: "user_id", problem })

const dataOf = ({ endDate, metadata, state, userId }: CurrentMembership) => ({
  user_id: userId,
  end_date: formatEndDate(endDate),
  state,
  metadata,
})

const { maxBodyBytes: maxImportBytes } = routes["memberships.import"]

const flag = Setting.optional(Setting.oneOf(["true", "false"]))

// An import has no place for them in its body.
const importQuery = { dry_run: flag, events: flag }

const endQuery = { erase: flag }

/** Fails if somebody asks to erase a person who is no admin, before anything else is judged. */
const permitErasure = ({ principal, request }: Call<never>): Effect.Effect<void, ApiError> =>
  new URLSearchParams(request.query).has("erase", "true") && !roleCovers(principal.role, "admin")
    ? Effect.fail({ _tag: "Forbidden" })
    : Effect.void

const membershipOperationsParseUserIds = (given: unknown): ReadonlyArray<string> | undefined =>
  typeof given === "string"
    ? parseUserIds(given.split(",").map((id) => id.replaceAll(/%2[5c]/gi, decodeURIComponent)))
    : undefined

const membershipOperationsParseEndDate = (given: unknown): InstantInput | undefined =>
  typeof given === "string" ? parseJsonInstant(given) : undefined

const listQuery = {
  ...pageQuery,
  state: Setting.optional(Setting.oneOf(membershipStates)),
  user_ids: Setting.optional(
    Setting.custom<string, ReadonlyArray<string>>(
      `${userIdsFormat}, joined by commas; in an id, a comma is written %2C and a percent sign %25`,
      membershipOperationsParseUserIds,
    ),
  ),
  prefix: Setting.optional(Setting.string(UserIdPrefix.expected, UserIdPrefix.is)),
  ending_before: Setting.optional(
    Setting.custom<string, InstantInput>(
      "a time such as 2027-01-01T00:00:00.000Z",
      membershipOperationsParseEndDate,
      shownInstant,
    ),
  ),
}

const exclusive = new InvalidInput({
  field: "ending_before",
  problem: "cannot be combined with state, user_ids or prefix",
})

const exclusivePrefix = new InvalidInput({
  field: "prefix",
  problem: "cannot be combined with user_ids",
})

const listMessage = "The memberships of the project."

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeMembershipOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const memberships = yield* Memberships

  return {
    ...(yield* makeExtensionOperations(maxBodyBytes)),

    "memberships.import": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* readQuery(call.request, importQuery)
      const dryRun = query.dry_run === "true"
      const text = yield* readBody(call, maxImportBytes, jsonLines)
      const imported = yield* readImportBody(text)
      const { events, total, wouldGrant, wouldShorten, wouldStay } = yield* Effect.mapError(
        memberships.import(
          {
            projectId,
            memberships: imported,
            dryRun,
            events: query.events === "true",
            idempotencyKey: call.once,
          },
          originOf(call),
        ),
        (error) => (error._tag === "InvalidInput" ? inLine(error) : error),
      )
      return {
        total,
        message: dryRun ? dryRunMessage : "The memberships were imported.",
        data:
          wouldGrant === undefined || wouldShorten === undefined || wouldStay === undefined
            ? null
            : {
                would_grant: wouldGrant,
                would_shorten: wouldShorten,
                would_stay: wouldStay,
                ...eventsData(events),
              },
      }
    }),

    "memberships.list": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* readQuery(call.request, listQuery)
      const { after, ending_before: before, limit, prefix, state, user_ids: userIds } = query
      if (userIds !== undefined && prefix !== undefined) return yield* exclusivePrefix
      if (before !== undefined) {
        if ((state ?? userIds ?? prefix) !== undefined) return yield* exclusive
        const page = yield* memberships.listEnding({ projectId, before, after, limit })
        return {
          total: page.memberships.length,
          next: page.next ?? null,
          message: listMessage,
          data: page.memberships.map(dataOf),
        }
      }
      const asked = { projectId, userIds, prefix, after, limit: limit + 1, state }
      const found = yield* memberships.list(asked)
      return {
        message: listMessage,
        ...pageReply(found, limit, ({ userId }) => userId, dataOf),
      }
    }),

    "memberships.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      const userId = yield* decodePathParam(call.params.user_id)
      const membership = yield* Effect.catchTag(
        memberships.find({ projectId, userId }),
        "InvalidInput",
        () => membershipNotFound,
      )
      return { message: "The membership.", data: dataOf(membership) }
    }),

    "memberships.grant": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      const userId = yield* decodePathParam(call.params.user_id)
      const body = yield* bodyOf(call, maxBodyBytes)
      const granted = yield* Effect.fromResult(readGrantBody(body))
      const membership = yield* Effect.mapError(
        memberships.grant(
          { projectId, userId, ...granted, idempotencyKey: call.once },
          originOf(call),
        ),
        (error) => (error._tag === "InvalidInput" ? invalidUserId(error) : error),
      )
      return { message: "The membership was granted.", data: dataOf(membership) }
    }),

    "memberships.update": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      const userId = yield* decodePathParam(call.params.user_id)
      const body = yield* bodyOf(call, maxBodyBytes)
      const asked = yield* Effect.fromResult(updateBody.read(body, ""))
      if (!UserId.is(userId)) return yield* membershipNotFound
      const membership = yield* memberships.update(
        { projectId, userId, ...asked, idempotencyKey: call.once },
        originOf(call),
      )
      return { message: "The membership was updated.", data: dataOf(membership) }
    }),

    "memberships.end": Effect.fnUntraced(function* (call) {
      yield* permitErasure(call)
      const projectId = yield* projectOf(call)
      const userId = yield* decodePathParam(call.params.user_id)
      const { erase } = yield* readQuery(call.request, endQuery)
      const member = { projectId, userId, idempotencyKey: call.once }
      const perform: Effect.Effect<void, ApiError> =
        erase === "true"
          ? memberships.erase(member, originOf(call))
          : memberships.end(member, originOf(call))
      yield* Effect.catchTag(perform, "InvalidInput", () => membershipNotFound)
      return {
        message: erase === "true" ? "The person was erased." : "The membership was ended.",
        data: null,
      }
    }),

    "memberships.history": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const userId = yield* decodePathParam(call.params.user_id)
      if (!UserId.is(userId)) return yield* membershipNotFound
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const found = yield* memberships.history({ projectId, userId, after, limit: limit + 1 })
      return {
        message: "The changes of the membership, newest first.",
        ...pageReply(found, limit, ({ cursor }) => cursor, auditChangeData),
      }
    }),
  } satisfies OperationsOn<"memberships">
})

/** The operations on projects. */

const listed = ({ id, memberships, webhooks }: ProjectSummary) => ({ id, memberships, webhooks })

const projectOperationsDataOf = (project: ProjectSummary) => ({
  ...listed(project),
  last_bulk_end_date: isoOrNull(project.lastBulkEndDate),
})

/** Makes the operations. */
export const makeProjectOperations = Effect.gen(function* () {
  const memberships = yield* Memberships
  const webhooks = yield* Webhooks

  return {
    "projects.list": Effect.fnUntraced(function* (call) {
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const within = call.principal.projects
      const found = yield* memberships.listProjects({ after, limit: limit + 1, within })
      return { message: "The projects.", ...pageReply(found, limit, ({ id }) => id, listed) }
    }),

    "projects.create": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      const project = yield* memberships.createProject(projectId, originOf(call), {
        idempotencyKey: call.once,
      })
      return { message: "The project exists.", data: projectOperationsDataOf(project) }
    }),

    "projects.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      return {
        message: "The project.",
        data: projectOperationsDataOf(yield* memberships.findProject(projectId)),
      }
    }),

    "projects.delete": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      yield* memberships.deleteProject(projectId, originOf(call), { idempotencyKey: call.once })
      return { message: "The project was deleted.", data: null }
    }),

    "projects.audit": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const found = yield* memberships.history({ projectId, after, limit: limit + 1 })
      return {
        message: "The audit trail of the project, newest first.",
        ...pageReply(found, limit, ({ cursor }) => cursor, auditRowData),
      }
    }),

    "projects.activity": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* readQuery(call.request, {})
      return {
        message: "What was delivered for the project in the last hour.",
        data: { minutes: cellsOf(yield* webhooks.projectActivity({ projectId })) },
      }
    }),
  } satisfies OperationsOn<"projects">
})

/** The operation on the audit trail of what belongs to no project. */

/** Makes the operation. */
export const makeAuditOperations = Effect.gen(function* () {
  const memberships = yield* Memberships

  return {
    "audit.list": Effect.fnUntraced(function* (call) {
      yield* requireAllProjects(call)
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const found = yield* memberships.history({ projectId: null, after, limit: limit + 1 })
      return {
        message: "The audit trail of projects and API keys, newest first.",
        ...pageReply(found, limit, ({ cursor }) => cursor, auditRowData),
      }
    }),
  } satisfies OperationsOn<"audit">
})
