/** Makes one attempt: signs, sends, and settles the delivery. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type { StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter } from "../base/faults.ts"
import type { Traceparent } from "../base/headers.ts"
import { printableCause } from "../base/printable-cause.ts"
import {
  type Event,
  type EventId,
  type EventType,
  Hooks,
  eventTraceparent,
  knownEventTypes,
  makeEvent,
  newEventId,
} from "../events/event.ts"
import { Observer } from "../telemetry/observer.ts"
import { Tracing } from "../telemetry/tracing.ts"
import { maxPrefetchMillis } from "./claim-budget.ts"
import { attemptData } from "./delivery-activity.ts"
import { Encryption, SecretUnreadable } from "./encryption.ts"
import {
  type Attempt,
  type AttemptResult,
  type Claim,
  type FailingAnnouncement,
  Outbox,
  type SettleResult,
  announcementsOf,
} from "./outbox.ts"
import { signMessage, signMessageAsymmetric } from "./signature.ts"
import {
  TransportError,
  type TransportRequest,
  type TransportResponse,
  WebhookTransport,
} from "./transport.ts"
import {
  type Verdict,
  type VerdictOutcome,
  type VerdictRules,
  type WebhookStanding,
  decideFailingPercent,
  decideVerdict,
} from "./verdict.ts"

/**
 * A request's header fields. Fields written anew in each attempt may have another type.
 *
 * @param own - the webhook's own, none of which has the name of another
 */
export const signedRequestHeaders = <Own>(
  { id }: Pick<Event, "id">,
  timestamp: Own,
  signature: Own,
  traceparent: Traceparent | undefined,
  own: Iterable<readonly [name: string, value: Own]>,
) => ({
  ...Object.fromEntries(own),
  "content-type": "application/json",
  "user-agent": "Tenure",
  "webhook-id": id,
  "webhook-timestamp": timestamp,
  "webhook-signature": signature,
  ...(traceparent !== undefined && { traceparent }),
})

/**
 * Creates a claimed delivery's request, signed with all its webhook's secrets and keys. Fails with
 * `SecretUnreadable` if one is unreadable, or the headers are: no request is sent without these.
 *
 * @param now - milliseconds since the epoch
 * @param traceparent - the trace the receiver may continue
 */
const makeSignedRequest = Effect.fnUntraced(function* (
  { event, webhook }: Claim,
  now: number,
  traceparent: Traceparent | undefined,
) {
  const message = { id: event.id, timestamp: Math.floor(now / 1000), body: event.body }
  const encryption = yield* Encryption
  const signatures: Array<string> = []
  for (const stored of webhook.secrets) {
    const secret = yield* encryption.secret(webhook, stored)
    signatures.push(signMessage(message, secret))
  }
  if (webhook.signingKey !== undefined) {
    const key = yield* encryption.signingKey(webhook, webhook.signingKey)
    signatures.push(yield* signMessageAsymmetric(message, key))
  }
  if (signatures.length === 0) {
    return yield* new SecretUnreadable({
      webhookId: webhook.webhookId,
      problem: "it is missing",
      fault: "Invalid",
    })
  }
  return {
    url: webhook.url,
    headers: signedRequestHeaders(
      event,
      String(message.timestamp),
      signatures.join(" "),
      traceparent,
      webhook.headers === undefined ? [] : yield* encryption.headers(webhook, webhook.headers),
    ),
    body: event.body,
  } satisfies TransportRequest
})

/** A delivery's last attempt. */
export interface LastAttempt {
  readonly projectId: string
  readonly webhookId: string
  readonly eventId: string
  /** Its number, from 1. */
  readonly attemptNumber: number
  readonly result: Attempt["result"]
}

const logging =
  (message: string) =>
  ({ attemptNumber, eventId, projectId, result, webhookId }: LastAttempt): Effect.Effect<void> =>
    Effect.annotateLogs(Effect.logWarning(message), {
      project_id: projectId,
      webhook_id: webhookId,
      event_id: eventId,
      attempts: attemptNumber,
      ...(result._tag === "Answered" ? { status: result.status } : { reason: result.reason }),
    })

/** Logs a delivery's last attempt. */
export const logGivenUp = logging("A delivery was given up")

/** Logs that the attempt has disabled its webhook. */
const logDisabled = logging("A webhook was disabled")

/** The rules for all claims. */
export interface AttemptRules extends VerdictRules {
  /** The time for one attempt, in milliseconds. */
  readonly timeout: number
  /** Tells whether the dispatcher is stopping: then failed settlements are not repeated. */
  readonly isStopping: () => boolean
}

const settleRetryMillis = 1000

// How much longer than its attempt a claim lasts: the time for a slow store to settle it.
const settleMillis = 15_000

