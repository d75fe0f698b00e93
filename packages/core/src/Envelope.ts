/** Response bodies: one envelope around every result and every failure. */

import type * as ApiError from "./ApiError.ts"

/** A response as adapters send it. */
export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The request that an envelope answers. */
export interface Subject {
  readonly requestId: string
  readonly method: string
  readonly path: string
}

/** The result of an operation. */
export interface Success {
  readonly _tag: "Success"
  /** The number of items, where the operation counts any. */
  readonly total?: number
  readonly message: string
  readonly data: object | null
}

/** Prints the body of a success. */
export const success = (subject: Subject, { data, message, total }: Success): string =>
  JSON.stringify({
    ok: true,
    request_id: subject.requestId,
    method: subject.method,
    path: subject.path,
    code: 200,
    // Left out by JSON where it is undefined.
    total,
    message,
    data,
  })

/** Prints the body of a failure. */
export const failure = (
  subject: Subject,
  error: ApiError.ApiError,
  { code, messages, status }: ApiError.Failure,
): string => {
  const request = {
    request_id: subject.requestId,
    method: subject.method,
    path: subject.path,
    code: status,
  }
  // The one failure without `ok`, and with `code` for the name of the error code.
  if (error._tag === "RateLimited") {
    return JSON.stringify({
      ...request,
      error: { message: messages[0], code, retry_after: error.retryAfter },
    })
  }
  return messages.length === 1
    ? JSON.stringify({ ok: false, ...request, error: { error_code: code, message: messages[0] } })
    : JSON.stringify({
        ok: false,
        ...request,
        errors: messages.map((message) => ({ message, error_code: code })),
      })
}
