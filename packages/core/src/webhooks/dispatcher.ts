/** Claims due deliveries and attempts them: claims in flight or waiting, the loop, and the service. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter, type OutageReporter, makeOutageReporter } from "../base/faults.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import * as Setting from "../base/setting.ts"
import { readMonotonicMillis } from "../base/time.ts"
import { type ProjectId, invariant } from "../base/values.ts"
import { type AttemptRules, attemptDelivery, leaseMillis, releaseClaim } from "./attempt.ts"
import {
  type ClaimCount,
  claimBudget,
  isPrefetchLow,
  makeClaimTrigger,
  maxPrefetch,
  maxPrefetchMillis,
  smoothedMillis,
  wantedPrefetch,
} from "./claim-budget.ts"
import {
  type Claim,
  type ClaimResult,
  Outbox,
  type OutboxChange,
  maxCountedBacklog,
} from "./outbox.ts"
import type { WebhookTransport } from "./transport.ts"
import type { WebhookId } from "./webhook.ts"

/** Functions to handle claims. */
export interface AttemptHandlers {
  /**
   * Starts to attempt and settle a delivery. The fiber returns whether it is delivered.
   *
   * @param onAnswer - called when the attempt has ended, before it is settled, with whether it succeeded
   */
  readonly deliver: (claim: Claim, onAnswer: (succeeded: boolean) => void) => Fiber.Fiber<boolean>
  /** Starts to release a claim. */
  readonly release: (claim: Claim) => Fiber.Fiber<void>
  /**
   * Called when a claim was settled or released. `isHealthy` is false if attempts for its webhook have
   * failed lately: the store may treat it in another way from now on.
   */
  readonly onEnd: (webhookId: WebhookId, isHealthy: boolean) => void
  /** The time in milliseconds, by the monotonic clock. */
  readonly now: () => number
  /** The maximum number of waiting claims. */
  readonly maxQueued: number
}

/** Claims. */
export interface InFlightAttempts {
  readonly count: () => ClaimCount
  /**
   * Forgets earlier cancellations, because they do not apply to future claims, and releases claims that
   * have waited too long.
   */
  readonly beginClaim: () => void
  /**
   * Starts a claim's attempt, or queues it. Releases it if its webhook or project was cancelled after
   * `beginClaim`.
   */
  readonly add: (claim: Claim) => void
  /**
   * Throws if the counts contradict each other. Claims end in observers, where an error would end the process,
   * so the loop checks the counts.
   */
  readonly checkCounts: () => void
  /** Tells whether a webhook has claims. */
  readonly has: (webhookId: WebhookId) => boolean
  /** Tells whether a webhook has few waiting claims. */
  readonly isLow: (webhookId: WebhookId) => boolean
  /** Returns how many more should wait, for each webhook, and not more than `most` for all together. */
  readonly wantedAhead: (most: number) => ReadonlyMap<WebhookId, number>
  /** Interrupts the attempts for a webhook, and releases the claims in its queue. */
  readonly cancel: (webhookId: WebhookId) => void
  /** Cancels all webhooks in a project. */
  readonly cancelProject: (projectId: ProjectId) => void
  /** Interrupts all attempts and releases all queued claims. Waits until both are done. */
  readonly interruptAll: Effect.Effect<void>
}

interface Waiting {
  readonly claim: Claim
  readonly since: number
}

/** A webhook's claims. */
interface Lane {
  readonly projectId: ProjectId
  /** Claims without a started attempt. */
  queue: Array<Waiting>
  /** All others. */
  readonly fibers: Set<Fiber.Fiber<unknown>>
  /** The number of unanswered attempts. */
  sending: number
  concurrency: number
  attemptMillis: number | undefined
  /** Whether none has failed since one was claimed while the webhook did not fail. */
  isHealthy: boolean
}

const makeLane = (projectId: ProjectId): Lane => ({
  projectId,
  queue: [],
  fibers: new Set(),
  sending: 0,
  concurrency: 0,
  attemptMillis: undefined,
  isHealthy: true,
})

