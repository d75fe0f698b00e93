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
  /** The id of the request that it has failed, if it has failed one. */
  readonly requestId: string | undefined
  /** Whether it is a defect, which is logged as well, rather than a temporary failure. */
  readonly isDefect: boolean
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
  readonly failure: (message: string, cause: unknown, requestId?: string) => Effect.Effect<void>
  /** Logs and reports a defect. */
  readonly defect: (
    message: string,
    cause: Cause.Cause<unknown>,
    requestId?: string,
  ) => Effect.Effect<void>
}

const logged = (
  message: string,
  cause: Cause.Cause<unknown>,
  requestId: string | undefined,
): Effect.Effect<void> => {
  // Some values cannot be printed, such as an error whose message throws.
  const entry = Effect.catchDefect(Effect.logError(message, cause), () => Effect.logError(message))
  return requestId === undefined ? entry : Effect.annotateLogs(entry, "request_id", requestId)
}

const reporter = (onError: Settings["onError"]): Faults => {
  const report = (fault: Fault) => Callback.call("onError", onError, fault)
  return {
    failure: (message, cause, requestId) => report({ message, cause, requestId, isDefect: false }),
    defect: (message, cause, requestId) =>
      Effect.andThen(
        logged(message, cause, requestId),
        report({ message, cause: Cause.squash(cause), requestId, isDefect: true }),
      ),
  }
}

/** The reporter of faults. By default, it only logs defects. */
export const Faults = Context.Reference<Faults>("@tenure/core/Faults", {
  defaultValue: () => reporter(undefined),
})

/** Reports faults to `onError`. */
export const layer = ({ onError }: Settings): Layer.Layer<never> =>
  Layer.succeed(Faults, reporter(onError))
