/** Moves a membership to another user id. */

import * as Effect from "effect/Effect"
import {
  type ChangeContext,
  isReplayedResponse,
  notifyReplay,
  repeatUntilMade,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { Repeatable } from "../base/host-method.ts"
import { invalidArgument } from "../base/input.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { type EventDraft, knownEventTypes } from "../events/event.ts"
import { EndDate, type OptionalForm, formatEndDate } from "./end-date.ts"
import { type ChangeServices, changeEvent, madeOrRecalled, reportChange } from "./extensions.ts"
import type { moving } from "./inputs.ts"
import {
  type Membership,
  type MembershipEnd,
  type UserId,
  type UserIdRule,
  stateConflict,
} from "./membership.ts"
import { applyMetadataPatch, maxMetadata, noMetadata } from "./metadata.ts"

/** A membership to move. */
export interface Moving extends HostInputOf<typeof moving>, Repeatable {}

/** A membership's moved fields. */
export interface MovedMembership extends Pick<Membership, "endDate" | "metadata">, OptionalForm {}

const sameUser = new InvalidInput({ field: "to", problem: "must be another user id" })

const tooMuchMetadata = new InvalidInput({
  field: "to",
  problem: `must leave at most ${maxMetadata} names in the metadata of both memberships together`,
})

/**
 * Joins a membership with its target's, if the other user id has one: the later end date stays, and for
 * equal names, the metadata in `to`. Returns `undefined` if the metadata would have too many names.
 */
export const joinMemberships = (
  from: MovedMembership,
  to: MovedMembership | undefined,
): MovedMembership | undefined => {
  const metadata = applyMetadataPatch(from.metadata, to?.metadata ?? noMetadata)
  const { endDate, inDays, keptDay } = to === undefined || from.endDate > to.endDate ? from : to
  return metadata && { endDate, inDays, keptDay, metadata }
}

/** Returns the drafts in feed order. */
const inOrder = (ended: EventDraft, granted: EventDraft) =>
  ended.id < granted.id
    ? { ended, granted }
    : { ended: { ...ended, id: granted.id }, granted: { ...granted, id: ended.id } }

/** Makes the act `move`. */
export const makeMove = (services: ChangeServices, userIds: UserIdRule) => {
  const { store } = services

  const find = (projectId: Membership["projectId"], userId: UserId) =>
    Effect.catchTag(store.find(projectId, userId), "MembershipNotFound", () => Effect.undefined)

  return Effect.fnUntraced(function* (
    { projectId, reason, to, userId }: Decoded<typeof moving>,
    context: ChangeContext,
  ) {
    if (!userIds.is(to)) return yield* invalidArgument("to", userIds.expected)
    if (to === userId) return yield* sameUser
    const change = { ...context, projectId, reason }
    const { idempotency } = context
    const data = { project_id: projectId, user_id: userId, moved_to: to }
    const attempt = Effect.gen(function* () {
      const expected = {
        from: yield* store.find(projectId, userId),
        to: yield* find(projectId, to),
      }
      for (const one of [expected.from, expected.to]) {
        if (one?.pause !== undefined) return yield* stateConflict(one, context.at)
      }
      const joined = joinMemberships(expected.from, expected.to)
      if (joined === undefined) return yield* tooMuchMetadata
      const { endDate } = joined
      const { ended, granted } = inOrder(
        changeEvent(services, change, knownEventTypes.ended, data),
        changeEvent(services, change, knownEventTypes.granted, {
          project_id: projectId,
          user_id: to,
          moved_from: userId,
          new_end_date: formatEndDate(endDate),
        }),
      )
      const changed = {
        ...change,
        event: ended,
        granted,
        userId,
        to,
        ...joined,
        expected,
        idempotency: idempotency && { ...idempotency, answer: String(endDate) },
      }
      const result = yield* store.move(changed)
      if (isReplayedResponse(result)) return result
      for (const event of result) yield* reportChange(services, changed, event)
      return endDate
    })
    const repeated = repeatUntilMade(
      "The membership",
      Effect.catchTag(attempt, "MoveConflict", () => Effect.undefined),
    )
    const made = yield* madeOrRecalled(services, change, repeated)
    yield* notifyReplay(context, made)
    const endDate = isReplayedResponse(made) ? EndDate(Number(made.answer)) : made
    const moved: MembershipEnd = { projectId, userId: to, endDate }
    return moved
  })
}
