/** The dispatcher: claims deliveries that are due, sends them, and settles them. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { InvalidInput } from "./InvalidInput.ts"
import { type Attempt, type Claim, Outbox, type Settlement } from "./Outbox.ts"
import * as RetrySchedule from "./RetrySchedule.ts"
import * as Setting from "./Setting.ts"
import type { WebhookId } from "./Webhook.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import { type Answer, type Outgoing, TransportError, WebhookTransport } from "./WebhookTransport.ts"

/** Options of the dispatcher. */
export interface Options {
  /** Delays after the first failed attempt, the second, and so on; `RetrySchedule.standard` by default. */
  readonly retrySchedule?: ReadonlyArray<Duration.Input> | undefined
  /** The time for one attempt, from the look-up of the name to the end of the response; 15 s by default. */
  readonly timeout?: Duration.Input | undefined
  /** Attempts in flight at the same time, over all webhooks; 1,024 by default. */
  readonly maxInFlight?: number | undefined
}

// Attempts in flight for one webhook.
const perWebhook = 4

// What a claim may outlive its attempt by: time to settle, with a store that is slow.
const leaseMarginMillis = 15_000

const storeRetryMillis = 1000

const longestDelay = 30 * 86_400_000

/** Delivers what is in the outbox for as long as its layer lives. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Aborts the attempts in flight for a webhook that has been removed. Afterwards none starts in
     * this process, not even one that was claimed before.
     */
    readonly cancel: (webhookId: WebhookId) => Effect.Effect<void>
  }
>()("@tenure/core/Dispatcher") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<Dispatcher, InvalidInput, Outbox | WebhookTransport> =>
    Layer.effect(Dispatcher, make(options))
}

/** The request of one attempt, signed at `now` (milliseconds since the epoch). */
const outgoing = ({ event, webhook }: Claim, now: number): Outgoing => {
  const message = { id: event.id, timestamp: Math.floor(now / 1000), body: event.body }
  return {
    url: webhook.url,
    headers: {
      "content-type": "application/json",
      "user-agent": "Tenure",
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": webhook.secrets
        .map((secret) => WebhookSignature.sign(message, secret))
        .join(" "),
    },
    body: event.body,
  }
}

/** Reads a `Retry-After` field, which is a number of seconds or a date (RFC 9110, 10.2.3). */
const retryAfterMillis = (field: string | undefined, now: number): number => {
  if (field === undefined) return 0
  const delay = /^[0-9]{1,10}$/.test(field) ? Number(field) * 1000 : Date.parse(field) - now
  return Number.isNaN(delay) ? 0 : Math.max(0, delay)
}

const isSuccess = (status: number): boolean => status >= 200 && status <= 299

/** What becomes of a delivery after an attempt that ended at `now`. */
const settlementOf = (
  attempt: Attempt,
  answer: Result.Result<Answer, TransportError>,
  next: (retryAfterMillis: number) => number | undefined,
): Settlement => {
  if (Result.isSuccess(answer)) {
    const { status } = answer.success
    if (isSuccess(status)) return { _tag: "Delivered", attempt }
    if (status === 410) return { _tag: "Gone", attempt }
  }
  const asked = Result.isSuccess(answer) ? answer.success.retryAfter : undefined
  const delayMillis = next(retryAfterMillis(asked, attempt.at + attempt.durationMillis))
  return delayMillis === undefined
    ? { _tag: "Failed", attempt }
    : { _tag: "Retry", attempt, delayMillis }
}

