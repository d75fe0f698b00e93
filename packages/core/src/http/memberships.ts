/** Performs the operations on memberships. */

import * as Effect from "effect/Effect"
import { ofResource } from "../api/declaration.ts"
import type { ApiError } from "../api/errors.ts"
import type { Granted } from "../api/membership-replies.ts"
import { membershipOperations } from "../api/memberships.ts"
import { InvalidInput } from "../base/errors.ts"
import { brandedText } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { roleCovers } from "../keys/api-key.ts"
import {
  type AuditRow,
  type MembershipAction,
  membershipActions,
} from "../memberships/audit-trail.ts"
import { formatEndDateOrNull } from "../memberships/end-date.ts"
import { EndingCursor } from "../memberships/ending-page.ts"
import { type GrantResult, MembershipActs } from "../memberships/membership-acts.ts"
import { type CurrentMembership, UserId } from "../memberships/membership.ts"
import { makeExtensionOperations } from "./extensions.ts"
import { makeImport } from "./import.ts"
import { type Call, type OperationsOn, type Replied, isoOrNull, perform } from "./operation.ts"
import { auditChangeData, auditReply } from "./projects.ts"
import { pageReply } from "./response.ts"

const dataOf = ({
  endDate,
  graceUntil,
  keptDay,
  metadata,
  pausedAt,
  resumesAt,
  state,
  through,
  userId,
}: CurrentMembership) => ({
  user_id: userId,
  end_date: formatEndDateOrNull(endDate),
  through: through ?? null,
  kept_day: keptDay ?? null,
  state,
  grace_until: isoOrNull(graceUntil),
  paused_at: isoOrNull(pausedAt),
  resumes_at: isoOrNull(resumesAt),
  metadata,
})

const reply = (membership: CurrentMembership) => ({ data: dataOf(membership) })

const unchangedMessage = "The user has a membership: nothing was changed."

const grantReply = ({ created, ...membership }: GrantResult): Replied<Granted> => {
  const data = dataOf(membership)
  if (created === undefined) return { data }
  return { ...(!created && { message: unchangedMessage }), data: { ...data, created } }
}

/** A member's audit trail has no other rows. */
const isOfMembership = (row: AuditRow): row is AuditRow & { readonly action: MembershipAction } =>
  membershipActions.some((action) => action === row.action)

/** Fails if a principal other than an admin asks to erase a person, before any other check. */
const permitErasure = ({ principal, request }: Call<never>): Effect.Effect<void, ApiError> =>
  new URLSearchParams(request.query).has("erase", "true") && !roleCovers(principal.role, "admin")
    ? Effect.fail({ _tag: "Forbidden" })
    : Effect.void

const exclusive = new InvalidInput({
  field: "ending_before",
  problem: "cannot be combined with state, user_ids or prefix",
})

const exclusivePrefix = new InvalidInput({
  field: "prefix",
  problem: "cannot be combined with user_ids",
})

// A cursor belongs to its page's order, decided by the other parameters.
const endingCursor = Setting.optional(brandedText(EndingCursor))
const listCursor = Setting.optional(brandedText(UserId))

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeMembershipOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const acts = yield* MembershipActs
  const { end, get, grant, history, list, move, pause, resume, update } = membershipOperations

  const ended = perform(end, maxBodyBytes, ({ erase, ...member }, context) =>
    erase
      ? Effect.as(acts.erase(member, context), { message: "The person was erased.", data: null })
      : Effect.as(acts.end({ ...member, reason: undefined }, context), { data: null }),
  )

  return ofResource("memberships", {
    ...(yield* makeExtensionOperations(maxBodyBytes)),

    import: yield* makeImport,

    list: perform(list, maxBodyBytes, ({ endingBefore: before, limit, ...given }) =>
      Effect.gen(function* () {
        const { after, prefix, projectId, state, userIds } = given
        if (userIds !== undefined && prefix !== undefined) return yield* exclusivePrefix
        if (before === undefined) {
          const cursor = yield* Effect.fromResult(listCursor.read(after, "after"))
          const found = yield* acts.list({ ...given, after: cursor, limit: limit + 1 })
          return pageReply(found, limit, ({ userId }) => userId, dataOf)
        }
        if ((state ?? userIds ?? prefix) !== undefined) return yield* exclusive
        const cursor = yield* Effect.fromResult(endingCursor.read(after, "after"))
        const page = yield* acts.listEnding({ projectId, before, after: cursor, limit })
        return {
          total: page.memberships.length,
          next: page.next ?? null,
          data: page.memberships.map(dataOf),
        }
      }),
    ),

    get: perform(get, maxBodyBytes, (member) => Effect.map(acts.find(member), reply)),

    grant: perform(grant, maxBodyBytes, (membership, context) =>
      Effect.map(acts.grant(membership, context), grantReply),
    ),

    update: perform(update, maxBodyBytes, (change, context) =>
      Effect.map(acts.update(change, context), reply),
    ),

    move: perform(move, maxBodyBytes, (moving, context) =>
      Effect.map(acts.move(moving, context), ({ endDate, userId }) => ({
        data: { user_id: userId, end_date: formatEndDateOrNull(endDate) },
      })),
    ),

    pause: perform(pause, maxBodyBytes, (pausing, context) =>
      Effect.map(acts.pause(pausing, context), reply),
    ),

    resume: perform(resume, maxBodyBytes, (resuming, context) =>
      Effect.map(acts.resume(resuming, context), reply),
    ),

    end: (call: Call) => Effect.andThen(permitErasure(call), ended(call)),

    history: perform(history, maxBodyBytes, (search) =>
      Effect.map(acts.searchHistory(search), (page) =>
        auditReply(page, page.rows.filter(isOfMembership).map(auditChangeData)),
      ),
    ),
  }) satisfies OperationsOn<"memberships">
})
