/** Why a call of a store has failed, if that is the fault of the store. */

import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"

/** A fault: it does not answer, or is defective. */
export type StoreFault = "StoreUnavailable" | "Defect"

/** Returns the fault in the exit of a call. An error such as `ProjectNotFound` is an answer. */
export const of = (exit: Exit.Exit<unknown, unknown>): StoreFault | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasDies(exit.cause)) return "Defect"
  return Predicate.isTagged(Cause.squash(exit.cause), "StoreUnavailable")
    ? "StoreUnavailable"
    : undefined
}
