/** The operations on memberships. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import * as Role from "../keys/Role.ts"
import * as EndDate from "../memberships/EndDate.ts"
import {
  type CurrentMembership,
  membershipStates,
  stateAt,
  UserId,
} from "../memberships/Membership.ts"
import { Memberships } from "../memberships/Memberships.ts"
import * as UserIds from "../memberships/UserIds.ts"
import type { ApiError } from "./ApiError.ts"
import * as AuditData from "./AuditData.ts"
import * as ChangeBody from "./ChangeBody.ts"
import * as ImportBody from "./ImportBody.ts"
import {
  bodyOf,
  type Call,
  idOf,
  type OperationsOn,
  originOf,
  projectOf,
  readBody,
} from "./Operation.ts"
import * as Page from "./Page.ts"
import * as Query from "./Query.ts"
import * as RequestBody from "./RequestBody.ts"
import * as Route from "./Route.ts"

const membershipNotFound: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "MembershipNotFound",
})

// The only argument that the operation has not checked.
const invalidUserId = ({ problem }: InvalidInput): InvalidInput =>
  new InvalidInput({ field: "user_id", problem })

const dryRunMessage = "This was a dry run: nothing was changed."

const extendedMessage = (
  asked: { readonly endDate: EndDate.EndDate; readonly dryRun: boolean | undefined },
  endDate: EndDate.EndDate,
): string => {
  if (asked.dryRun === true) return dryRunMessage
  return endDate === asked.endDate
    ? "The membership was extended."
    : "The membership ends later: nothing was changed."
}

const dataOf = ({ endDate, state, userId }: CurrentMembership) => ({
  user_id: userId,
  end_date: EndDate.format(endDate),
  state,
})

const { maxBodyBytes: maxImportBytes } = Route.table["memberships.import"]

const endQuery = { erase: Setting.optional(Setting.oneOf(["true", "false"])) }

/** Fails if somebody asks to erase a person who is no admin, before anything else is judged. */
const permitErasure = ({ principal, request }: Call<never>): Effect.Effect<void, ApiError> =>
  new URLSearchParams(request.query).has("erase", "true") && !Role.covers(principal.role, "admin")
    ? Effect.fail({ _tag: "Forbidden" })
    : Effect.void

const parseUserIds = (given: unknown): ReadonlyArray<string> | undefined =>
  typeof given === "string" ? UserIds.parse(given.split(",")) : undefined

const parseEndDate = (given: unknown): EndDate.EndDate | undefined =>
  typeof given === "string" ? EndDate.parse(given) : undefined

const listQuery = {
  ...Query.page,
  state: Setting.optional(Setting.oneOf(membershipStates)),
  user_ids: Setting.optional(
    Setting.make<string, ReadonlyArray<string>>(
      `${UserIds.expected}, joined by commas`,
      parseUserIds,
    ),
  ),
  ending_before: Setting.optional(
    Setting.make<string, EndDate.EndDate>("a time such as 2027-01-01T00:00:00.000Z", parseEndDate),
  ),
}

const exclusive = new InvalidInput({
  field: "ending_before",
  problem: "cannot be combined with state or user_ids",
})

const listMessage = "The memberships of the project."

