/** Tenure in memory under a clock that moves only on command. It sends nothing. */

import { performance } from "node:perf_hooks"
import { clearInterval, setInterval } from "node:timers"
import { setTimeout } from "node:timers/promises"
import { type Event, type Tenure } from "@tenure/core"
import {
  Setting,
  currentMoment,
  expiryRules,
  latestInstant,
  startTenure,
} from "@tenure/core/internal"
import { MembershipStore, Outbox, RateLimitStore, toMicros } from "@tenure/core/store"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import { memory } from "@tenure/memory"
import { makeControlledRuntime } from "@tenure/testing/internal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** A request a webhook would receive. */
export interface SentRequest {
  /** When, in milliseconds since the epoch. */
  readonly at: number
  readonly url: string
  readonly body: string
  /** The response status. */
  readonly status: number
}

/** Callbacks for events, requests and finished moves. */
export interface Witness {
  readonly event: (event: Event) => void
  readonly request: (request: SentRequest) => void
  /** Called when a move has ended. */
  readonly stands: (now: number) => void
}

/** The next event without further changes. */
interface NextEvent {
  /** In milliseconds since the epoch. */
  readonly at: number
  readonly what: string
}

/** The clock is moving already. */
export class ClockBusy extends Error {
  override readonly name = "ClockBusy"
  override readonly message = "The clock is moving. Pause it first."
}

/** The clock. Each move runs the work due on the way, in time order. */
export interface MachineClock {
  /** In milliseconds since the epoch, as all times here. */
  readonly start: number
  /** The last possible time: a century after the start. */
  readonly end: number
  readonly now: () => number
  readonly isPlaying: () => boolean
  /** Moves to a time, or to the present one to run due work. Rejects with `ClockBusy`. */
  readonly moveTo: (time: number) => Promise<void>
  /** Moves until something happens, if anything ever does. Rejects with `ClockBusy`. */
  readonly step: () => Promise<void>
  /**
   * Begins to move steadily by `millis` on the clock, within `seconds`. Rejects with `ClockBusy`.
   */
  readonly play: (millis: number, seconds: number) => Promise<void>
  /** Ends a move or a play. Resolves when the clock stands. */
  readonly pause: () => Promise<void>
  /** `undefined` while the clock moves, or if nothing is left to happen. */
  readonly next: () => Promise<NextEvent | undefined>
}

/** A running machine. */
export interface TimeMachine {
  readonly tenure: Tenure
  readonly clock: MachineClock
  readonly close: () => Promise<void>
}

/** The options. */
export interface TimeMachineOptions {
  readonly start: number
  readonly projectId: string
  readonly witness: Witness
  /** Returns a receiver's response status. */
  readonly statusOf: (url: string) => number
  /** Called with Tenure's own faults. */
  readonly onFault: (message: string) => void
}

const reminders = Setting.parse(expiryRules).reminders.toReversed()

/** The times of the stores' next work. */
interface Due {
  check: () => number
  attempt: number
}

const noTime = (): number => Infinity

/** Admits every request: while time stands still, no bucket fills. */
const unlimited = Layer.succeed(RateLimitStore, {
  ping: Effect.void,
  take: () =>
    Effect.map(currentMoment, ({ tick }) => {
      const now = toMicros(tick)
      return { admitted: true, now, address: now, key: now, burst: now }
    }),
})

// Webhooks may have private addresses: nothing is sent there.
const everywhere = ["0.0.0.0/0", "::/0"]

/** The most webhooks in a copy. */
export const maxWebhooks = 1000

/** How far a clock goes, in milliseconds. */
export const century = 36_525 * 86_400_000

// How often a play moves on, in real milliseconds.
const frameMillis = 50

// The delay before running work due at once, in real milliseconds.
const settleMillis = 200

// Among so many paused members, the next one to be resumed is named.
const maxPaused = 10_000

// So many moves without an event are no step any more.
const maxMoves = 10_000

/** What may happen at a time, by when the membership ends. */
const announcedAt = (at: number, grace: number) => [
  { date: at, describe: (userId: string) => `the membership of ${userId} ends` },
  ...(grace === 0
    ? []
    : [{ date: at - grace, describe: (userId: string) => `the grace of ${userId} is over` }]),
  ...reminders.map((lead) => ({
    date: at + lead,
    describe: (userId: string) => `a reminder for ${userId}, ${lead / 86_400_000} d before the end`,
  })),
]

const ignore = () => undefined

