/** Announces memberships' ends in time. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { ErrorReporter, makeOutageReporter } from "../base/faults.ts"
import { readMonotonic, sleepPoll } from "../base/time.ts"
import { Hooks } from "../events/event.ts"
import type { ExpirySettings } from "./announcements.ts"
import type { ExpiryStore, SweepResult } from "./expiry-store.ts"
import {
  type DecideAnnouncement,
  announcementRules,
  makeDecideAnnouncement,
  reminderLeads,
} from "./expiry.ts"

// Many short steps keep others waiting for less time than few long ones, while the store is quick enough for so many.
const stepsPerSecond = { least: 20, most: 50 } as const

// The least pause after a step, as a share in its duration: so it leaves a slow store to others a third
// of the time.
const leastPause = 1 / 2

// The most memberships in one step. The store holds their locks meanwhile.
const maxAtOnce = 500

/**
 * Returns the number of memberships to look at in a step, to announce as many as the option says.
 *
 * @param takenMillis - the duration of the previous step
 */
export const stepSize = (announcementsPerSecond: number, takenMillis: number): number => {
  const { least, most } = stepsPerSecond
  const meanwhile = ((1 + leastPause) * takenMillis) / 1000
  const share = Math.min(1 / least, Math.max(1 / most, meanwhile))
  return Math.min(maxAtOnce, Math.ceil(announcementsPerSecond * share))
}

/** The pause when nothing more is due, and after a store error, in milliseconds. */
const pauseMillis = { idle: 500, failed: 1000 } as const

// Bounds for the pause until the next check. A change may bring the check forward or postpone it
// meanwhile.
const untilNextMillis = { least: 50, most: 1000 } as const

/** Returns the pause after a sweep with nothing left to do at once. */
const idleMillis = ({ nextDueMillis }: SweepResult): number =>
  nextDueMillis === undefined
    ? pauseMillis.idle
    : Math.min(untilNextMillis.most, Math.max(untilNextMillis.least, nextDueMillis))

/** Has ends watched, then sweeps the store until the scope closes. A running sweep is not interrupted. */
export const startExpirySweeper = Effect.fnUntraced(function* (
  store: ExpiryStore,
  settings: ExpirySettings,
) {
  const hooks = yield* Hooks
  const clock = yield* Clock.Clock
  const sweeping = makeOutageReporter(
    yield* ErrorReporter,
    "Ends of memberships cannot be announced",
  )
  const { announcementsPerSecond } = settings
  const leads = reminderLeads(settings.reminders)
  let taken = 0

  /** Repeats a store operation until it succeeds. */
  const persist = <A, E>(step: Effect.Effect<A, E>): Effect.Effect<A> =>
    Effect.catchCause(
      Effect.tap(step, () => Effect.sync(sweeping.succeeded)),
      (cause) =>
        sweeping
          .failed(cause)
          .pipe(Effect.andThen(Effect.sleep(pauseMillis.failed)), Effect.andThen(persist(step))),
    )

  /** Pauses after a sweep, by the monotonic clock. */
  const pauseAfter = (swept: SweepResult): Effect.Effect<void> => {
    const paced = Math.max(
      leastPause * taken,
      (1000 * swept.events.length) / announcementsPerSecond - taken,
    )
    if (!swept.isMore) return sleepPoll(Math.max(idleMillis(swept), paced), store.nextCheckAt)
    return paced === 0 ? Effect.yieldNow : Effect.sleep(paced)
  }

  const sweep = (decide: DecideAnnouncement) =>
    Effect.suspend(() => {
      const began = readMonotonic(clock)
      const limit = stepSize(announcementsPerSecond, taken)
      const round = Effect.tap(store.sweep(limit, decide), ({ events }) =>
        Effect.forEach(events, hooks.event, { discard: true }),
      )
      return Effect.flatMap(persist(Effect.uninterruptible(round)), (swept) => {
        taken = readMonotonic(clock) - began
        return pauseAfter(swept)
      })
    })

  // Before the first change: a membership changed earlier is found by a pass only, and a pass waits
  // until all programs' older transactions are over.
  const first = yield* Effect.exit(store.watch(leads))

  const run = Effect.gen(function* () {
    let since = Exit.isSuccess(first) ? first.value : yield* persist(store.watch(leads))
    const step = Effect.suspend(() =>
      sweep(makeDecideAnnouncement(announcementRules(settings, since))),
    )
    const watchAgain = Effect.suspend(() =>
      Effect.map(persist(store.watch(leads)), (now) => {
        since = now
      }),
    )
    // The clock was ahead and has been corrected: ends count from now on.
    const wasAhead = () => clock.currentTimeMillisUnsafe() < since
    yield* Effect.forever(
      Effect.suspend(() => (wasAhead() ? Effect.andThen(watchAgain, step) : step)),
    )
  })
  // At once, so ends count from the start on.
  yield* Effect.forkScoped(run, { startImmediately: true })
})
