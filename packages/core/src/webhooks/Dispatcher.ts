/** The dispatcher: claims deliveries that are due, and has each of them attempted. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { Faults } from "../base/Faults.ts"
import * as Moment from "../base/Moment.ts"
import * as Outage from "../base/Outage.ts"
import * as Setting from "../base/Setting.ts"
import * as Claims from "./Claims.ts"
import * as InFlight from "./InFlight.ts"
import { type Claimed, Outbox } from "./Outbox.ts"
import * as Queueing from "./Queueing.ts"
import * as Room from "./Room.ts"
import * as Waking from "./Waking.ts"
import type { WebhookId } from "./Webhook.ts"
import type { WebhookTransport } from "./WebhookTransport.ts"

/** The options of the dispatcher. */
export const options = Setting.struct({
  /**
   * The delays after the first failed attempt, the second, and so on. The default makes ten
   * attempts in a little over three days. Default: `["5 seconds", "5 minutes", "30 minutes", "2
   * hours", "5 hours", "10 hours", "14 hours", "20 hours", "24 hours"]`.
   */
  retrySchedule: Setting.withDefault(
    Setting.list(Setting.millis({ least: 0, most: 30 * 86_400_000 })),
    [
      "5 seconds",
      "5 minutes",
      "30 minutes",
      "2 hours",
      "5 hours",
      "10 hours",
      "14 hours",
      "20 hours",
      "24 hours",
    ],
  ),
  /**
   * The time for one attempt, from resolving the name to the end of the response. Default: `"15
   * seconds"`.
   */
  timeout: Setting.withDefault(Setting.millis({ most: 3_600_000 }), "15 seconds"),
  /** How long all attempts for a webhook may fail before it is disabled. Default: `"5 days"`. */
  disableAfter: Setting.withDefault(Setting.millis(), "5 days"),
  /** The most attempts in flight at the same time, over all webhooks. Default: `1024`. */
  maxInFlight: Setting.withDefault(Setting.count(), 1024),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

const storeRetryMillis = 1000

// When the dispatcher stops, it waits no longer than this for the store.
const stopTimeoutMillis = 5000

// A store may report due deliveries that it cannot return yet: this keeps the loop from spinning.
const shortestPauseMillis = 50

/** Delivers events from the outbox for as long as its layer lives. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Aborts the attempts in flight for a webhook that was removed. Afterwards none starts in this
     * process, not even one that was claimed. Other processes learn of the removal from the outbox.
     */
    readonly cancel: (webhookId: WebhookId) => Effect.Effect<void>
  }
>()("@tenure/core/Dispatcher") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<Dispatcher, never, Outbox | WebhookTransport> =>
    Layer.effect(Dispatcher, make(settings))
}

/** Returns after how long the store may have more to claim, or `undefined` if that depends on others. */
const pauseMillis = ({ claims, nextDueMillis }: Claimed): number | undefined =>
  nextDueMillis === undefined || (claims.length > 0 && nextDueMillis === 0)
    ? nextDueMillis
    : Math.max(shortestPauseMillis, nextDueMillis)

const sooner = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

/** Waits until there may be more to claim: for a time, or until it is woken. */
const sleep = (wake: Latch.Latch, millis: number | undefined): Effect.Effect<unknown> => {
  if (millis === 0) return Effect.yieldNow
  return millis === undefined ? wake.await : Effect.timeoutOption(wake.await, millis)
}

const make = Effect.fnUntraced(function* (settings: Settings) {
  const outbox = yield* Outbox
  const faults = yield* Faults
  const fork = Effect.runForkWith(yield* Effect.context<Outbox | WebhookTransport>())
  const claiming = Outage.make(faults, "Deliveries cannot be claimed")
  const watching = Outage.make(faults, "Changes of the outbox cannot be watched")
  const wake = yield* Latch.make()
  const clock = yield* Clock.Clock
  const now = () => Moment.tick(clock)
  const waking = Waking.make()
  let isFull = false
  let isStopping = false
  const rules: Claims.Rules = { ...settings, isStopping: () => isStopping }
  const leaseMillis = Claims.leaseMillis(settings)
  const inFlight = InFlight.make({
    deliver: (claim, onAnswer) => fork(Claims.deliver(claim, rules, onAnswer)),
    release: (claim) => fork(Effect.uninterruptible(Claims.release(claim, rules))),
    onEnd: (webhookId, isSmooth) => {
      const isReason = inFlight.isLow(webhookId) && waking.settled(webhookId)
      if (isReason || !isSmooth || isFull) wake.openUnsafe()
    },
    now,
    mostQueued: Queueing.most(settings.maxInFlight),
  })

  /** Claims what is due and starts it. Returns the time until there may be more: 0 if at once. */
  const round = Effect.gen(function* () {
    wake.closeUnsafe()
    inFlight.beginClaim()
    waking.beginClaim()
    const room = Room.of(inFlight.count(), settings.maxInFlight)
    isFull = room === undefined
    if (room === undefined) return undefined
    const ahead = inFlight.sought(room.ahead)
    const claimed = yield* outbox.claim({ ...room, ahead, leaseMillis })
    claiming.succeeded()
    if (isStopping) {
      yield* Effect.forEach(claimed.claims, (claim) => Claims.release(claim, rules), {
        concurrency: "unbounded",
        discard: true,
      })
      return undefined
    }
    for (const claim of claimed.claims) inFlight.add(claim)
    return sooner(pauseMillis(claimed), waking.endClaim(claimed.keptBack, inFlight.has))
  }).pipe(Effect.catchCause((cause) => Effect.as(claiming.failed(cause), storeRetryMillis)))

  const watch = outbox.nextChange.pipe(
    Effect.map((change) => {
      watching.succeeded()
      if (change._tag === "Removed") inFlight.cancel(change.webhookId)
      else wake.openUnsafe()
    }),
    Effect.catchCause((cause) =>
      Effect.andThen(watching.failed(cause), Effect.sleep(storeRetryMillis)),
    ),
  )

  yield* Effect.forkScoped(Effect.forever(watch))
  // A claim is not interrupted halfway: what it claims would wait for its lease to pass.
  const rounds = yield* Effect.forkScoped(
    Effect.forever(Effect.flatMap(Effect.uninterruptible(round), (pause) => sleep(wake, pause))),
  )
  const stop = Effect.gen(function* () {
    isStopping = true
    yield* Fiber.interrupt(rounds)
    yield* inFlight.interruptAll
  })
  yield* Effect.addFinalizer(() =>
    Effect.timeoutOption(Effect.interruptible(stop), stopTimeoutMillis),
  )

  return Dispatcher.of({
    cancel: (webhookId) => Effect.sync(() => inFlight.cancel(webhookId)),
  })
})