/** Starts a machine with an empty project. */
export const startTimeMachine = async ({
  onFault,
  projectId,
  start,
  statusOf,
  witness,
}: TimeMachineOptions): Promise<TimeMachine> => {
  const runtime = makeControlledRuntime({ start, isSeeded: false })
  const { now } = runtime
  const due: Due = { check: noTime, attempt: Infinity }
  let happened = 0

  const memberships = Layer.effect(
    MembershipStore,
    Effect.map(MembershipStore, (store) => {
      due.check = store.expiry?.nextCheckAt ?? noTime
      return store
    }),
  )
  const outbox = Layer.effect(
    Outbox,
    Effect.map(Outbox, (store) => ({
      ...store,
      claim: (options) =>
        Effect.tap(store.claim(options), ({ nextDueMillis = Infinity }) =>
          Effect.sync(() => {
            due.attempt = now() + nextDueMillis
          }),
        ),
    })),
  )
  const send = ({ body, url }: TransportRequest) =>
    Effect.sync(() => {
      const status = statusOf(url)
      happened++
      witness.request({ at: now(), url, body, status })
      return { status, retryAfter: undefined, body: "" }
    })
  const tenure = await startTenure(
    {
      stores: [memory(), memberships, outbox, unlimited],
      transport: Layer.succeed(WebhookTransport, { sendsHttpToNames: true, send }),
      // That the members were imported here holds nothing back.
      expiry: { holdAfterBulk: 0 },
      rateLimits: { suspension: false },
      webhooks: { allowedNetworks: everywhere, maxPerProject: maxWebhooks },
      onEvent: (event) => {
        happened++
        witness.event(event)
      },
      logger: {
        info: ignore,
        warn: ignore,
        error: ({ cause }, message) =>
          onFault(cause === undefined ? message : `${message} ${cause}`),
      },
    },
    runtime.services,
  )

  let isStopped = false
  let move: { readonly isPlay: boolean; readonly ended: Promise<void> } | undefined

  /** Begins a move, unless one is under way. */
  const begin = (run: () => Promise<void>, isPlay: boolean): Promise<void> => {
    if (move !== undefined) throw new ClockBusy()
    isStopped = false
    const ended = run().finally(() => {
      move = undefined
      witness.stands(now())
    })
    move = { isPlay, ended }
    return ended
  }

  const end = Math.min(latestInstant, start + century)

  const advance = (time: number): Promise<void> =>
    runtime.advance(
      (at) => Math.min(end, Math.max(at, time)),
      () => isStopped,
    )

  const pause = async (): Promise<void> => {
    isStopped = true
    // The move's caller receives its failure.
    await move?.ended.catch(ignore)
  }

  /** Ends a play, but no other move. */
  const endPlay = async (): Promise<void> => {
    if (move?.isPlay === true) await pause()
  }

  /** Runs work due now, such as a new member's reminder. */
  const settle = async (): Promise<void> => {
    if (move === undefined && due.check() <= now()) await runtime.advance(now)
  }
  const settling = setInterval(() => {
    settle().catch((fault) => onFault(String(fault)))
  }, settleMillis)

  const nextAt = (): number => Math.min(due.check(), due.attempt)

  const playUntil = async (until: number, seconds: number): Promise<void> => {
    const from = now()
    const began = performance.now()
    const goesOn = (): boolean => !isStopped && now() < until
    while (goesOn()) {
      await setTimeout(frameMillis)
      const share = Math.min(1, (performance.now() - began) / (1000 * seconds))
      await advance(Math.floor(from + share * (until - from)))
    }
  }

  const stepOnce = async (): Promise<void> => {
    await advance(now())
    const before = happened
    for (let moves = 0; moves < maxMoves; moves++) {
      const at = nextAt()
      if (isStopped || happened > before || at > end) return
      await advance(at)
    }
  }

  /** Returns when the webhooks' next attempt is due. Claims report lease ends, too, and these are not attempts. */
  const attemptAt = async (): Promise<number> => {
    const webhooks = await tenure.webhooks.health({ projectId }).catch(() => [])
    return Math.min(...webhooks.map(({ nextAttemptAt = Infinity }) => nextAttemptAt))
  }

  /** Finds a membership whose pause ends by itself at a time. */
  const findResuming = async (at: number) => {
    const paused = await tenure.memberships
      .list({ projectId, state: "paused", limit: maxPaused })
      .catch(() => [])
    return paused.find(({ resumesAt }) => resumesAt === at)
  }

  const describeAt = async (at: number): Promise<string> => {
    const resuming = await findResuming(at)
    if (resuming !== undefined) return `the pause of ${resuming.userId} ends`
    // Somebody may have deleted the project.
    const grace = await tenure.memberships.findProject(projectId).then(
      (project) => project.grace,
      () => 0,
    )
    for (const { date, describe } of announcedAt(at, grace)) {
      if (date >= latestInstant) continue
      const page = { projectId, after: `${date}.`, before: date + 1, limit: 1 }
      const [first] = await tenure.memberships.listEnding(page).then(
        ({ memberships: ending }) => ending,
        () => [],
      )
      if (first !== undefined) return describe(first.userId)
    }
    return "end dates are checked"
  }

  return {
    tenure,
    close: async () => {
      clearInterval(settling)
      await pause()
      await runtime.runUntil(tenure.close())
    },
    clock: {
      start,
      end,
      now,
      isPlaying: () => move?.isPlay === true,
      pause,
      moveTo: async (time) => {
        await endPlay()
        await begin(() => advance(time), false)
      },
      step: async () => {
        await endPlay()
        await begin(stepOnce, false)
      },
      play: async (millis, seconds) => {
        await endPlay()
        const until = Math.min(end, now() + millis)
        begin(() => playUntil(until, seconds), true).catch((fault) => onFault(String(fault)))
      },
      next: async () => {
        await settle()
        const attempt = await attemptAt()
        const at = Math.min(due.check(), attempt)
        if (move !== undefined || at > end) return undefined
        const what = attempt === at ? "a delivery is tried again" : await describeAt(at)
        return { at: Math.max(at, now()), what }
      },
    },
  }
}
