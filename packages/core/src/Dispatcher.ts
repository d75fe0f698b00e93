/** The dispatcher: claims deliveries that are due, sends them, and settles them. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Event from "./Event.ts"
import { Hooks } from "./Hooks.ts"
import * as Callback from "./internal/callback.ts"
import * as Uuid from "./internal/uuid.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import { type Attempt, type Claim, Outbox, type Settlement, type WebhookRef } from "./Outbox.ts"
import * as RetrySchedule from "./RetrySchedule.ts"
import * as Setting from "./Setting.ts"
import type { WebhookId } from "./Webhook.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import { type Answer, type Outgoing, TransportError, WebhookTransport } from "./WebhookTransport.ts"

/** Options of the dispatcher. */
export interface Options {
  /** Delays after the first failed attempt, the second, and so on; `RetrySchedule.standard` by default. */
  readonly retrySchedule?: ReadonlyArray<Duration.Input> | undefined
  /** The time for one attempt, from the look-up of the name to the end of the response, an hour at most; 15 s by default. */
  readonly timeout?: Duration.Input | undefined
  /** How long a webhook may do nothing but fail before it is disabled; 5 days by default. */
  readonly disableAfter?: Duration.Input | undefined
  /** Called with a webhook that was disabled; what it throws is logged and otherwise ignored. None by default. */
  readonly onDisabled?: ((webhook: WebhookRef) => void) | undefined
  /** Attempts in flight at the same time, over all webhooks; 1,024 by default. */
  readonly maxInFlight?: number | undefined
}

// Attempts in flight for one webhook.
const mostPerWebhook = 4

// How many claims it takes at least to use up what may be in flight.
const claimsToFill = 4

// What a claim may outlive its attempt by: time to settle, with a store that is slow.
const leaseMarginMillis = 15_000

const storeRetryMillis = 1000

// A store that does not answer is not waited for any longer when all ends.
const stopTimeoutMillis = 5000

// A store may say that there is more to claim while others hold it, or its webhooks are at their bound.
const shortestPauseMillis = 50

const longestDelay = 30 * 86_400_000

/** Delivers what is in the outbox for as long as its layer lives. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Aborts the attempts in flight for a webhook that has been removed. Afterwards none starts in
     * this process, not even one that has been claimed. Others learn of it from the outbox.
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
const outgoing = Effect.fnUntraced(function* ({ event, webhook }: Claim, now: number) {
  const message = { id: event.id, timestamp: Math.floor(now / 1000), body: event.body }
  const signatures = webhook.secrets.map((secret) => WebhookSignature.sign(message, secret))
  if (webhook.signingKey !== undefined) {
    signatures.push(yield* WebhookSignature.signAsymmetric(message, webhook.signingKey))
  }
  return {
    url: webhook.url,
    headers: {
      "content-type": "application/json",
      "user-agent": "Tenure",
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": signatures.join(" "),
    },
    body: event.body,
  } satisfies Outgoing
})

/** Reads a `Retry-After` field, which is a number of seconds or a date (RFC 9110, 10.2.3). */
const retryAfterMillis = (field: string | undefined, now: number): number => {
  if (field === undefined) return 0
  const delay = /^[0-9]{1,10}$/.test(field) ? Number(field) * 1000 : Date.parse(field) - now
  return Number.isNaN(delay) ? 0 : Math.max(0, delay)
}

/** Why a webhook was disabled: it said so, or has done nothing but fail. */
type DisabledReason = "gone" | "failing"

const resultOf = (answer: Result.Result<Answer, TransportError>): Attempt["result"] =>
  Result.isSuccess(answer)
    ? { _tag: "Answered", status: answer.success.status, body: answer.success.body }
    : { _tag: "Failed", reason: answer.failure.reason }

const isSuccess = (status: number): boolean => status >= 200 && status <= 299

// Answers of a receiver that has too much to do.
const busy = new Set([429, 502, 503, 504])

const busyPauseMillis = 1000

// After so many attempts that failed one after the other, a webhook is tried but now and then.
const failuresToBreak = 10

const longestBreakMillis = 60_000

/**
 * How long a webhook is left alone after an attempt that failed: as long as it has asked for, within
 * the time until that delivery's next attempt; a little if it is busy; longer if it fails again and
 * again.
 */
const holdMillis = (
  { result }: Attempt,
  failures: number,
  asked: number,
  untilNext: number,
): number => {
  if (asked > 0) return Math.min(asked, untilNext)
  if (failures >= failuresToBreak) return Math.min(longestBreakMillis, untilNext)
  const isBusy = result._tag === "Answered" && busy.has(result.status)
  return isBusy ? Math.min(busyPauseMillis, untilNext) : 0
}

