/** Responses: one envelope around every result and every error. */

import * as Result from "effect/Result"
import { own } from "../base/Own.ts"
import type { Report } from "../limits/RateLimiter.ts"
import * as ApiError from "./ApiError.ts"
import type { Outcome } from "./Outcome.ts"

/** A response as adapters send it. */
export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ResponseBody
}

/**
 * The body of a response: a text, or the texts of a stream. An adapter asks for the next text of a stream
 * once it has sent the one before, and calls `return` when the client has gone, even if it has not asked
 * for any. It may call `return` while it waits for a text. A stream never throws.
 */
export type ResponseBody = string | AsyncIterable<string>

/** What an envelope says of the request that it answers. */
export interface Subject {
  /** A UUID, new for each request. */
  readonly requestId: string
  readonly method: string
  /** The path as the client sent it, without the query. */
  readonly path: string
}

/** The result of an operation. */
export interface Success {
  /** The number of items, if the operation counts them. */
  readonly total?: number
  /** The cursor of the next page of a list; `null` on the last page. */
  readonly next?: string | null
  readonly message: string
  readonly data: object | null
  /** Whether the request was answered before, and therefore has changed nothing. */
  readonly isReplay?: boolean
}

/** A result that is sent as it is, without an envelope. */
export interface Verbatim {
  readonly _tag: "Verbatim"
  /** Default: 200. */
  readonly status?: number
  /** The header fields besides those of every response; the content type is among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: ResponseBody
}

/** What an operation answers. */
export type Reply = Success | Verbatim

const isVerbatim = (reply: Reply): reply is Verbatim => Object.hasOwn(reply, "_tag")

const successBody = (subject: Subject, success: Success): string =>
  JSON.stringify({
    ok: true,
    request_id: subject.requestId,
    method: subject.method,
    path: subject.path,
    code: 200,
    // JSON leaves it out if undefined.
    total: own(success, "total"),
    next: own(success, "next"),
    message: success.message,
    data: success.data,
  })

const failureBody = (
  subject: Subject,
  error: ApiError.ApiError,
  { code, details, detailsOfEach, messages, status }: ApiError.Failure,
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

const headersOf = ({ limit, remaining, reset }: Report) => ({
  "Content-Type": "application/json",
  // Some responses contain secrets.
  "Cache-Control": "no-store",
  "X-RateLimit-Limit": String(limit),
  "X-RateLimit-Remaining": String(remaining),
  "X-RateLimit-Reset": String(reset),
})

const replayHeader = { "Idempotent-Replayed": "true" }

/** Makes the response to a request that fails. */
export const refuse = (
  subject: Subject,
  report: Report,
  error: ApiError.ApiError,
): ApiResponse & { readonly body: string } => {
  const failure = ApiError.describe(error)
  return {
    status: failure.status,
    headers: { ...headersOf(report), ...failure.headers },
    body: failureBody(subject, error, failure),
  }
}

/** Makes the response to a request. */
export const respond = (subject: Subject, report: Report, outcome: Outcome<Reply>): ApiResponse => {
  if (Result.isFailure(outcome)) return refuse(subject, report, outcome.failure)
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
