/** Reports the events of this process to the host. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Callback from "../base/Callback.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import { Transactions } from "../base/Transactions.ts"
import type { Event } from "./Event.ts"

/** The options for reporting events. */
export const options = Setting.struct({
  /**
   * Called with each event of this process as soon as it is stored, and committed if the host has a
   * transaction open. Errors that the function throws are logged and otherwise ignored.
   */
  onEvent: Setting.callback<(event: Event) => void>(),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Reports events to the host. */
export interface Hooks {
  /** Reports an event that was stored. */
  readonly event: (event: Event) => Effect.Effect<void>
  /** Waits until an event is stored; not at all if one was since the last time. */
  readonly published: Effect.Effect<void>
}

const silent: Hooks = { event: () => Effect.void, published: Effect.never }

const reporter = (
  onEvent: Callback.Callback<Event>,
  transactions: Option.Option<Transactions["Service"]>,
): Hooks => {
  const stored = Latch.makeUnsafe()
  const open = Step.make(() => {
    stored.openUnsafe()
    return Effect.void
  })
  const published = Effect.andThen(stored.await, stored.close)
  if (onEvent === undefined) return { event: () => open, published }
  const tell = (event: Event) => Effect.andThen(open, Callback.call("onEvent", onEvent, event))
  return {
    event: Option.match(transactions, {
      onNone: () => tell,
      onSome:
        ({ afterCommit }) =>
        (event) =>
          afterCommit(event.id, tell(event)),
    }),
    published,
  }
}

/** The reporter of events. By default, events are not reported. */
export const Hooks = Context.Reference<Hooks>("@tenure/core/Hooks", {
  defaultValue: () => silent,
})

/** Reports events to `onEvent`, and to those who wait for one. */
export const layer = ({ onEvent }: Settings): Layer.Layer<never> =>
  Layer.effect(
    Hooks,
    Effect.map(Effect.serviceOption(Transactions), (transactions) =>
      reporter(onEvent, transactions),
    ),
  )
