/** Reports the events of this process to the host. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Callback from "../base/Callback.ts"
import * as Setting from "../base/Setting.ts"
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
}

const silent: Hooks = { event: () => Effect.void }

const reporter = (
  onEvent: Callback.Callback<Event>,
  transactions: Option.Option<Transactions["Service"]>,
): Hooks => {
  const call = (event: Event) => Callback.call("onEvent", onEvent, event)
  return Option.match(transactions, {
    onNone: () => ({ event: call }),
    onSome: ({ afterCommit }) => ({ event: (event) => afterCommit(event.id, call(event)) }),
  })
}

/** The reporter of events. By default, events are not reported. */
export const Hooks = Context.Reference<Hooks>("@tenure/core/Hooks", {
  defaultValue: () => silent,
})

/** Reports events to `onEvent`. */
export const layer = ({ onEvent }: Settings): Layer.Layer<never> =>
  onEvent === undefined
    ? Layer.empty
    : Layer.effect(
        Hooks,
        Effect.map(Effect.serviceOption(Transactions), (transactions) =>
          reporter(onEvent, transactions),
        ),
      )
