/** The loop of a dispatcher: it claims deliveries that are due, and has each of them attempted. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Moment from "../base/Moment.ts"
import type * as Outage from "../base/Outage.ts"
import type { ProjectId } from "../base/Project.ts"
import * as Claims from "./Claims.ts"
import * as InFlight from "./InFlight.ts"
import { type Claimed, Outbox } from "./Outbox.ts"
import * as Queueing from "./Queueing.ts"
import * as Room from "./Room.ts"
import * as Waking from "./Waking.ts"
import type { WebhookId } from "./Webhook.ts"
import type { WebhookTransport } from "./WebhookTransport.ts"

/** The rules of a loop. */
export interface Rules extends Omit<Claims.Rules, "isStopping"> {
  /** The most attempts in flight at the same time, over all webhooks. */
  readonly maxInFlight: number
}

/** After how long a store that did not answer is asked again, in milliseconds. */
export const storeRetryMillis = 1000

// When a loop stops, it waits no longer than this for the store.
const stopTimeoutMillis = 5000

// A store may report due deliveries that it cannot return yet: this keeps the loop from spinning.
const shortestPauseMillis = 50

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

/** Claims and attempts deliveries, for as long as its scope lives. */
export interface DeliveryLoop {
  readonly cancel: (webhookId: WebhookId) => void
  readonly cancelProject: (projectId: ProjectId) => void
  /** Has it look for something to claim. */
  readonly wake: () => void
  /** Waits until nothing is due any more, and no attempt is in flight. */
  readonly idle: Effect.Effect<void>
}

/**
 * Starts a loop.
 *
 * @param claiming - reports outages of the store
 */
export const start = Effect.fnUntraced(function* (
  settings: Rules,
  claiming: Outage.Outage,
): Effect.fn.Return<DeliveryLoop, never, Outbox | WebhookTransport | Scope.Scope> {
  const outbox = yield* Outbox
  const fork = Effect.runForkWith(yield* Effect.context<Outbox | WebhookTransport>())
  const wake = yield* Latch.make()
  const clock = yield* Clock.Clock
  const now = () => Moment.tick(clock)
  const waking = Waking.make()
  const idlers = new Set<Latch.Latch>()
  let isFull = false
  let isStopping = false
  const rules: Claims.Rules = { ...settings, isStopping: () => isStopping }
  const leaseMillis = Claims.leaseMillis(settings)
  const isEmpty = (): boolean => inFlight.count().all === 0
  const inFlight = InFlight.make({
    deliver: (claim, onAnswer) => fork(Claims.deliver(claim, rules, onAnswer)),
    release: (claim) => fork(Effect.uninterruptible(Claims.release(claim, rules))),
    onEnd: (webhookId, isSmooth) => {
      const isReason = inFlight.isLow(webhookId) && waking.settled(webhookId)
      const isAwaited = idlers.size > 0 && isEmpty()
      if (isReason || !isSmooth || isFull || isAwaited) wake.openUnsafe()
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
    // Those who come during the claim wait for the next one: this one may miss what they wait for.
    const waiting = [...idlers]
    const claimed = yield* outbox.claim({ ...room, ahead, leaseMillis })
    claiming.succeeded()
    if (isStopping) {
      yield* Effect.forEach(claimed.claims, (claim) => Claims.release(claim, rules), {
        concurrency: "unbounded",
        discard: true,
      })
      return undefined
    }
    const isIdle = claimed.claims.length === 0 && isEmpty()
    for (const claim of claimed.claims) inFlight.add(claim)
    const pause = sooner(pauseMillis(claimed), waking.endClaim(claimed.keptBack, inFlight.has))
    // What was settled during the claim may have made room for what the claim kept back.
    if (isIdle && pause !== 0) for (const idler of waiting) idler.openUnsafe()
    return pause
  }).pipe(Effect.catchCause((cause) => Effect.as(claiming.failed(cause), storeRetryMillis)))

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

  const idle = Effect.suspend(() => {
    const idler = Latch.makeUnsafe()
    idlers.add(idler)
    wake.openUnsafe()
    return Effect.ensuring(
      idler.await,
      Effect.sync(() => idlers.delete(idler)),
    )
  })
  const { cancel, cancelProject } = inFlight
  return { cancel, cancelProject, wake: () => void wake.openUnsafe(), idle }
})
