/** Failures of commands, in words for people and as exit codes for programs. */

import { type TenureError, isTenureError } from "@tenure/client"
import { TaggedError } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Runtime from "effect/Runtime"

/** Advice by error code. */
const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [/^ERR_SSL_WRONG_VERSION_NUMBER$/, "The server speaks http there, not https: change the URL."],
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED)/,
    "If a private authority has signed the certificate, name the file with its own in NODE_EXTRA_CA_CERTS.",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "Use a name that is in the certificate of the server."],
  [
    /^ECONNREFUSED$/,
    "Nothing listens there: start the server, or correct the host and port in the URL.",
  ],
  [/^(ENOTFOUND|EAI_AGAIN)$/, "Correct the host in the URL, or look at the DNS."],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/,
    "Check the host and port in the URL, and that no firewall is in between.",
  ],
  [
    /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    "What listens there closes the connection: check the port, http or https, and what is in between.",
  ],
]

const textOf = (error: object, name: string): string | undefined => {
  const found = Predicate.hasProperty(error, name) ? error[name] : undefined
  return typeof found === "string" && found !== "" ? found : undefined
}

/** Returns the error wrapped by `fetch`, if any. */
const originOf = (fault: unknown): unknown =>
  fault instanceof Error && fault.cause instanceof Error ? fault.cause : fault

/** Says why `fetch` has failed. */
export const networkReason = (fault: unknown): string => {
  const origin = originOf(fault)
  if (!(origin instanceof Error)) return String(origin)
  // An attempt on several addresses has no message of its own.
  if (origin instanceof AggregateError) return origin.errors.map(networkReason).join(", ")
  // OpenSSL's messages contain line numbers from its source.
  return textOf(origin, "reason") ?? origin.message
}

/** Advises on a network error. */
const networkAdvice = (fault: unknown): string => {
  const origin = originOf(fault)
  const code = origin instanceof Error ? (textOf(origin, "code") ?? "") : ""
  const [, found = "Check the URL, and that the server runs."] =
    advice.find(([pattern]) => pattern.test(code)) ?? []
  return found
}

/**
 * Exit codes: failed or refused; invalid command line or setting; not found; server or database
 * unavailable for now.
 */
export const exitCodes = { failed: 1, usage: 2, notFound: 3, unavailable: 4 } as const

export type FailureKind = keyof typeof exitCodes

/** A command has failed. The message contains no secrets. */
export class Failure extends TaggedError("Failure")<{
  readonly kind: FailureKind
  readonly message: string
  /** The API's error code. */
  readonly code?: string
  readonly requestId?: string | undefined
  /** The status of the response, if there is one. */
  readonly status?: number | undefined
  /** Why no response arrived, and what may help. */
  readonly network?: { readonly reason: string; readonly advice: string } | undefined
  /** How many seconds the server asks to wait. */
  readonly retryAfter?: number | undefined
  /** Errors by import line; the first line is 1. */
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

// Codes for temporary failures.
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

/** Adds advice that the API's message lacks. */
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

/** Converts an error from a call. */
export const callFailure = (error: unknown): Failure => {
  if (isTenureError(error)) {
    const { cause, code, message, requestId, retryAfter, status } = error
    const network =
      code === "NETWORK_ERROR"
        ? { reason: networkReason(cause), advice: networkAdvice(cause) }
        : undefined
    const reason = cause === undefined ? "" : ` (${networkReason(cause)})`
    const text = `${message.replace(/\.$/, "")}${reason}.${adviceOf(error)}`
    const lines = linesOf(error)
    const details = { code, requestId, retryAfter, lines, status, network }
    return new Failure({ kind: kindOf(error), message: text, ...details })
  }
  // An id leading to another path, or a token impossible to send.
  return error instanceof TypeError ? usageFailure(error.message) : operationFailed(String(error))
}

/** Describes a failure in a line, with its code and the request's id. */
export const describeFailure = ({ code, message, requestId }: Failure): string => {
  const details = [code, requestId === undefined ? undefined : `request ${requestId}`].filter(
    (detail) => detail !== undefined,
  )
  return details.length === 0 ? message : `${message} (${details.join(", ")})`
}

/** Makes a call. */
export const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, Failure> =>
  Effect.tryPromise({ try: call, catch: callFailure })
