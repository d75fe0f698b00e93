/** Reports errors not caused by clients: host callbacks that throw, defects, and store outages. */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { printableCause, printableError } from "./printable-cause.ts"
import * as Setting from "./setting.ts"

/** A host's function, or `undefined`. If it returns a promise, nothing waits for it. */
export type HostCallback<A> = ((value: A) => void) | undefined

/** Logs any error. A throwing logger fails nothing, because the change is made. */
const logError = (message: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.catchDefect(Effect.logError(message, printableCause(cause)), () => Effect.void)

const callbackLogged = (name: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  logError(`${name} threw`, cause)

/** Logs a promise's rejection, from now on: an unhandled rejection can end the process. */
const logRejection = (name: string, promise: PromiseLike<unknown>): Effect.Effect<void> =>
  Effect.asVoid(
    Effect.forkDetach(
      Effect.catchCause(
        Effect.promise(() => promise),
        (cause) => callbackLogged(name, cause),
      ),
      { startImmediately: true },
    ),
  )

/**
 * Calls a host's function, if there is one. Logs errors it throws and rejections from a promise it
 * returns.
 *
 * @param name - the option's name, for the log
 */
export const callHost = <A>(
  name: string,
  callback: HostCallback<A>,
  value: A,
): Effect.Effect<void> =>
  callback === undefined
    ? Effect.void
    : Effect.suspend(() => {
        try {
          const result: unknown = callback(value)
          return Predicate.isPromiseLike(result) ? logRejection(name, result) : Effect.void
        } catch (error) {
          return callbackLogged(name, Cause.die(error))
        }
      })

/** An error not caused by a client. */
export interface Fault {
  /** The failure, for example `A request ended in a defect`. */
  readonly message: string
  /** Why, usually an `Error`. */
  readonly cause: unknown
  /** The id of the failed request, if any. */
  readonly requestId: string | undefined
  /** Whether it is a defect rather than a temporary failure. Defects are logged as well. */
  readonly isDefect: boolean
}

/** The options for reporting faults. */
export const errorReporterOptions = Setting.object({
  /**
   * Called with each fault, such as a defect or an unavailable store. Errors thrown by the function are
   * logged and otherwise ignored.
   */
  onError: Setting.callback<(fault: Fault) => void>(),
})

/** The options as a host passes them. */
export interface ErrorReporterOptions extends Setting.InputOf<typeof errorReporterOptions> {}

/** The options as the library uses them. */
export interface ErrorReporterSettings extends Setting.OutputOf<typeof errorReporterOptions> {}

/** Reports faults to the host. */
export interface ErrorReporter {
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
  const entry = logError(message, cause)
  return requestId === undefined ? entry : Effect.annotateLogs(entry, "request_id", requestId)
}

const reporter = (onError: ErrorReporterSettings["onError"]): ErrorReporter => {
  const report = (fault: Fault) => callHost("onError", onError, fault)
  return {
    failure: (message, cause, requestId) => report({ message, cause, requestId, isDefect: false }),
    defect: (message, cause, requestId) =>
      Effect.andThen(
        logged(message, cause, requestId),
        report({ message, cause: Cause.squash(cause), requestId, isDefect: true }),
      ),
  }
}

/** Reports faults. By default, only logs defects. */
export const ErrorReporter = Context.Reference<ErrorReporter>("@tenure/core/Faults", {
  defaultValue: () => reporter(undefined),
})

/** Reports faults to `onError`. */
export const errorReporterLayer = ({ onError }: ErrorReporterSettings): Layer.Layer<never> =>
  Layer.succeed(ErrorReporter, reporter(onError))

const rootOf = (error: Error): Error => (error.cause instanceof Error ? rootOf(error.cause) : error)

/** Logs an outage in one line, with its first cause, such as a refused connection. Only a defect needs its stack. */
export const logOutage = (message: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasDies(cause)
    ? Effect.logWarning(message, printableCause(cause))
    : Effect.annotateLogs(
        Effect.logWarning(message),
        "problem",
        rootOf(printableError(Cause.squash(cause))).message,
      )

/** Records a repeated operation's results. */
export interface OutageReporter {
  readonly succeeded: () => void
  readonly failed: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

/**
 * @param message - the failing operation, for example `Deliveries cannot be claimed`
 */
export const makeOutageReporter = (faults: ErrorReporter, message: string): OutageReporter => {
  let end: (() => void) | undefined
  return {
    succeeded: () => {
      end?.()
      end = undefined
    },
    failed: (cause) =>
      Effect.contextWith((context: Context.Context<never>) => {
        if (end !== undefined) return Effect.void
        const log = Effect.logInfo(`${message}: this is over`)
        end = () => void Effect.runForkWith(context)(log)
        return Effect.andThen(
          logOutage(message, cause),
          faults.failure(message, Cause.squash(cause)),
        )
      }),
  }
}