const make = Effect.fnUntraced(function* (options: Options) {
  const outbox = yield* Outbox
  const transport = yield* WebhookTransport
  const scope = yield* Effect.scope
  const schedule = yield* Effect.forEach(options.retrySchedule ?? RetrySchedule.standard, (delay) =>
    Setting.millis("webhooks.retrySchedule", delay, { least: 0, most: longestDelay }),
  )
  const timeout = yield* Setting.millis("webhooks.timeout", options.timeout ?? "15 seconds")
  const maxInFlight = yield* Setting.count("webhooks.maxInFlight", options.maxInFlight ?? 1024)

  const wake = yield* Latch.make()
  const inFlight = new Map<WebhookId, Set<Fiber.Fiber<void>>>()
  let attempts = 0
  // Webhooks cancelled while a claim was under way: what it brings for them is dropped.
  const cancelledMeanwhile = new Set<WebhookId>()

  const send = Effect.fnUntraced(function* (claim: Claim) {
    const at = yield* Clock.currentTimeMillis
    const answer = yield* transport.send(outgoing(claim, at)).pipe(
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.fail(new TransportError({ reason: "Timeout" })),
      }),
      Effect.result,
    )
    const durationMillis = (yield* Clock.currentTimeMillis) - at
    const result = Result.isSuccess(answer) ? answer.success.status : answer.failure.reason
    const random = yield* Random.next
    return settlementOf({ at, durationMillis, result }, answer, (asked) =>
      RetrySchedule.delay(schedule, claim.attempt, random, asked),
    )
  })

  /** Settles for as long as the lease may last; after that the delivery is claimed anew anyway. */
  const settle = (claim: Claim, settlement: Settlement) =>
    outbox.settle(claim, settlement).pipe(
      Effect.retry({
        schedule: Schedule.spaced(storeRetryMillis),
        times: leaseMarginMillis / storeRetryMillis,
      }),
      Effect.catch((error) => Effect.logWarning("An attempt cannot be recorded", error.cause)),
      Effect.asVoid,
    )

  /** Gives a claim back, for others to go on at once; without that they wait for its lease. */
  const release = (claim: Claim) => Effect.ignore(outbox.settle(claim, { _tag: "Released" }))

  const attempt = (claim: Claim) =>
    send(claim).pipe(
      Effect.onInterrupt(() => release(claim)),
      Effect.flatMap((settlement) => settle(claim, settlement)),
      Effect.catchCause((cause) => Effect.logError("A delivery attempt died", cause)),
    )

  const track = (webhookId: WebhookId, fiber: Fiber.Fiber<void>): void => {
    const fibers = inFlight.get(webhookId) ?? new Set()
    inFlight.set(webhookId, fibers.add(fiber))
    attempts++
    fiber.addObserver(() => {
      attempts--
      fibers.delete(fiber)
      if (fibers.size === 0) inFlight.delete(webhookId)
      wake.openUnsafe()
    })
  }

  /** Claims what is due and starts it; gives the time until there may be more, 0 if at once. */
  const round = Effect.gen(function* () {
    wake.closeUnsafe()
    cancelledMeanwhile.clear()
    const limit = maxInFlight - attempts
    if (limit <= 0) return undefined
    const leaseMillis = timeout + leaseMarginMillis
    const { claims, nextDueMillis } = yield* outbox.claim({ limit, perWebhook, leaseMillis })
    for (const claim of claims) {
      if (cancelledMeanwhile.has(claim.webhook.id)) continue
      const fiber = yield* Effect.forkIn(attempt(claim), scope)
      track(claim.webhook.id, fiber)
    }
    return claims.length > 0 ? 0 : nextDueMillis
  }).pipe(
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning("Deliveries cannot be claimed", cause), storeRetryMillis),
    ),
  )

  const sleep = (millis: number | undefined): Effect.Effect<unknown> => {
    if (millis === 0) return Effect.yieldNow
    return millis === undefined ? wake.await : Effect.timeoutOption(wake.await, millis)
  }

  yield* Effect.forkScoped(Effect.forever(Effect.andThen(outbox.changes, wake.open)))
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(round, sleep)))

  return Dispatcher.of({
    cancel: (webhookId) =>
      Effect.suspend(() => {
        cancelledMeanwhile.add(webhookId)
        return Fiber.interruptAll(inFlight.get(webhookId) ?? [])
      }),
  })
})
