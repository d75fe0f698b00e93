/** Pauses and resumes memberships. */

import * as Effect from "effect/Effect"
import {
  type ChangeContext,
  type ReplayedResponse,
  isReplayedResponse,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { Repeatable } from "../base/host-method.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { knownEventTypes } from "../events/event.ts"
import { EndDate, formatEndDate } from "./end-date.ts"
import {
  type ChangeServices,
  type Draft,
  changeEvent,
  changeFound,
  findEndOfDay,
  reportChange,
} from "./extensions.ts"
import type { pausing, resuming } from "./inputs.ts"
import {
  type CurrentMembership,
  MembershipNotFound,
  type PauseConflict,
  currentMembership,
  parseMembership,
  stateConflict,
} from "./membership.ts"
import { endAfterPause } from "./pause.ts"

/** A membership to pause. */
export type PausingMember = HostInputOf<typeof pausing> & Repeatable

/** A membership to resume. */
export interface ResumingMember extends HostInputOf<typeof resuming>, Repeatable {}

/** Two years, also with a leap day. */
const maxPauseMillis = 731 * 86_400_000

const refuseUntil = (problem: string) => Effect.fail(new InvalidInput({ field: "until", problem }))

/** Makes the acts `pause` and `resume`. */
export const makePauses = (services: ChangeServices) => {
  const { store } = services

  /** Returns when a pause is to end by itself, in milliseconds since the epoch. */
  const findUntil = Effect.fnUntraced(function* (given: Decoded<typeof pausing>, at: number) {
    const { projectId, through, timeZone, userId } = given
    const until =
      through === undefined
        ? given.until
        : yield* Effect.catchTag(
            findEndOfDay(services, projectId, { through, timeZone }),
            "ProjectNotFound",
            () => new MembershipNotFound({ projectId, userId }),
          )
    if (until === undefined) return undefined
    if (until <= at) return yield* refuseUntil("must be in the future")
    if (until > at + maxPauseMillis) return yield* refuseUntil("must be at most two years ahead")
    return until
  })

  /** Reads a membership and changes its pause, and repeats both if others have changed it meanwhile. */
  const changePause = <E>(
    change: Draft,
    attempt: Effect.Effect<CurrentMembership | ReplayedResponse, E | PauseConflict>,
  ) =>
    changeFound(
      services,
      change,
      Effect.catchTag(attempt, "PauseConflict", () => Effect.undefined),
      parseMembership,
    )

  return {
    pause: Effect.fnUntraced(function* (given: Decoded<typeof pausing>, context: ChangeContext) {
      const { projectId, reason, userId } = given
      const { at, idempotency } = context
      const change = { ...context, projectId, reason }
      const attempt = Effect.gen(function* () {
        const until = yield* findUntil(given, at)
        const before = yield* store.find(projectId, userId)
        const { endDate } = before
        if (before.pause !== undefined || endDate <= at) return yield* stateConflict(before, at)
        const paused = currentMembership({ ...before, pause: { since: at, until } }, at)
        const result = yield* store.pause({
          ...change,
          userId,
          until,
          expected: { endDate },
          event: changeEvent(services, change, knownEventTypes.paused, {
            project_id: projectId,
            user_id: userId,
            end_date: formatEndDate(endDate),
            resumes_at: until === undefined ? null : formatEndDate(EndDate(until)),
          }),
          idempotency: idempotency && { ...idempotency, answer: JSON.stringify(paused) },
        })
        if (isReplayedResponse(result)) return result
        yield* reportChange(services, context, result)
        return paused
      })
      return yield* changePause(change, attempt)
    }),

    resume: Effect.fnUntraced(function* (
      { projectId, reason, userId }: Decoded<typeof resuming>,
      context: ChangeContext,
    ) {
      const { at, idempotency } = context
      const change = { ...context, projectId, reason }
      const attempt = Effect.gen(function* () {
        const before = yield* store.find(projectId, userId)
        const { pause } = before
        if (pause === undefined) return yield* stateConflict(before, at)
        // By the clock of this process, it may have ended by itself.
        const end = Math.min(at, pause.until ?? at)
        const endDate = endAfterPause(before.endDate, pause, end)
        const resumed = currentMembership(
          { ...before, endDate, keptDay: undefined, pause: undefined },
          at,
        )
        const result = yield* store.resume({
          ...change,
          userId,
          endDate,
          expected: { endDate: before.endDate, pause },
          event: changeEvent(services, change, knownEventTypes.resumed, {
            project_id: projectId,
            user_id: userId,
            end_date: formatEndDate(endDate),
            resumes_at: formatEndDate(EndDate(end)),
          }),
          idempotency: idempotency && { ...idempotency, answer: JSON.stringify(resumed) },
        })
        if (isReplayedResponse(result)) return result
        yield* reportChange(services, context, result)
        return resumed
      })
      return yield* changePause(change, attempt)
    }),
  }
}
