/** What a dispatcher does with a claim: it makes the attempt and settles the delivery. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { Faults } from "../base/Faults.ts"
import type { Traceparent } from "../base/Traceparent.ts"
import * as Event from "../events/Event.ts"
import { Hooks } from "../events/Hooks.ts"
import { Observer } from "../telemetry/Observer.ts"
import { Tracing } from "../telemetry/Tracing.ts"
import * as LastAttempt from "./LastAttempt.ts"
import { type Attempt, type Claim, Outbox, type Settled, type Settlement } from "./Outbox.ts"
import * as Queueing from "./Queueing.ts"
import * as SignedRequest from "./SignedRequest.ts"
import * as Verdict from "./Verdict.ts"
import { type Answer, TransportError, WebhookTransport } from "./WebhookTransport.ts"

/** The rules by which all claims are handled. */
export interface Rules extends Verdict.Rules {
  /** The time for one attempt, in milliseconds. */
  readonly timeout: number
  /** Tells whether the dispatcher is stopping, so that failed settlements are not repeated. */
  readonly isStopping: () => boolean
}

const settleRetryMillis = 1000

// How much longer than its attempt a claim lasts: the time for a slow store to settle it.
const settleMillis = 15_000

/** How long a claim lasts, in milliseconds: it may wait, is attempted, and settled. */
export const leaseMillis = ({ timeout }: Pick<Rules, "timeout">): number =>
  Queueing.longestMillis + timeout + settleMillis

/** Sends the notification. A defect of the transport is a failed attempt like any other. */
const post = Effect.fnUntraced(function* (
  claim: Claim,
  at: number,
  timeout: number,
  traceparent: Traceparent | undefined,
) {
  const faults = yield* Faults
  const transport = yield* WebhookTransport
  const request = Effect.catchTag(
    SignedRequest.make(claim, at, traceparent),
    "SecretUnreadable",
    (error) =>
      Effect.logWarning(error.message).pipe(
        Effect.andThen(faults.failure("A notification cannot be signed", error)),
        Effect.andThen(Effect.fail(new TransportError({ reason: error._tag }))),
      ),
  )
  return yield* Effect.flatMap(request, transport.send).pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      orElse: () => Effect.fail(new TransportError({ reason: "Timeout" })),
    }),
    Effect.catchDefect((defect) =>
      Effect.andThen(
        faults.defect("A delivery attempt ended in a defect", Cause.die(defect)),
        Effect.fail(new TransportError({ reason: "Defect" })),
      ),
    ),
  )
})

/** Sends it in a span, if there is a tracer. */
const send = Effect.fnUntraced(function* (claim: Claim, at: number, timeout: number) {
  const tracing = yield* Tracing
  const traceparent = Event.traceparentOf(claim.event.body)
  if (tracing === undefined) return yield* post(claim, at, timeout, traceparent)
  const { attemptNumber, webhook } = claim
  return yield* tracing.attempt({ url: webhook.url, attemptNumber, traceparent }, (own) =>
    post(claim, at, timeout, own),
  )
})

type Response = Result.Result<Answer, TransportError>

const resultOf = (response: Response): Attempt["result"] =>
  Result.isSuccess(response)
    ? { _tag: "Answered", status: response.success.status, body: response.success.body }
    : { _tag: "Failed", reason: response.failure.reason }

/** What an observer is told of a response. */
const answerOf = (response: Response): number | string =>
  Result.isSuccess(response) ? response.success.status : response.failure.reason

const outcomeOf = (response: Response, endedAt: number): Verdict.Outcome =>
  Result.isSuccess(response)
    ? { endedAt, status: response.success.status, retryAfter: response.success.retryAfter }
    : { endedAt, status: undefined, retryAfter: undefined }

const standingOf = ({ attemptNumber, webhook }: Claim): Verdict.Standing => ({
  attemptNumber,
  failures: webhook.failures,
  failingSince: webhook.failingSince,
})

/** Makes the event that announces that a webhook was disabled. */
const announce = Effect.fnUntraced(function* ({ webhook }: Claim, at: number, reason: string) {
  const { projectId, webhookId } = webhook
  return Event.make({
    id: Event.freshId(yield* WebCrypto, at),
    projectId,
    type: Event.types.disabled,
    at,
    data: { project_id: projectId, webhook_id: webhookId, reason },
  })
})