/** How long a claim lasts, in milliseconds: it may wait, is attempted, and settled. */
export const leaseMillis = ({ timeout }: Pick<AttemptRules, "timeout">): number =>
  maxPrefetchMillis + timeout + settleMillis

/** Sends the request. A transport defect is a failed attempt like any other. */
const post = Effect.fnUntraced(function* (
  claim: Claim,
  at: number,
  timeout: number,
  traceparent: Traceparent | undefined,
) {
  const faults = yield* ErrorReporter
  const transport = yield* WebhookTransport
  const request = Effect.catchTag(
    makeSignedRequest(claim, at, traceparent),
    "SecretUnreadable",
    (error) =>
      Effect.logWarning(error.message).pipe(
        Effect.andThen(faults.failure("A notification cannot be signed", error)),
        Effect.andThen(Effect.fail(new TransportError({ reason: error._tag }))),
      ),
  )
  let received: (() => TransportResponse) | undefined
  const sent = Effect.flatMap(request, (signed) =>
    transport.send(signed, (given) => void (received = given)),
  )
  return yield* sent.pipe(
    Effect.timeoutOrElse({
      duration: timeout,
      // A receiver that has sent its status has decided, even if its body does not end.
      orElse: () =>
        received === undefined
          ? Effect.fail(new TransportError({ reason: "Timeout" }))
          : Effect.sync(received),
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
  const traceparent = eventTraceparent(claim.event.body)
  if (tracing === undefined) return yield* post(claim, at, timeout, traceparent)
  const { attemptNumber, webhook } = claim
  return yield* tracing.attempt({ url: webhook.url, attemptNumber, traceparent }, (own) =>
    post(claim, at, timeout, own),
  )
})

type Response = Result.Result<TransportResponse, TransportError>

const resultOf = (response: Response): Attempt["result"] =>
  Result.isSuccess(response)
    ? { _tag: "Answered", status: response.success.status, body: response.success.body }
    : { _tag: "Failed", reason: response.failure.reason }

/** Returns when an attempt ended, in milliseconds since the epoch. */
const endOf = ({ at, durationMillis }: Attempt): number => at + durationMillis

/** Describes a response for the observer. */
const answerOf = (response: Response): number | string =>
  Result.isSuccess(response) ? response.success.status : response.failure.reason

const outcomeOf = (response: Response, endedAt: number): VerdictOutcome =>
  Result.isSuccess(response)
    ? { endedAt, status: response.success.status, retryAfter: response.success.retryAfter }
    : { endedAt, status: undefined, retryAfter: undefined }

const standingOf = ({ attemptNumber, webhook }: Claim): WebhookStanding => ({
  attemptNumber,
  failures: webhook.failures,
  failingSince: webhook.failingSince,
})

/**
 * Creates an event for the project's other webhooks.
 *
 * @param order - which of the settlement's events it is. Their ids give the order in the feed
 */
const makeAnnouncement = (
  newId: (at: number) => EventId,
  { event, webhook: { projectId, webhookId } }: Claim,
  attempt: Attempt,
  { data, order, type }: { readonly type: EventType; readonly order: 0 | 1; readonly data: object },
): Event => {
  const at = Math.round(endOf(attempt))
  const last_attempt = attemptData({ ...attempt, eventId: event.id })
  return makeEvent({
    id: newId(at + order),
    projectId,
    type,
    at,
    data: { project_id: projectId, webhook_id: webhookId, ...data, last_attempt },
  })
}

/** Announces how long the webhook has been failing, if that is a share to announce. */
const announceFailing = (
  newId: (at: number) => EventId,
  claim: Claim,
  attempt: Attempt,
  { disableAfter }: VerdictRules,
): FailingAnnouncement | undefined => {
  const { failingSince, failures } = claim.webhook
  const percent = decideFailingPercent(failingSince, endOf(attempt), disableAfter)
  if (failingSince === undefined || percent === undefined) return undefined
  const data = {
    percent,
    failing_since: new Date(failingSince).toISOString(),
    disables_at: new Date(failingSince + disableAfter).toISOString(),
    failures: failures + 1,
  }
  const type = knownEventTypes.failing
  const event = makeAnnouncement(newId, claim, attempt, { type, order: 0, data })
  return { percent, failingSince, event }
}

/** Completes the verdict on a failed attempt with the attempt and the events to announce. */
const failureWith = Effect.fnUntraced(function* (
  verdict: Exclude<Verdict, { readonly _tag: "Delivered" }>,
  claim: Claim,
  attempt: Attempt,
  rules: VerdictRules,
): Effect.fn.Return<AttemptResult, never, never> {
  const crypto = yield* WebCrypto
  const newId = (at: number) => newEventId(crypto, at)
  if (verdict._tag !== "Disabled") {
    return { ...verdict, attempt, failing: announceFailing(newId, claim, attempt, rules) }
  }
  const { _tag, reason } = verdict
  const type = knownEventTypes.disabled
  return {
    _tag,
    attempt,
    announcement: makeAnnouncement(newId, claim, attempt, { type, order: 1, data: { reason } }),
    failing: reason === "gone" ? undefined : announceFailing(newId, claim, attempt, rules),
  }
})

/** Makes one attempt and judges it. */
const makeAttempt = Effect.fnUntraced(function* (claim: Claim, rules: AttemptRules) {
  const at = yield* Clock.currentTimeMillis
  const start = yield* Clock.monotonicTimeNanos
  const response = yield* Effect.result(send(claim, at, rules.timeout))
  const durationMillis = Number((yield* Clock.monotonicTimeNanos) - start) / 1_000_000
  const made: Attempt = { at, durationMillis, result: resultOf(response) }
  const outcome = outcomeOf(response, endOf(made))
  const verdict = decideVerdict(rules, standingOf(claim), outcome, yield* Random.next)
  const { attempted } = yield* Observer
  const { projectId } = claim.webhook
  attempted?.({ projectId, outcome: verdict._tag, answer: answerOf(response), durationMillis })
  if (verdict._tag === "Delivered") return { ...verdict, attempt: made }
  return yield* failureWith(verdict, claim, made, rules)
})

/** Logs that a delivery or a webhook gets no further attempts, for operators. */
const logEnd = (
  { attemptNumber, event, webhook: { projectId, webhookId } }: Claim,
  settlement: AttemptResult,
  settled: SettleResult,
): Effect.Effect<void> => {
  if (settlement._tag !== "Failed" && settlement._tag !== "Disabled") return Effect.void
  const { result } = settlement.attempt
  const last = { projectId, webhookId, eventId: event.id, attemptNumber, result }
  return settled === "WebhookDisabled" ? logDisabled(last) : logGivenUp(last)
}

/**
 * Settles a claim. Repeats this while the store is unavailable, until the lease has expired and the
 * delivery is claimed again anyway.
 */
const settleRepeatedly = (
  claim: Claim,
  settlement: AttemptResult,
  rules: AttemptRules,
  retries = settleMillis / settleRetryMillis,
): Effect.Effect<SettleResult, StoreUnavailable, Outbox> =>
  Effect.catchTag(
    Effect.flatMap(Outbox, (outbox) => outbox.settle(claim, settlement)),
    "StoreUnavailable",
    (error) =>
      retries === 0 || rules.isStopping()
        ? Effect.fail(error)
        : Effect.delay(settleRepeatedly(claim, settlement, rules, retries - 1), settleRetryMillis),
  )

/** Records an attempt. Returns whether the delivery is delivered. */
const settle = Effect.fnUntraced(
  function* (claim: Claim, settlement: AttemptResult, rules: AttemptRules) {
    const settled = yield* settleRepeatedly(claim, settlement, rules)
    if (settled === "Lapsed") return false
    yield* logEnd(claim, settlement, settled)
    if (settled === "WebhookFailing" || settled === "WebhookDisabled") {
      yield* Effect.forEach(announcementsOf(settlement), (yield* Hooks).event, { discard: true })
    }
    return settlement._tag === "Delivered"
  },
  Effect.catch((error) =>
    Effect.as(
      Effect.logWarning("An attempt cannot be recorded", printableCause(Cause.fail(error.cause))),
      false,
    ),
  ),
)

/** Releases a claim, so the delivery can be claimed again before the lease expires. */
export const releaseClaim = (
  claim: Claim,
  rules: AttemptRules,
): Effect.Effect<void, never, Outbox> =>
  Effect.ignoreCause(settleRepeatedly(claim, { _tag: "Released" }, rules))

/**
 * Attempts a delivery and settles it. Returns whether it is delivered. If it is interrupted during the
 * attempt, it releases the claim; afterwards, it still records the attempt.
 *
 * @param onAnswer - called between the attempt and its settlement, with whether the attempt succeeded
 */
export const attemptDelivery = (
  claim: Claim,
  rules: AttemptRules,
  onAnswer: (succeeded: boolean) => void,
): Effect.Effect<boolean, never, Outbox | WebhookTransport> =>
  Effect.uninterruptibleMask((restore) =>
    restore(makeAttempt(claim, rules)).pipe(
      Effect.onInterrupt(() => releaseClaim(claim, rules)),
      Effect.tap((settlement) => Effect.sync(() => onAnswer(settlement._tag === "Delivered"))),
      Effect.flatMap((settlement) => settle(claim, settlement, rules)),
      Effect.catchDefect((defect) =>
        Effect.flatMap(ErrorReporter, (faults) =>
          Effect.as(faults.defect("A delivery cannot be settled", Cause.die(defect)), false),
        ),
      ),
    ),
  )