/** Reads the project and the user in the path. */
const memberOf = (call: Call<"project_id" | "user_id">) =>
  Step.all({ projectId: projectOf(call), userId: idOf(call.params.user_id) })

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const memberships = yield* Memberships

  /** Reads the body of an extension of one membership. */
  const extensionIn = (call: Call<never>) =>
    Effect.flatMapEager(bodyOf(call, maxBodyBytes, ChangeBody.format), (body) =>
      Effect.fromResult(ChangeBody.extension(body)),
    )

  return {
    "memberships.extend": (call) =>
      Step.make((clock) =>
        Effect.flatMapEager(memberOf(call), ({ projectId, userId }) =>
          Effect.flatMapEager(extensionIn(call), (extension) =>
            Step.begin(
              memberships.extend(
                { ...extension, projectId, userId, idempotencyKey: call.once },
                originOf(call),
              ),
              clock,
            ).pipe(
              Effect.mapEager(({ endDate }) => ({
                total: 1,
                message: extendedMessage(extension, endDate),
                data: { new_end_date: EndDate.format(endDate) },
              })),
              // An invalid user id cannot belong to a member.
              Effect.catchEager((error) =>
                error._tag === "InvalidInput" ? membershipNotFound : Effect.fail(error),
              ),
            ),
          ),
        ),
      ),

    "memberships.extendAll": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const body = yield* bodyOf(call, maxBodyBytes, ChangeBody.format)
      const extension = yield* Effect.fromResult(ChangeBody.bulkExtension(body))
      const bulk = yield* memberships.extendAll(
        { projectId, ...extension, idempotencyKey: call.once },
        originOf(call),
      )
      return {
        total: bulk.total,
        message:
          extension.dryRun === true
            ? dryRunMessage
            : "All memberships of the project were extended.",
        // JSON leaves out what is undefined.
        data: { new_end_date: EndDate.format(bulk.endDate), would_shorten: bulk.wouldShorten },
      }
    }),

    "memberships.import": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const text = yield* readBody(call, maxImportBytes, RequestBody.lines)
      const imported = yield* ImportBody.read(text)
      yield* memberships.import(
        { projectId, memberships: imported, idempotencyKey: call.once },
        originOf(call),
      )
      return { total: imported.length, message: "The memberships were imported.", data: null }
    }),

    "memberships.list": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      const query = yield* Query.read(call.request, listQuery)
      const { after, ending_before: before, limit, state, user_ids: userIds } = query
      if (before !== undefined) {
        if (state !== undefined || userIds !== undefined) return yield* exclusive
        const page = yield* memberships.listEnding({ projectId, before, after, limit })
        return {
          total: page.memberships.length,
          next: page.next ?? null,
          message: listMessage,
          data: page.memberships.map(dataOf),
        }
      }
      const found = yield* memberships.list({ projectId, userIds, after, limit: limit + 1, state })
      return {
        message: listMessage,
        ...Page.of(found, limit, ({ userId }) => userId, dataOf),
      }
    }),

    "memberships.get": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const userId = yield* idOf(call.params.user_id)
      const membership = yield* Effect.catchTag(
        memberships.find({ projectId, userId }),
        "InvalidInput",
        () => membershipNotFound,
      )
      return { message: "The membership.", data: dataOf(membership) }
    }),

    "memberships.grant": Effect.fnUntraced(function* (call) {
      const projectId = yield* projectOf(call)
      yield* Query.read(call.request, {})
      const userId = yield* idOf(call.params.user_id)
      const body = yield* bodyOf(call, maxBodyBytes)
      const granted = yield* Effect.fromResult(ChangeBody.grant(body))
      const membership = yield* Effect.mapError(
        memberships.grant(
          { projectId, userId, ...granted, idempotencyKey: call.once },
          originOf(call),
        ),
        (error) => (error._tag === "InvalidInput" ? invalidUserId(error) : error),
      )
      const state = stateAt(membership, yield* Clock.currentTimeMillis)
      return { message: "The membership was granted.", data: dataOf({ ...membership, state }) }
    }),

    "memberships.end": Effect.fnUntraced(function* (call) {
      yield* permitErasure(call)
      const projectId = yield* projectOf(call)
      const userId = yield* idOf(call.params.user_id)
      const { erase } = yield* Query.read(call.request, endQuery)
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
      const userId = yield* idOf(call.params.user_id)
      if (!UserId.is(userId)) return yield* membershipNotFound
      const { after, limit } = yield* Query.read(call.request, Query.page)
      const found = yield* memberships.history({ projectId, userId, after, limit: limit + 1 })
      return {
        message: "The changes of the membership, newest first.",
        ...Page.of(found, limit, ({ cursor }) => cursor, AuditData.changeOf),
      }
    }),
  } satisfies OperationsOn<"memberships">
})
