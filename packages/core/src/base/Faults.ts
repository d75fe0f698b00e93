/** Reports faults, which are errors that no client has caused. */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Callback from "./Callback.ts"
import * as Setting from "./Setting.ts"

/** An error that no client has caused. */
export interface Fault {
  /** What failed, for example `A request ended in a defect`. */
  readonly message: string
  /** Why, usually an `Error`. */
  readonly cause: unknown
}

/** The options for reporting faults. */
export const options = Setting.struct({
  /**
   * Called with each fault, such as a defect or an unavailable store. Errors that the function throws
   * are logged and otherwise ignored.
   */
  onError: Setting.callback<(fault: Fault) => void>(),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Reports faults to the host. */
export interface Faults {
  /** Reports a temporary failure. */
  readonly failure: (message: string, cause: unknown) => Effect.Effect<void>
  /** Logs and reports a defect. */
  readonly defect: (message: string, cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

const reporter = (onError: Settings["onError"]): Faults => {
  const failure: Faults["failure"] = (message, cause) =>
    Callback.call("onError", onError, { message, cause })
  return {
    failure,
    defect: (message, cause) =>
      Effect.andThen(Effect.logError(message, cause), failure(message, Cause.squash(cause))),
  }
}

/** The reporter of faults. By default, it only logs defects. */
export const Faults = Context.Reference<Faults>("@tenure/core/Faults", {
  defaultValue: () => reporter(undefined),
})

/** Reports faults to `onError`. */
export const layer = ({ onError }: Settings): Layer.Layer<never> =>
  Layer.succeed(Faults, reporter(onError))
