/** Tells why a command has failed. */

import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Failure } from "../Failure.ts"
import { printable, toJson } from "./printable.ts"

const lineOf = ({ code, message, requestId }: Failure): string => {
  const details = [code, requestId === undefined ? undefined : `request ${requestId}`].filter(
    (detail) => detail !== undefined,
  )
  return details.length === 0 ? message : `${message} (${details.join(", ")})`
}

const jsonOf = ({ code, message, requestId }: Failure): string =>
  toJson({ error: { code, message, request_id: requestId } })

/** Prints a failure to standard error: as JSON for programs. */
export const report = (error: unknown, isJson: boolean): Effect.Effect<void> => {
  if (!(error instanceof Failure)) return Effect.void
  return Console.error(isJson ? jsonOf(error) : printable(lineOf(error)))
}
