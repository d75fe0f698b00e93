/** Reports the events of this process to the host. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Callback from "../base/Callback.ts"
import * as Setting from "../base/Setting.ts"
import type { Event } from "./Event.ts"

/** The options for reporting events. */
export const options = Setting.struct({
  /**
   * Called with each event of this process as soon as it is stored. Errors that the function throws
   * are logged and otherwise ignored.
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

const reporter = (onEvent: Settings["onEvent"]): Hooks => ({
  event: (event) => Callback.call("onEvent", onEvent, event),
})

/** The reporter of events. By default, events are not reported. */
export const Hooks = Context.Reference<Hooks>("@tenure/core/Hooks", {
  defaultValue: () => reporter(undefined),
})

/** Reports events to `onEvent`. */
export const layer = ({ onEvent }: Settings): Layer.Layer<never> =>
  Layer.succeed(Hooks, reporter(onEvent))
