/** Outages in the rate limits' store: every request meets them. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { StoreUnavailable } from "../base/errors.ts"
import { type ErrorReporter, logOutage } from "../base/faults.ts"
import type { Millis } from "../base/time.ts"

// In a cluster, some takes fail and others succeed: an outage is over once a take succeeds this long
// after the last failure.
const quietMillis = 1000

// However often the store fails and recovers, one outage is logged in this time.
const pauseMillis = 10_000

/** A take's evidence about an outage. */
type OutageChange = "begins" | "ends" | undefined

/** Follows a store's outages by the monotonic clock. */
export interface Outages {
  readonly failed: (tick: Millis) => OutageChange
  readonly succeeded: (tick: Millis) => OutageChange
  /** Tells whether a take has failed in the last 10 seconds. */
  readonly isRecent: (tick: Millis) => boolean
}

/** Makes the record for a store's outages. */
export const makeOutages = (): Outages => {
  let latest = -Infinity
  let begun = -Infinity
  let isOpen = false
  return {
    failed: (tick) => {
      latest = Math.max(latest, tick)
      if (isOpen || tick < begun + pauseMillis) return undefined
      begun = tick
      isOpen = true
      return "begins"
    },
    succeeded: (tick) => {
      if (!isOpen || tick < latest + quietMillis) return undefined
      isOpen = false
      return "ends"
    },
    isRecent: (tick) => tick < latest + pauseMillis,
  }
}

/** The limits' behavior while the store is down: see the option `onStoreFailure`. */
export const storeFailureModes = ["local", "open", "closed"] as const

type StoreFailureMode = (typeof storeFailureModes)[number]

/** How requests are limited: by the store, or as `onStoreFailure` says. */
export type LimitMode = "store" | StoreFailureMode

const outage = "The store of rate limits does not answer"

/** Logs an outage's end. */
export const logOutageEnd = Effect.logInfo(`${outage}: this is over`)

const effects: Readonly<Record<StoreFailureMode, string>> = {
  local: "this process limits requests by itself",
  open: "requests are not limited",
  closed: "requests are answered 503",
}

/** A take's failure. A defective store is treated like one that does not answer. */
export interface TakeFailure {
  readonly reason: unknown
  readonly isDefect: boolean
}

/** Returns why a take has failed, or its interruption. */
export const takeFailure = (
  cause: Cause.Cause<StoreUnavailable>,
): Result.Result<TakeFailure, Cause.Cause<never>> => {
  const bug = Cause.findDefect(cause)
  if (Result.isSuccess(bug)) return Result.succeed({ reason: bug.success, isDefect: true })
  return Result.map(Cause.findError(cause), (error) => ({ reason: error.cause, isDefect: false }))
}

/** Logs and reports an outage's beginning. */
export const reportOutage = (
  faults: ErrorReporter,
  mode: StoreFailureMode,
  { isDefect, reason }: TakeFailure,
): Effect.Effect<void> => {
  const reported = Effect.andThen(
    logOutage(`${outage}: ${effects[mode]}`, Cause.fail(reason)),
    faults.failure(outage, reason),
  )
  return isDefect
    ? Effect.andThen(
        faults.defect("The store of rate limits has a defect", Cause.die(reason)),
        reported,
      )
    : reported
}
