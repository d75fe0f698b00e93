/** Why a connection to a server has failed, in words. */

import { type TenureError, isTenureError } from "@tenure/client"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"

/** What helps, by the codes of errors. */
const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/^ERR_SSL_WRONG_VERSION_NUMBER$/, "The server speaks http there, not https: change the URL."],
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED)/,
    "If a private authority has signed the certificate, name the file with its own in NODE_EXTRA_CA_CERTS.",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "Use a name that is in the certificate of the server."],
]

const textOf = (error: object, name: string): string | undefined => {
  const found = Predicate.hasProperty(error, name) ? error[name] : undefined
  return typeof found === "string" && found !== "" ? found : undefined
}

/** The error that `fetch` wraps, if it does. */
const originOf = (fault: unknown): unknown =>
  fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault

/** Says why `fetch` has failed. */
export const networkReason = (fault: unknown): string => {
  const origin = originOf(fault)
  if (!(origin instanceof Error)) return String(origin)
  // The messages of OpenSSL name lines of its source.
  return textOf(origin, "reason") ?? origin.message
}

/** Says what may help. */
const networkAdvice = (fault: unknown): string => {
  const origin = originOf(fault)
  const code = origin instanceof Error ? (textOf(origin, "code") ?? "") : ""
  const [, found = "Check the URL, and that the server runs."] =
    advice.find(([pattern]) => pattern.test(code)) ?? []
  return found
}

/** Why a command has failed, in words for people and as an exit code for programs. */

/**
 * The exit codes: it failed or was refused; the command line or a setting is wrong; what it is about
 * does not exist; the server or the database cannot be used for the moment.
 */
export const exitCodes = { failed: 1, usage: 2, notFound: 3, unavailable: 4 } as const

/** What kind of failure it is. */
export type FailureKind = keyof typeof exitCodes

/** A command has failed. The message contains no secrets. */
export class Failure extends Data.TaggedError("Failure")<{
  readonly kind: FailureKind
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
export const usageFailure = (message: string): Failure => new Failure({ kind: "usage", message })

/** The command failed, or was refused. */
export const operationFailed = (message: string): Failure =>
  new Failure({ kind: "failed", message })

// What may succeed later as it is.
const passing: ReadonlySet<string> = new Set([
  "NETWORK_ERROR",
  "TIMEOUT",
  "RATE_LIMIT_EXCEEDED",
  "IDEMPOTENCY_IN_PROGRESS",
])

const kindOf = ({ code, status }: TenureError): FailureKind => {
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
      return ` ${networkAdvice(cause)}`
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
export const callFailure = (error: unknown): Failure => {
  if (isTenureError(error)) {
    const { cause, code, message, requestId, retryAfter } = error
    const reason = cause === undefined ? "" : ` (${networkReason(cause)})`
    const text = `${message.replace(/\.$/, "")}${reason}.${adviceOf(error)}`
    const lines = linesOf(error)
    return new Failure({ kind: kindOf(error), message: text, code, requestId, retryAfter, lines })
  }
  // An id that would lead to another path, or a token that cannot be sent.
  return error instanceof TypeError ? usageFailure(error.message) : operationFailed(String(error))
}
