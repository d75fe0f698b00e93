/** Announces the ends of memberships, for as long as its layer lives. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { Faults } from "../base/Faults.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Moment from "../base/Moment.ts"
import * as Outage from "../base/Outage.ts"
import * as Setting from "../base/Setting.ts"
import { Hooks } from "../events/Hooks.ts"
import * as Expiry from "./Expiry.ts"
import type { ExpiryStore, Swept } from "./ExpiryStore.ts"
import { MembershipStore } from "./MembershipStore.ts"

/** The most reminders. */
const mostReminders = 10

/** Reminders come in seconds, in events and in the store. */
const reminder = Setting.andThen(Setting.millis({ least: 1000 }), (millis, name) =>
  millis % 1000 === 0
    ? Result.succeed(millis)
    : Result.fail(new InvalidInput({ field: name, problem: "must be whole seconds" })),
)

const reminders = Setting.andThen(Setting.list(reminder), (given, name) =>
  given.length <= mostReminders
    ? Result.succeed(given)
    : Result.fail(
        new InvalidInput({ field: name, problem: `must have at most ${mostReminders} items` }),
      ),
)

/** How the ends of memberships are announced. */
export const rules = Setting.struct({
  /**
   * How long before the end `membership.expiring` is published: up to 10 durations of whole seconds. Of
   * several that are due at once, only the shortest is. Default: `["7 days", "1 day"]`.
   */
  reminders: Setting.withDefault(reminders, ["7 days", "1 day"]),
  /** The most announcements that this process makes in a second. Default: `2000`. */
  pace: Setting.withDefault(Setting.count({ most: 100_000 }), 2000),
})

/** How the ends of memberships are announced, as a host passes it. */
export interface Rules extends Setting.Input<typeof rules> {}

/** The option for announcing the ends of memberships. */
export const options = Setting.struct({
  /**
   * Has `membership.expiring` published before memberships end and `membership.expired` when they do: once
   * for each end date, however many processes share the store. Default: `false`.
   */
  expiry: Setting.withDefault<Rules | false, Setting.Output<typeof rules> | false>(
    Setting.orFalse(rules),
    false,
  ),
})

/** The option as a host passes it. */
export interface Options extends Setting.Input<typeof options> {}

/** The option as the library uses it. */
export interface Settings extends Setting.Output<typeof options> {}

// Many short steps keep others waiting for less time than few long ones.
const stepsPerSecond = 20

// The most memberships in one step of the store, which holds locks meanwhile.
const mostAtOnce = 500

/** The pause when nothing is due, and after an error of the store, in milliseconds. */
const pauseMillis = { idle: 500, failed: 1000 } as const

const rest = (millis: number): Effect.Effect<void> =>
  millis === 0 ? Effect.yieldNow : Effect.sleep(millis)

const unsupported = new InvalidInput({
  field: "expiry",
  problem: "must be false: the store of memberships cannot announce ends (its expiry is undefined)",
})

/** Sweeps the store until the scope closes. A sweep that has begun is not interrupted. */
const start = Effect.fnUntraced(function* (
  store: ExpiryStore,
  { pace, reminders: given }: Setting.Output<typeof rules>,
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
    const since = yield* persist(store.watch(leads))
    yield* Effect.forever(sweep(Expiry.judgeBy({ leads, since })))
  })
  // At once, so that ends count from the start on.
  yield* Effect.forkScoped(run, { startImmediately: true })
})

/**
 * Announces the ends of memberships until the layer is closed, unless the option is false. Fails with
 * `InvalidInput` if the store cannot announce them.
 */
export const layer = ({ expiry }: Settings): Layer.Layer<never, InvalidInput, MembershipStore> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const store = (yield* MembershipStore).expiry
      if (expiry === false) return
      if (store === undefined) return yield* unsupported
      yield* start(store, expiry)
    }),
  )