/** Says that something does not work: once, until it has worked again. */
const complaint = (hooks: Hooks, message: string) => {
  let isSaid = false
  return {
    succeeded: (): void => {
      isSaid = false
    },
    failed: (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
      if (isSaid) return Effect.void
      isSaid = true
      return Effect.andThen(
        Effect.logWarning(message, cause),
        hooks.failure(message, Cause.squash(cause)),
      )
    },
  }
}

const make = Effect.fnUntraced(function* (options: Options) {
  const outbox = yield* Outbox
  const hooks = yield* Hooks
  const transport = yield* WebhookTransport
  const delays = yield* Setting.list(
    "webhooks.retrySchedule",
    options.retrySchedule ?? RetrySchedule.standard,
  )
  const schedule = yield* Effect.forEach(delays, (delay) =>
    Setting.millis("webhooks.retrySchedule", delay, { least: 0, most: longestDelay }),
  )
  const timeout = yield* Setting.millis("webhooks.timeout", options.timeout ?? "15 seconds", {
    least: 1,
    most: 3_600_000,
  })
  const disableAfter = yield* Setting.millis(
    "webhooks.disableAfter",
    options.disableAfter ?? "5 days",
  )
  const crypto = yield* WebCrypto
  const maxInFlight = yield* Setting.count("webhooks.maxInFlight", options.maxInFlight ?? 1024)
  const onDisabled = yield* Setting.callback("webhooks.onDisabled", options.onDisabled)
  const fork = Effect.runForkWith(yield* Effect.context())

  const claiming = complaint(hooks, "Deliveries cannot be claimed")
  const watching = complaint(hooks, "Changes of the outbox cannot be watched")
  const wake = yield* Latch.make()
  const inFlight = new Map<WebhookId, Set<Fiber.Fiber<void>>>()
  let attempts = 0
  let isStopping = false
  // Webhooks cancelled while a claim was under way: what it brings for them is dropped.
  const cancelledMeanwhile = new Set<WebhookId>()

  /** One request; a defect of the transport is one of the ways in which it can fail. */
  const post = (claim: Claim, at: number): Effect.Effect<Answer, TransportError> =>
    Effect.flatMap(outgoing(claim, at), transport.send).pipe(
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.fail(new TransportError({ reason: "Timeout" })),
      }),
      Effect.catchDefect((defect) =>
        Effect.andThen(
          hooks.defect("A delivery attempt ended in a defect", Cause.die(defect)),
          Effect.fail(new TransportError({ reason: "Defect" })),
        ),
      ),
    )

  const disabling = (claim: Claim, attempt: Attempt, reason: DisabledReason): Settlement => {
    const { projectId, webhookId } = claim.webhook
    const at = Math.round(attempt.at + attempt.durationMillis)
    const announcement = Event.make({
      id: Event.EventId(Uuid.v7(crypto, at)),
      projectId,
      type: Event.types.disabled,
      at,
      data: { project_id: projectId, webhook_id: webhookId, reason },
    })
    return { _tag: "Disabled", attempt, announcement }
  }

  /** What becomes of a delivery after an attempt that failed. */
  const failing = (
    claim: Claim,
    attempt: Attempt,
    random: number,
    retryAfter: string | undefined,
  ): Settlement => {
    const { failingSince, failures } = claim.webhook
    const end = attempt.at + attempt.durationMillis
    if (failingSince !== undefined && end - failingSince >= disableAfter) {
      return disabling(claim, attempt, "failing")
    }
    const asked = retryAfterMillis(retryAfter, end)
    const delayMillis = RetrySchedule.delay(schedule, claim.attempt, random, asked)
    const hold = holdMillis(attempt, failures + 1, asked, delayMillis ?? longestBreakMillis)
    return delayMillis === undefined
      ? { _tag: "Failed", attempt, holdMillis: hold }
      : { _tag: "Retry", attempt, delayMillis, holdMillis: hold }
  }

  const send = Effect.fnUntraced(function* (claim: Claim) {
    const at = yield* Clock.currentTimeMillis
    const start = yield* Clock.monotonicTimeNanos
    const answer = yield* Effect.result(post(claim, at))
    const durationMillis = Number((yield* Clock.monotonicTimeNanos) - start) / 1_000_000
    const attempt: Attempt = { at, durationMillis, result: resultOf(answer) }
    if (Result.isSuccess(answer)) {
      const { retryAfter, status } = answer.success
      if (isSuccess(status)) return { _tag: "Delivered", attempt } satisfies Settlement
      if (status === 410) return disabling(claim, attempt, "gone")
      return failing(claim, attempt, yield* Random.next, retryAfter)
    }
    return failing(claim, attempt, yield* Random.next, undefined)
  })

  /** Tells the host of a webhook that was disabled. */
  const tell = ({ projectId, webhookId }: WebhookRef, announcement: Event.Event) =>
    Effect.andThen(
      hooks.event(announcement),
      Callback.call("onDisabled", onDisabled, { projectId, webhookId }),
    )

  /** Settles for as long as the lease may last; after that the delivery is claimed anew anyway. */
  const settle = (claim: Claim, settlement: Settlement) =>
    outbox.settle(claim, settlement).pipe(
      Effect.retry({
        schedule: Schedule.spaced(storeRetryMillis),
        times: leaseMarginMillis / storeRetryMillis,
        while: () => !isStopping,
      }),
      Effect.tap((isSettled) =>
        isSettled && settlement._tag === "Disabled"
          ? tell(claim.webhook, settlement.announcement)
          : Effect.void,
      ),
      Effect.catch((error) => Effect.logWarning("An attempt cannot be recorded", error.cause)),
    )

  /** Gives a claim back, for others to go on at once; without that they wait for its lease. */
  const release = (claim: Claim) => Effect.ignoreCause(outbox.settle(claim, { _tag: "Released" }))

  // What has been sent is recorded, even if the attempt is interrupted in that moment.
  const attempt = (claim: Claim): Effect.Effect<void> =>
    Effect.uninterruptibleMask((restore) =>
      restore(send(claim)).pipe(
        Effect.onInterrupt(() => release(claim)),
        Effect.flatMap((settlement) => settle(claim, settlement)),
        Effect.catchDefect((defect) =>
          hooks.defect("A delivery cannot be settled", Cause.die(defect)),
        ),
        Effect.asVoid,
      ),
    )

  /** Starts an attempt and takes it down, in one step: no cancellation comes in between. */
  const start = (claim: Claim): void => {
    const webhookId = claim.webhook.webhookId
    const fiber = fork(attempt(claim))
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

  const abort = (webhookId: WebhookId): void => {
    cancelledMeanwhile.add(webhookId)
    for (const fiber of inFlight.get(webhookId) ?? []) fiber.interruptUnsafe()
  }

  /** Claims what is due and starts it; gives the time until there may be more, 0 if at once. */
  const round = Effect.gen(function* () {
    wake.closeUnsafe()
    cancelledMeanwhile.clear()
    const free = maxInFlight - attempts
    if (free <= 0) return undefined
    const limit = Math.min(free, Math.ceil(maxInFlight / claimsToFill))
    // The fewer are free, the fewer each webhook may have: the last go to those that have none.
    const perWebhook = Math.ceil((mostPerWebhook * free) / maxInFlight)
    const leaseMillis = timeout + leaseMarginMillis
    const { claims, nextDueMillis } = yield* outbox.claim({ limit, perWebhook, leaseMillis })
    if (isStopping) {
      yield* Effect.forEach(claims, release, { concurrency: "unbounded", discard: true })
      return undefined
    }
    for (const claim of claims) {
      if (!cancelledMeanwhile.has(claim.webhook.webhookId)) start(claim)
    }
    claiming.succeeded()
    if (claims.length > 0) return 0
    return nextDueMillis === undefined ? undefined : Math.max(shortestPauseMillis, nextDueMillis)
  }).pipe(Effect.catchCause((cause) => Effect.as(claiming.failed(cause), storeRetryMillis)))

  const sleep = (millis: number | undefined): Effect.Effect<unknown> => {
    if (millis === 0) return Effect.yieldNow
    return millis === undefined ? wake.await : Effect.timeoutOption(wake.await, millis)
  }

  const watch = outbox.changes.pipe(
    Effect.map((change) => {
      watching.succeeded()
      if (change._tag === "Removed") abort(change.webhookId)
      wake.openUnsafe()
    }),
    Effect.catchCause((cause) =>
      Effect.andThen(watching.failed(cause), Effect.sleep(storeRetryMillis)),
    ),
  )

  yield* Effect.forkScoped(Effect.forever(watch))
  // A claim under way is not given up halfway: what it claims would wait for its lease.
  const rounds = yield* Effect.forkScoped(
    Effect.forever(Effect.flatMap(Effect.uninterruptible(round), sleep)),
  )
  const stop = Effect.gen(function* () {
    isStopping = true
    yield* Fiber.interrupt(rounds)
    yield* Fiber.interruptAll([...inFlight.values()].flatMap((fibers) => [...fibers]))
  })
  yield* Effect.addFinalizer(() =>
    Effect.timeoutOption(Effect.interruptible(stop), stopTimeoutMillis),
  )

  return Dispatcher.of({
    cancel: (webhookId) => Effect.sync(() => abort(webhookId)),
  })
})
