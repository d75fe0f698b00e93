/** Announces the ends of memberships as they come. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Faults } from "../base/Faults.ts"
import * as Moment from "../base/Moment.ts"
import * as Outage from "../base/Outage.ts"
import { Hooks } from "../events/Hooks.ts"
import type { Plan } from "./Expiries.ts"
import * as Expiry from "./Expiry.ts"
import type { ExpiryStore, Swept } from "./ExpiryStore.ts"

// Many short steps keep others waiting for less time than few long ones.
const stepsPerSecond = 20

// The most memberships in one step of the store, which holds locks meanwhile.
const mostAtOnce = 500

/** The pause when nothing is due, and after an error of the store, in milliseconds. */
const pauseMillis = { idle: 500, failed: 1000 } as const

const rest = (millis: number): Effect.Effect<void> =>
  millis === 0 ? Effect.yieldNow : Effect.sleep(millis)

/** Sweeps the store until the scope closes. A sweep that has begun is not interrupted. */
export const start = Effect.fnUntraced(function* (
  store: ExpiryStore,
  { pace, reminders: given }: Plan,
) {
  const hooks = yield* Hooks
  const clock = yield* Clock.Clock
  const sweeping = Outage.make(yield* Faults, "Ends of memberships cannot be announced")
  const leads = Expiry.leadsOf(given)
  const limit = Math.min(mostAtOnce, Math.ceil(pace / stepsPerSecond))

  /** Runs a step of the store until it succeeds. */
  const persist = <A, E>(step: Effect.Effect<A, E>): Effect.Effect<A> =>
    Effect.catchCause(
      Effect.tap(step, () => Effect.sync(sweeping.succeeded)),
      (cause) =>
        sweeping
          .failed(cause)
          .pipe(Effect.andThen(Effect.sleep(pauseMillis.failed)), Effect.andThen(persist(step))),
    )

  /** Returns how long to wait after a sweep that began at a time of the monotonic clock. */
  const pauseAfter = ({ events, isMore }: Swept, began: number): number => {
    const paced = Math.max(0, (1000 * events.length) / pace - (Moment.precise(clock) - began))
    return isMore ? paced : Math.max(pauseMillis.idle, paced)
  }

  const sweep = (judge: Expiry.Judge) =>
    Effect.suspend(() => {
      const began = Moment.precise(clock)
      const round = Effect.tap(store.sweep(limit, judge), ({ events }) =>
        Effect.forEach(events, hooks.event, { discard: true }),
      )
      return Effect.flatMap(persist(Effect.uninterruptible(round)), (swept) =>
        rest(pauseAfter(swept, began)),
      )
    })

  const run = Effect.gen(function* () {
    let since = yield* persist(store.watch(leads))
    const step = Effect.suspend(() => sweep(Expiry.judgeBy({ leads, since })))
    const watchAgain = Effect.suspend(() =>
      Effect.map(persist(store.watch(leads)), (now) => {
        since = now
      }),
    )
    // A clock that was ahead is right again, and ends count from now on.
    const wasAhead = () => clock.currentTimeMillisUnsafe() < since
    yield* Effect.forever(
      Effect.suspend(() => (wasAhead() ? Effect.andThen(watchAgain, step) : step)),
    )
  })
  // At once, so that ends count from the start on.
  yield* Effect.forkScoped(run, { startImmediately: true })
})
