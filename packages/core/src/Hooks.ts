/** What a host is told of as it happens in this process. */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Event } from "./Event.ts"
import * as Callback from "./internal/callback.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import * as Setting from "./Setting.ts"

/** Something that went wrong and is no client's fault. */
export interface Fault {
  /** What did not work, such as `A request ended in a defect`. */
  readonly message: string
  /** Why: an `Error` as a rule. */
  readonly cause: unknown
}

/** Functions of the host. What they throw, now or later, is logged and otherwise ignored. */
export interface Options {
  /** Called with each event of this process as soon as it is stored; none by default. */
  readonly onEvent?: ((event: Event) => void) | undefined
  /**
   * Called with each fault, defects and a store that does not answer among them, besides what is
   * logged; none by default.
   */
  readonly onError?: ((fault: Fault) => void) | undefined
}

/** Tells the host. Of nothing by default. */
export interface Hooks {
  /** Tells of an event that has been stored. */
  readonly event: (event: Event) => Effect.Effect<void>
  /** Tells of what does not work for the moment. */
  readonly failure: (message: string, cause: unknown) => Effect.Effect<void>
  /** Logs a defect and tells of it. */
  readonly defect: (message: string, cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

const telling = (onEvent: Options["onEvent"], onError: Options["onError"]): Hooks => {
  const failure: Hooks["failure"] = (message, cause) =>
    Callback.call("onError", onError, { message, cause })
  return {
    event: (event) => Callback.call("onEvent", onEvent, event),
    failure,
    defect: (message, cause) =>
      Effect.andThen(Effect.logError(message, cause), failure(message, Cause.squash(cause))),
  }
}

/** The hooks of the host. */
export const Hooks = Context.Reference<Hooks>("@tenure/core/Hooks", {
  defaultValue: () => telling(undefined, undefined),
})

/** Has the host told by its functions. */
export const layer = (options: Options): Layer.Layer<never, InvalidInput> =>
  Layer.effect(
    Hooks,
    Effect.gen(function* () {
      const onEvent = yield* Setting.callback("onEvent", options.onEvent)
      const onError = yield* Setting.callback("onError", options.onError)
      return telling(onEvent, onError)
    }),
  )