/** Makes one attempt and judges it. */
const makeAttempt = Effect.fnUntraced(function* (claim: Claim, rules: Rules) {
  const at = yield* Clock.currentTimeMillis
  const start = yield* Clock.monotonicTimeNanos
  const response = yield* Effect.result(send(claim, at, rules.timeout))
  const durationMillis = Number((yield* Clock.monotonicTimeNanos) - start) / 1_000_000
  const endedAt = at + durationMillis
  const outcome = outcomeOf(response, endedAt)
  const verdict = Verdict.judge(rules, standingOf(claim), outcome, yield* Random.next)
  const { attempted } = yield* Observer
  const { projectId } = claim.webhook
  attempted?.({ projectId, outcome: verdict._tag, answer: answerOf(response), durationMillis })
  const made: Attempt = { at, durationMillis, result: resultOf(response) }
  if (verdict._tag !== "Disabled") return { ...verdict, attempt: made }
  const announcement = yield* announce(claim, Math.round(endedAt), verdict.reason)
  return { _tag: "Disabled", attempt: made, announcement } satisfies Settlement
})

/** Logs what an operator wants to know: that a delivery or a webhook gets no further attempts. */
const logEnd = (
  { attemptNumber, event, webhook: { projectId, webhookId } }: Claim,
  settlement: Settlement,
  settled: Settled,
): Effect.Effect<void> => {
  if (settlement._tag !== "Failed" && settlement._tag !== "Disabled") return Effect.void
  const { result } = settlement.attempt
  const last = { projectId, webhookId, eventId: event.id, attemptNumber, result }
  return settled === "WebhookDisabled"
    ? LastAttempt.logDisabled(last)
    : LastAttempt.logGivenUp(last)
}

/**
 * Settles a claim. Repeats this while the store is unavailable, until the lease has expired and the
 * delivery is claimed again anyway.
 */
const settleRepeatedly = (claim: Claim, settlement: Settlement, { isStopping }: Rules) =>
  Effect.flatMap(Outbox, (outbox) =>
    Effect.retry(outbox.settle(claim, settlement), {
      schedule: Schedule.spaced(settleRetryMillis),
      times: settleMillis / settleRetryMillis,
      while: () => !isStopping(),
    }),
  )

/** Records an attempt. Returns whether the delivery is delivered. */
const settle = Effect.fnUntraced(
  function* (claim: Claim, settlement: Settlement, rules: Rules) {
    const settled = yield* settleRepeatedly(claim, settlement, rules)
    if (settled === "Lapsed") return false
    yield* logEnd(claim, settlement, settled)
    if (settlement._tag === "Disabled" && settled === "WebhookDisabled") {
      yield* (yield* Hooks).event(settlement.announcement)
    }
    return settlement._tag === "Delivered"
  },
  Effect.catch((error) =>
    Effect.as(Effect.logWarning("An attempt cannot be recorded", Cause.fail(error.cause)), false),
  ),
)

/** Releases a claim, so that the delivery can be claimed again before the lease expires. */
export const release = (claim: Claim, rules: Rules): Effect.Effect<void, never, Outbox> =>
  Effect.ignoreCause(settleRepeatedly(claim, { _tag: "Released" }, rules))

/**
 * Attempts a delivery and settles it. Returns whether it is delivered. If it is interrupted during the
 * attempt, it releases the claim; afterwards, it still records the attempt.
 *
 * @param onAnswer - called between the attempt and its settlement, with whether the attempt succeeded
 */
export const deliver = (
  claim: Claim,
  rules: Rules,
  onAnswer: (succeeded: boolean) => void,
): Effect.Effect<boolean, never, Outbox | WebhookTransport> =>
  Effect.uninterruptibleMask((restore) =>
    restore(makeAttempt(claim, rules)).pipe(
      Effect.onInterrupt(() => release(claim, rules)),
      Effect.tap((settlement) => Effect.sync(() => onAnswer(settlement._tag === "Delivered"))),
      Effect.flatMap((settlement) => settle(claim, settlement, rules)),
      Effect.catchDefect((defect) =>
        Effect.flatMap(Faults, (faults) =>
          Effect.as(faults.defect("A delivery cannot be settled", Cause.die(defect)), false),
        ),
      ),
    ),
  )
