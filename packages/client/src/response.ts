/** Reads responses: JSON, results, errors. */

import type { Problems } from "./operations.ts"

/** Tells whether a value is an object. */
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/**
 * Parses an object.
 *
 * @param revive - replaces a value, as in `JSON.parse`
 * @returns `undefined` if the text is not a JSON object
 */
export const parseObject = (
  text: string,
  revive?: (name: string, value: unknown) => unknown,
): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text, revive)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Errors raised outside the API's operations. */
interface Faults {
  /** The server does not have the operation. */
  readonly ROUTE_NOT_FOUND: { readonly error_code: "ROUTE_NOT_FOUND"; readonly message: string }
  /** No response arrived: the server was not reached, or the connection broke. */
  readonly NETWORK_ERROR: never
  /** No response arrived in time. */
  readonly TIMEOUT: never
  /** The response does not come from the API: a redirect, a proxy's page, or too long. */
  readonly INVALID_RESPONSE: never
}

/** An error code from the API or from the connection to it. */
export type ErrorCode = keyof Problems | keyof Faults

/** One error in a response body, with the fields for its code. */
export type FieldProblem<Of extends ErrorCode = ErrorCode> = (Problems & Faults)[Of]

/** Details about a failed call. */
export interface TenureErrorDetails<Of extends ErrorCode = ErrorCode> {
  readonly code: Of
  readonly message: string
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly retryAfter?: number | undefined
  readonly problems?: ReadonlyArray<FieldProblem<Of>>
  readonly cause?: unknown
}

/** A call failed. `code` says why; its type lists all codes. */
export class TenureError<Of extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "TenureError"
  /** The code. A newer server may send codes missing from this type. */
  readonly code: Of
  /** The HTTP status, if there is a response. */
  readonly status: number | undefined
  /** The request id, for a support request to the server's operator. */
  readonly requestId: string | undefined
  /** How many seconds the server asks to wait. */
  readonly retryAfter: number | undefined
  /** The errors in the response: one, or several for several faults in the input. */
  readonly problems: ReadonlyArray<FieldProblem<Of>>

  constructor(failure: TenureErrorDetails<Of>) {
    super(failure.message, { cause: failure.cause })
    this.code = failure.code
    this.status = failure.status
    this.requestId = failure.requestId
    this.retryAfter = failure.retryAfter
    this.problems = failure.problems ?? []
  }
}

/**
 * Tells whether an error is a `TenureError`.
 *
 * @param error - the caught error
 * @param code - accepts only this code and types `problems` accordingly
 * @example
 * ```ts
 * import { createClient, isTenureError } from "tenure/client"
 *
 * const client = createClient({ baseUrl: "http://127.0.0.1:3000", token: "a token" })
 * const member = { project_id: "p1", user_id: "1001" }
 * try {
 *   await client.memberships.extend({ ...member, extend: "2099-01-01T00:00:00.000Z" })
 * } catch (error) {
 *   if (!isTenureError(error, "MEMBERSHIP_NOT_FOUND")) throw error
 *   console.log("not a member", error.requestId)
 * }
 * ```
 */
export const isTenureError = <Of extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: Of,
): error is TenureError<Of> =>
  error instanceof TenureError && (code === undefined || error.code === code)

/** A complete response. */
export interface JudgedResponse {
  readonly status: number
  /** The `Retry-After` header. */
  readonly retryAfter: string | null
  readonly text: string
}

/** A successful call's result. */
export interface Success<Data> {
  readonly ok: true
  readonly request_id: string
  readonly method: string
  readonly path: string
  readonly code: 200
  readonly message: string
  readonly data: Data
}

/** A result with a number of items. */
export interface Counted<Data> extends Success<Data> {
  readonly total: number
}

export interface Page<Item> extends Counted<ReadonlyArray<Item>> {
  /** The cursor for the next page, `null` on the last page. */
  readonly next: string | null
}

/** The items after a cursor. */
export interface Continued<Item> extends Counted<ReadonlyArray<Item>> {
  /** The cursor to continue from. */
  readonly next: string
}

const isProblem = (value: unknown): value is FieldProblem =>
  isObject(value) &&
  typeof value["message"] === "string" &&
  typeof (value["error_code"] ?? value["code"]) === "string"

/** Returns the errors in a failure's body. The API always sends at least one. */
const problemsOf = (body: Readonly<Record<string, unknown>>): ReadonlyArray<FieldProblem> => {
  const { error, errors = [error] } = body
  return Array.isArray(errors) && errors.every(isProblem) ? errors : []
}

const codeOf = (problem: FieldProblem) =>
  "error_code" in problem ? problem.error_code : problem.code

/**
 * Reads the `Retry-After` header: seconds, or a date.
 *
 * @param now - the current time in milliseconds since the epoch
 * @returns seconds, or `undefined` if there is no valid header
 */
export const readRetryAfter = (header: string | null, now: number): number | undefined => {
  if (header === null) return undefined
  if (/^\d+$/.test(header)) return Number(header)
  const at = header.endsWith(" GMT") ? Date.parse(header) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}

/** Tells whether a body is a result. The OpenAPI document describes its data; nothing checks it here. */
const isResult = <Result extends object>(body: object): body is Result =>
  "ok" in body && body.ok === true && "request_id" in body && "data" in body

/**
 * The response does not come from the API. The message omits its text, because it may contain anything.
 */
export const invalidResponse = (status: number, what: string, retryAfter?: number): TenureError =>
  new TenureError({
    code: "INVALID_RESPONSE",
    message: `The response with status ${status} ${what}.`,
    status,
    retryAfter,
  })

/**
 * Converts a failed response to an error.
 *
 * @param secret - removed from the error, in case the server repeats it
 * @param now - the current time in milliseconds since the epoch
 */
export const refusalError = (
  answer: JudgedResponse,
  secret: string | undefined,
  now: number,
): TenureError => {
  const { status, text } = answer
  const retryAfter = readRetryAfter(answer.retryAfter, now)
  const body = parseObject(text, (_, value) =>
    typeof value === "string" && secret !== undefined ? value.replaceAll(secret, "…") : value,
  )
  const problems = body === undefined ? [] : problemsOf(body)
  const [first] = problems
  if (first === undefined) return invalidResponse(status, "is not one of Tenure", retryAfter)
  return new TenureError({
    code: codeOf(first),
    message: problems.map(({ message }) => message).join("; "),
    status,
    requestId: typeof body?.["request_id"] === "string" ? body["request_id"] : undefined,
    retryAfter: retryAfter ?? ("retry_after" in first ? first.retry_after : undefined),
    problems,
  })
}

/**
 * Converts a response to a result or an error.
 *
 * @returns the body as described in the OpenAPI document, or an error from `refusalError`
 */
export const judgeResponse = <Result extends object>(
  answer: JudgedResponse,
  secret: string | undefined,
  now: number,
): Result | TenureError => {
  if (answer.status !== 200) return refusalError(answer, secret, now)
  const body = parseObject(answer.text)
  return body !== undefined && isResult<Result>(body)
    ? body
    : invalidResponse(200, "is not a result")
}
