/** Why a command has failed, in words for people and as an exit code for programs. */

import { isTenureError, type TenureError } from "@tenure/client"
import * as Data from "effect/Data"
import * as Runtime from "effect/Runtime"
import * as networkFault from "./connection/networkFault.ts"

/**
 * The exit codes: it failed or was refused; the command line or a setting is wrong; what it is about
 * does not exist; the server or the database cannot be used for the moment.
 */
export const exitCodes = { failed: 1, usage: 2, notFound: 3, unavailable: 4 } as const

/** What kind of failure it is. */
export type Kind = keyof typeof exitCodes

/** A command has failed. The message contains no secrets. */
export class Failure extends Data.TaggedError("Failure")<{
  readonly kind: Kind
  readonly message: string
  /** The code of the API's error. */
  readonly code?: string
  readonly requestId?: string | undefined
  /** How many seconds the server asks to wait. */
  readonly retryAfter?: number | undefined
  /** What is wrong with the lines of an import; the first one is 1. */
  readonly lines?: ReadonlyArray<{ readonly line: number; readonly message: string }>
}> {
  override readonly [Runtime.errorExitCode] = exitCodes[this.kind]
  override readonly [Runtime.errorReported] = false
}

/** The command line or a setting is wrong. */
export const usage = (message: string): Failure => new Failure({ kind: "usage", message })

/** The command failed, or was refused. */
export const failed = (message: string): Failure => new Failure({ kind: "failed", message })

// What may succeed later as it is.
const passing: ReadonlySet<string> = new Set([
  "NETWORK_ERROR",
  "TIMEOUT",
  "RATE_LIMIT_EXCEEDED",
  "IDEMPOTENCY_IN_PROGRESS",
])

const kindOf = ({ code, status }: TenureError): Kind => {
  if (status === 404) return "notFound"
  return passing.has(code) || (status ?? 0) > 500 ? "unavailable" : "failed"
}

/** What helps, where the message of the API does not say it. */
const adviceOf = ({ cause, code, retryAfter }: TenureError): string => {
  switch (code) {
    case "UNAUTHORIZED":
      return " Check the token: TENURE_TOKEN, or that of the profile."
    case "FORBIDDEN":
      return " A key with a larger role is needed."
    case "WEBHOOK_DISABLED":
      return " tenure webhooks enable does that."
    case "NETWORK_ERROR":
      return ` ${networkFault.adviceOf(cause)}`
    default:
      return retryAfter === undefined ? "" : ` Try again in ${Math.ceil(retryAfter)} s.`
  }
}

const linesOf = ({ problems }: TenureError) =>
  problems.flatMap((problem) =>
    "line" in problem && problem.line !== undefined
      ? [{ line: problem.line, message: problem.message }]
      : [],
  )

/** The failure of a call. */
export const ofCall = (error: unknown): Failure => {
  if (isTenureError(error)) {
    const { cause, code, message, requestId, retryAfter } = error
    const reason = cause === undefined ? "" : ` (${networkFault.reasonOf(cause)})`
    const text = `${message.replace(/\.$/, "")}${reason}.${adviceOf(error)}`
    const lines = linesOf(error)
    return new Failure({ kind: kindOf(error), message: text, code, requestId, retryAfter, lines })
  }
  // An id that would lead to another path, or a token that cannot be sent.
  return error instanceof TypeError ? usage(error.message) : failed(String(error))
}