/**
 * Starts without claims. Each method is one synchronous step, so no cancellation misses a starting
 * attempt.
 */
export const makeInFlightAttempts = ({
  deliver,
  maxQueued,
  now,
  onEnd,
  release,
}: AttemptHandlers): InFlightAttempts => {
  const lanes = new Map<WebhookId, Lane>()
  const cancelled = { webhooks: new Set<WebhookId>(), projects: new Set<ProjectId>() }
  const count = { all: 0, failing: 0, queued: 0 }

  /** Returns the maximum number of a webhook's waiting claims. */
  const share = (): number => Math.floor(maxQueued / Math.max(1, lanes.size))

  const laneOf = ({ webhook: { concurrency, failures, projectId, webhookId } }: Claim): Lane => {
    const lane = lanes.get(webhookId) ?? makeLane(projectId)
    lane.isHealthy = failures === 0
    lane.concurrency = concurrency
    lanes.set(webhookId, lane)
    return lane
  }

  const add = ({ webhook: { failures } }: Claim, change: 1 | -1): void => {
    count.all += change
    if (failures > 0) count.failing += change
  }

  /** Keeps a fiber until it has ended, and its claim with it. */
  const keep = <A>(
    lane: Lane,
    claim: Claim,
    fiber: Fiber.Fiber<A>,
    whenEnded: (exit: Exit.Exit<A>) => void,
  ): void => {
    const { webhookId } = claim.webhook
    lane.fibers.add(fiber)
    fiber.addObserver((exit) => {
      add(claim, -1)
      lane.fibers.delete(fiber)
      whenEnded(exit)
      if (lane.fibers.size === 0 && lane.queue.length === 0) lanes.delete(webhookId)
      onEnd(webhookId, lane.isHealthy)
    })
  }

  const releaseOne = (lane: Lane, claim: Claim): void => keep(lane, claim, release(claim), () => {})

  /** Empties a webhook's queue. The caller releases the claims. */
  const empty = (lane: Lane): ReadonlyArray<Claim> => {
    const { queue } = lane
    lane.queue = []
    count.queued -= queue.length
    return queue.map(({ claim }) => claim)
  }

  const releaseAll = (lane: Lane): void => {
    for (const claim of empty(lane)) releaseOne(lane, claim)
  }

  /**
   * Releases a webhook's whole queue if its first claim has waited too long, because the webhook hangs.
   */
  const expire = (lane: Lane): void => {
    const [first] = lane.queue
    if (first === undefined || now() - first.since <= maxPrefetchMillis) return
    lane.attemptMillis = undefined
    releaseAll(lane)
  }

  /** Starts waiting attempts, as far as the concurrency allows. */
  const startNext = (lane: Lane): void => {
    expire(lane)
    while (lane.sending < lane.concurrency) {
      const next = lane.queue.shift()
      if (next === undefined) return
      count.queued--
      start(lane, next.claim)
    }
  }

  const start = (lane: Lane, claim: Claim): void => {
    const begin = now()
    let isAnswered = false
    // They wait until the failure is settled: it may hold the webhook.
    let left: ReadonlyArray<Claim> = []
    const onAnswer = (succeeded: boolean): void => {
      if (isAnswered) return
      isAnswered = true
      lane.sending--
      if (succeeded) {
        lane.attemptMillis = smoothedMillis(lane.attemptMillis, now() - begin)
        startNext(lane)
      } else {
        lane.isHealthy = false
        left = empty(lane)
      }
    }
    lane.sending++
    keep(lane, claim, deliver(claim, onAnswer), (exit) => {
      const isDelivered = Exit.isSuccess(exit) && exit.value
      onAnswer(isDelivered)
      lane.isHealthy &&= isDelivered
      for (const one of left) releaseOne(lane, one)
    })
  }

  const isCancelled = ({ webhook: { projectId, webhookId } }: Claim): boolean =>
    cancelled.webhooks.has(webhookId) || cancelled.projects.has(projectId)

  const interrupt = (lane: Lane): void => {
    releaseAll(lane)
    for (const fiber of lane.fibers) fiber.interruptUnsafe()
  }

  return {
    count: () => count,
    beginClaim: () => {
      cancelled.webhooks.clear()
      cancelled.projects.clear()
      for (const lane of lanes.values()) expire(lane)
    },
    add: (claim) => {
      const lane = laneOf(claim)
      add(claim, 1)
      if (isCancelled(claim)) return releaseOne(lane, claim)
      // It has not waited until now, however long the claim took.
      lane.queue.push({ claim, since: now() })
      count.queued++
      startNext(lane)
    },
    checkCounts: () => {
      const { all, failing, queued } = count
      const areCounts = failing >= 0 && failing <= all && queued >= 0 && queued <= all
      invariant(areCounts, "a claim in flight was counted wrong")
    },
    has: (webhookId) => lanes.has(webhookId),
    isLow: (webhookId) => {
      const lane = lanes.get(webhookId)
      return lane === undefined || isPrefetchLow(lane.queue.length, lane, share())
    },
    wantedAhead: (most) => {
      const wanted = new Map<WebhookId, number>()
      let left = most
      for (const [webhookId, lane] of lanes) {
        const missing = lane.isHealthy ? wantedPrefetch(lane, share()) - lane.queue.length : 0
        const more = Math.min(missing, left)
        if (more > 0) wanted.set(webhookId, more)
        left -= Math.max(0, more)
      }
      return wanted
    },
    cancel: (webhookId) => {
      cancelled.webhooks.add(webhookId)
      const lane = lanes.get(webhookId)
      if (lane !== undefined) interrupt(lane)
    },
    cancelProject: (projectId) => {
      cancelled.projects.add(projectId)
      for (const lane of lanes.values()) if (lane.projectId === projectId) interrupt(lane)
    },
    interruptAll: Effect.gen(function* () {
      for (const lane of lanes.values()) interrupt(lane)
      // Releasing claims adds fibers.
      while (lanes.size > 0) {
        yield* Fiber.awaitAll([...lanes.values()].flatMap(({ fibers }) => [...fibers]))
      }
    }),
  }
}

