/** How a step of a request ends: with a value, or with an error for the client. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Faults } from "../base/Faults.ts"
import type { ApiError } from "./ApiError.ts"

/** The value of a step, or the error that the client receives. */
export type Outcome<A> = Result.Result<A, ApiError>

/** Makes the outcome of a step that fails. */
export const fail = (error: ApiError): Outcome<never> => Result.fail(error)

/** Returns the error in a cause, or `undefined` if there is a defect. */
export const errorIn = (cause: Cause.Cause<ApiError>): ApiError | undefined =>
  Cause.hasDies(cause) ? undefined : Result.getOrUndefined(Cause.findError(cause))

/** Reports what is not the client's fault, and returns what the client is told. */
const report = (
  faults: Faults,
  requestId: string,
  cause: Cause.Cause<ApiError>,
): Effect.Effect<Outcome<never>> => {
  const error = errorIn(cause)
  if (error === undefined) {
    const reported = faults.defect("A request ended in a defect", cause, requestId)
    return Effect.as(reported, fail({ _tag: "InternalError" }))
  }
  const outcome = fail(error)
  return error._tag === "StoreUnavailable"
    ? Effect.as(faults.failure("The store does not answer", error.cause, requestId), outcome)
    : Effect.succeed(outcome)
}

/** Runs a step to its outcome. The client learns of a defect only that there is one. */
export const settle = <A>(
  faults: Faults,
  requestId: string,
  step: Effect.Effect<A, ApiError>,
): Effect.Effect<Outcome<A>> =>
  Effect.matchCauseEffectEager(step, {
    onSuccess: (value) => Effect.succeed(Result.succeed(value)),
    onFailure: (cause) => report(faults, requestId, cause),
  })
