/** Responses: one envelope around every result, every page and every error. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ApiError, type ApiFailure, describeApiError } from "../api/errors.ts"
import type { ErrorReporter } from "../base/faults.ts"
import { getOwn } from "../base/values.ts"
import type { LimitReport } from "../limits/rate-limiter.ts"

/** A response as adapters send it. */
export interface ApiResponse {
  /** The status code. */
  readonly status: number
  /** The header fields. */
  readonly headers: Readonly<Record<string, string>>
  /** The body; empty for a response without one. */
  readonly body: ResponseBody
}

/**
 * A stream. An adapter asks for the next text once it has sent the one before, by `receive`, or by
 * iterating. Then it calls `close`, or the iterator's `return`, when the client has gone, even if it has not asked for
 * any text. It may do so while it waits for a text. A stream never throws.
 */
export interface TextStream extends AsyncIterable<string> {
  /**
   * Calls a function with the next text, or with `undefined` at the end. Unlike an iterator, it makes
   * no promises: thousands of waiting streams would keep theirs.
   */
  readonly receive: (receiver: (text: string | undefined) => void) => void
  /** Ends the stream. */
  readonly close: () => void
}

/** A response's body: a text or a stream. */
export type ResponseBody = string | TextStream

/** The answered request's facts in an envelope. */
export interface RequestSubject {
  /** A UUID, new for each request. */
  readonly requestId: string
  /** The method, in capitals. */
  readonly method: string
  /** The path as the client sent it, without the query. */
  readonly path: string
}

/** An operation's result. */
export interface Success {
  /** The item count, if the operation counts them. */
  readonly total?: number
  /** The cursor for the next page; `null` on the last page. */
  readonly next?: string | null
  readonly message: string
  readonly data: object | null
  /** Whether the request was answered before, and therefore has changed nothing. */
  readonly isReplay?: boolean
}

/** A verbatim result, without an envelope. */
export interface RawReply {
  readonly _tag: "Verbatim"
  /** Default: 200. */
  readonly status?: number
  /** The header fields besides the usual ones; includes the content type. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: ResponseBody
}

/** An operation's result or raw reply. */
export type OperationResult = Success | RawReply

const isVerbatim = (reply: OperationResult): reply is RawReply => Object.hasOwn(reply, "_tag")

const successBody = (subject: RequestSubject, success: Success): string =>
  JSON.stringify({
    ok: true,
    request_id: subject.requestId,
    method: subject.method,
    path: subject.path,
    code: 200,
    // JSON leaves it out if undefined.
    total: getOwn(success, "total"),
    next: getOwn(success, "next"),
    message: success.message,
    data: success.data,
  })

const failureBody = (
  subject: RequestSubject,
  error: ApiError,
  { code, details, detailsOfEach, messages, status }: ApiFailure,
): string => {
  const request = {
    request_id: subject.requestId,
    method: subject.method,
    path: subject.path,
    code: status,
  }
  // The only body without `ok`, and with the error code in `code`.
  if (error._tag === "RateLimited") {
    return JSON.stringify({
      ...request,
      error: { message: messages[0], code, retry_after: error.retryAfter },
    })
  }
  return messages.length === 1 && detailsOfEach === undefined
    ? JSON.stringify({
        ok: false,
        ...request,
        error: { error_code: code, message: messages[0], ...details },
      })
    : JSON.stringify({
        ok: false,
        ...request,
        errors: messages.map((message, index) => ({
          message,
          error_code: code,
          ...detailsOfEach?.[index],
        })),
      })
}

const headersOf = ({ limit, remaining, reset }: LimitReport) => ({
  "Content-Type": "application/json",
  // Some responses contain secrets.
  "Cache-Control": "no-store",
  "X-RateLimit-Limit": String(limit),
  "X-RateLimit-Remaining": String(remaining),
  "X-RateLimit-Reset": String(reset),
})

const replayHeader = { "Idempotent-Replayed": "true" }

/** Makes the response for a failed request. */
export const respondError = (
  subject: RequestSubject,
  report: LimitReport,
  error: ApiError,
): ApiResponse & { readonly body: string } => {
  const failure = describeApiError(error)
  return {
    status: failure.status,
    headers: { ...headersOf(report), ...failure.headers },
    body: failureBody(subject, error, failure),
  }
}

/** Makes the response to a request. */
export const respond = (
  subject: RequestSubject,
  report: LimitReport,
  outcome: Outcome<OperationResult>,
): ApiResponse => {
  if (Result.isFailure(outcome)) return respondError(subject, report, outcome.failure)
  const { success } = outcome
  const headers = headersOf(report)
  if (isVerbatim(success)) {
    return {
      status: success.status ?? 200,
      headers: { ...headers, ...success.headers },
      body: success.body,
    }
  }
  return {
    status: 200,
    headers: success.isReplay === true ? { ...headers, ...replayHeader } : headers,
    body: successBody(subject, success),
  }
}

/** A step's value, or the error for the client. */
export type Outcome<A> = Result.Result<A, ApiError>

/** Makes a failed step's outcome. */
export const failOutcome = (error: ApiError): Outcome<never> => Result.fail(error)

/** Returns the error in a cause, or `undefined` if there is a defect. */
export const apiErrorIn = (cause: Cause.Cause<ApiError>): ApiError | undefined =>
  Cause.hasDies(cause) ? undefined : Result.getOrUndefined(Cause.findError(cause))

/** Reports errors not caused by the client, and returns the error for the client. */
const outcomeReport = (
  faults: ErrorReporter,
  requestId: string,
  cause: Cause.Cause<ApiError>,
): Effect.Effect<Outcome<never>> => {
  const error = apiErrorIn(cause)
  if (error === undefined) {
    const reported = faults.defect("A request ended in a defect", cause, requestId)
    return Effect.as(reported, failOutcome({ _tag: "InternalError" }))
  }
  const outcome = failOutcome(error)
  if (error._tag !== "StoreUnavailable") return Effect.succeed(outcome)
  const heading = error.problem ?? "The store does not answer"
  return Effect.as(faults.failure(heading, error.cause, requestId), outcome)
}

/** Runs a step to its outcome. A defect's details are hidden from the client. */
export const toOutcome = <A>(
  faults: ErrorReporter,
  requestId: string,
  step: Effect.Effect<A, ApiError>,
): Effect.Effect<Outcome<A>> =>
  Effect.matchCauseEffect(step, {
    onSuccess: (value) => Effect.succeed(Result.succeed(value)),
    onFailure: (cause) => outcomeReport(faults, requestId, cause),
  })

/**
 * Makes a list page from one item more than the page may have. The extra item shows that there is a
 * next page.
 *
 * @param cursorOf - returns the cursor for the page after an item
 * @param dataOf - returns an item's response data
 */
export const pageReply = <A, Data extends object>(
  items: ReadonlyArray<A>,
  limit: number,
  cursorOf: (item: A) => string,
  dataOf: (item: A) => Data,
): Required<Pick<Success, "next" | "total">> & { readonly data: ReadonlyArray<Data> } => {
  const page = items.slice(0, limit)
  const last = items.length > limit ? page.at(-1) : undefined
  return {
    total: page.length,
    next: last === undefined ? null : cursorOf(last),
    data: page.map(dataOf),
  }
}