/** The rules for a loop. */
interface DeliveryLoopRules extends Omit<AttemptRules, "isStopping"> {
  /** The most attempts in flight at the same time, over all webhooks. */
  readonly maxInFlight: number
}

/** The pause after a store error, in milliseconds. */
const storeRetryMillis = 1000

// When a loop stops, it waits no longer than this for the store.
const stopTimeoutMillis = 5000

// A store may report due deliveries it cannot return yet: this pause keeps the loop from spinning.
const shortestPauseMillis = 50

/**
 * Returns after how long the store may have more to claim, or `undefined` if this depends on other
 * processes.
 */
const pauseMillis = ({ claims, nextDueMillis }: ClaimResult): number | undefined =>
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
interface DeliveryLoop {
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
 * @param claiming - reports store outages
 */
const startDeliveryLoop = Effect.fnUntraced(function* (
  settings: DeliveryLoopRules,
  claiming: OutageReporter,
): Effect.fn.Return<DeliveryLoop, never, Outbox | WebhookTransport | Scope.Scope> {
  const outbox = yield* Outbox
  const fork = Effect.runForkWith(yield* Effect.context<Outbox | WebhookTransport>())
  const wake = yield* Latch.make()
  const clock = yield* Clock.Clock
  const now = () => readMonotonicMillis(clock)
  const waking = makeClaimTrigger()
  const idlers = new Set<Latch.Latch>()
  let isFull = false
  let isStopping = false
  const rules: AttemptRules = { ...settings, isStopping: () => isStopping }
  const ownLeaseMillis = leaseMillis(settings)
  const isEmpty = (): boolean => inFlight.count().all === 0
  const inFlight = makeInFlightAttempts({
    deliver: (claim, onAnswer) => fork(attemptDelivery(claim, rules, onAnswer)),
    release: (claim) => fork(Effect.uninterruptible(releaseClaim(claim, rules))),
    onEnd: (webhookId, isHealthy) => {
      const isReason = inFlight.isLow(webhookId) && waking.settled(webhookId)
      const isAwaited = idlers.size > 0 && isEmpty()
      if (isReason || !isHealthy || isFull || isAwaited) wake.openUnsafe()
    },
    now,
    maxQueued: maxPrefetch(settings.maxInFlight),
  })

  /** Claims due deliveries and starts them. Returns the time until there may be more; 0 for at once. */
  const round = Effect.gen(function* () {
    wake.closeUnsafe()
    inFlight.beginClaim()
    waking.beginClaim()
    const room = claimBudget(inFlight.count(), settings.maxInFlight)
    isFull = room === undefined
    if (room === undefined) return undefined
    const ahead = inFlight.wantedAhead(room.ahead)
    const limit = [...ahead.values()].reduce((sum, count) => sum + count, room.limit)
    // Callers arriving during the claim wait for the next one, because this one may miss their
    // deliveries.
    const waiting = [...idlers]
    const claimed = yield* outbox.claim({ ...room, limit, ahead, leaseMillis: ownLeaseMillis })
    claiming.succeeded()
    if (isStopping) {
      yield* Effect.forEach(claimed.claims, (claim) => releaseClaim(claim, rules), {
        concurrency: "unbounded",
        discard: true,
      })
      return undefined
    }
    const isIdle = claimed.claims.length === 0 && isEmpty()
    for (const claim of claimed.claims) inFlight.add(claim)
    // After the claims have started: a wrong count is reported, and must not keep them.
    inFlight.checkCounts()
    const pause = sooner(pauseMillis(claimed), waking.endClaim(claimed.keptBack, inFlight.has))
    // Settlements during the claim may have made room for skipped deliveries.
    if (isIdle && pause !== 0) for (const idler of waiting) idler.openUnsafe()
    return pause
  }).pipe(Effect.catchCause((cause) => Effect.as(claiming.failed(cause), storeRetryMillis)))

  // A claim is not interrupted, because its deliveries would then wait for the lease to expire.
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

/** Options for `flush`. */
export const flushOptions = Setting.object({
  /** How long to send. Default: `"10 seconds"`. */
  timeout: Setting.withDefault(Setting.duration({ least: 0 }), "10 seconds"),
})

/** The options as a host passes them. */
export interface FlushOptions extends Setting.InputOf<typeof flushOptions> {}

/** Options for the dispatcher. */
export const dispatcherOptions = Setting.object({
  /**
   * The delays after the first failed attempt, the second, and so on. The default makes ten
   * attempts in a little over three days. Default: `["5 seconds", "5 minutes", "30 minutes", "2
   * hours", "5 hours", "10 hours", "14 hours", "20 hours", "24 hours"]`.
   */
  retrySchedule: Setting.withDefault(
    Setting.list(Setting.duration({ least: 0, most: 30 * 86_400_000 })),
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
   * How long an attempt may take, from resolving the name to the end of the response. Default: `"15
   * seconds"`.
   */
  timeout: Setting.withDefault(Setting.duration({ most: 3_600_000 }), "15 seconds"),
  /**
   * How long all attempts for a webhook may fail before it is disabled. `webhook.failing` is published at 50, 90 and
   * 100 % of it. Default: `"5 days"`.
   */
  disableAfter: Setting.withDefault(Setting.duration(), "5 days"),
  /** The most attempts in flight at the same time, over all webhooks. Default: `1024`. */
  maxInFlight: Setting.withDefault(Setting.integer(), 1024),
  /**
   * Whether this process delivers by itself. `false` leaves this to `flush` and to other processes, for
   * example in a serverless function. Default: `true`.
   */
  dispatch: Setting.withDefault(Setting.boolean, true),
})

/** The options as a host passes them. */
export interface DispatcherOptions extends Setting.InputOf<typeof dispatcherOptions> {}

/** The options as the library uses them. */
export interface DispatcherSettings extends Setting.OutputOf<typeof dispatcherOptions> {}

/** Delivers events from the outbox: for as long as its layer lives, or when it is told to. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Aborts the attempts in flight for a webhook that was removed or disabled. Afterwards, none starts in this
     * process, not even a claimed one. Other processes learn about it from the outbox. Deleting a project does
     * the same for all its webhooks; see `ProjectDeletions`.
     */
    readonly cancel: (webhookId: WebhookId) => Effect.Effect<void>
    /**
     * Sends due deliveries until none is due and no attempt from this process is in flight, or until
     * the timeout. If the process does not deliver by itself (`dispatch: false`), attempts then in
     * flight are aborted; another process or the next `flush` can repeat them at once.
     *
     * @param options.timeout - how long to send; `"10 seconds"` by default. The store has up to 5
     *   seconds more to take back aborted deliveries
     * @returns how many deliveries wait in all projects, counted up to 10,000, including failed ones to
     *   retry later, and those to webhooks that were disabled by request. Fails with `InvalidInput` if the timeout is invalid, and with `StoreUnavailable`
     *   if the store does not answer
     */
    readonly flush: (
      options?: FlushOptions,
    ) => Effect.Effect<number, InvalidInput | StoreUnavailable>
  }
>()("@tenure/core/Dispatcher") {
  static readonly layer = (
    settings: DispatcherSettings = Setting.parse(dispatcherOptions),
  ): Layer.Layer<Dispatcher, never, Outbox | WebhookTransport> =>
    Layer.effect(Dispatcher, make(settings))
}

const make = Effect.fnUntraced(function* (settings: DispatcherSettings) {
  const outbox = yield* Outbox
  const faults = yield* ErrorReporter
  // A loop lives in the scope it is started in.
  const services = Context.omit(Scope.Scope)(
    yield* Effect.context<Outbox | WebhookTransport | Scope.Scope>(),
  )
  const claiming = makeOutageReporter(faults, "Deliveries cannot be claimed")
  const watching = makeOutageReporter(faults, "Changes of the outbox cannot be watched")
  const loops = new Set<DeliveryLoop>()

  const cancel = (webhookId: WebhookId): void => {
    for (const loop of loops) loop.cancel(webhookId)
  }

  const deletions = yield* ProjectDeletions
  deletions.listen((projectId) => {
    for (const loop of loops) loop.cancelProject(projectId)
  })

  const follow = (change: OutboxChange): void => {
    if (change._tag === "Stopped") return cancel(change.webhookId)
    for (const loop of loops) loop.wake()
  }

  const watch = outbox.nextChange.pipe(
    Effect.map((change) => {
      watching.succeeded()
      follow(change)
    }),
    Effect.catchCause((cause) =>
      Effect.andThen(watching.failed(cause), Effect.sleep(storeRetryMillis)),
    ),
  )

  const start = Effect.gen(function* () {
    yield* Effect.forkScoped(Effect.forever(watch))
    const loop = yield* startDeliveryLoop(settings, claiming)
    loops.add(loop)
    yield* Effect.addFinalizer(() => Effect.sync(() => loops.delete(loop)))
    return loop
  }).pipe(Effect.provideContext(services))

  const own = settings.dispatch ? yield* start : undefined

  const send = (timeout: number) =>
    Effect.scoped(
      Effect.flatMap(own === undefined ? start : Effect.succeed(own), ({ idle }) =>
        Effect.timeoutOption(idle, timeout),
      ),
    )

  return Dispatcher.of({
    cancel: (webhookId) => Effect.sync(() => cancel(webhookId)),
    flush: Effect.fnUntraced(function* (given: FlushOptions = {}) {
      const { timeout } = yield* Setting.decode(flushOptions, given)
      yield* send(timeout)
      const { waiting } = yield* outbox.backlog(maxCountedBacklog)
      return waiting
    }),
  })
})
