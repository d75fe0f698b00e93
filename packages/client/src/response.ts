/** JSON that comes from elsewhere. */

import type { Problems } from "./operations.ts"

/** Tells whether a value is an object. */
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/**
 * Parses an object.
 *
 * @param revive - returns what takes the place of a value, as for `JSON.parse`
 * @returns `undefined` if the text is not the JSON of an object
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

/** The error of every call. */

/** Why a call has no result, if not because of an error of an operation. */
interface Faults {
  /** The server does not have the operation. */
  readonly ROUTE_NOT_FOUND: { readonly error_code: "ROUTE_NOT_FOUND"; readonly message: string }
  /** No response arrived: the server was not reached, or the connection broke. */
  readonly NETWORK_ERROR: never
  /** No response arrived in time. */
  readonly TIMEOUT: never
  /** The response is not one of the API: a redirect, a proxy's page, or too long. */
  readonly INVALID_RESPONSE: never
}

/** Every error code: those of the API, and those of the way to it. */
export type ErrorCode = keyof Problems | keyof Faults

/** An error in the body of a response, with the fields that errors of this code have. */
export type FieldProblem<Of extends ErrorCode = ErrorCode> = (Problems & Faults)[Of]

/** What is known of a failed call. */
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
  /** The code. A server that is newer than this package may send others than the type lists. */
  readonly code: Of
  /** The HTTP status, if there is a response. */
  readonly status: number | undefined
  /** The id of the request, for the support of the server's operator. */
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
 * Tells whether a call failed with an error of the API or of the way to it.
 *
 * @param error - what was caught
 * @param code - only errors with this code; their `problems` have its fields
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

/** Decides what a response means. */

/** A response that was read to its end. */
export interface JudgedResponse {
  readonly status: number
  /** The `Retry-After` header. */
  readonly retryAfter: string | null
  readonly text: string
}

/** The result of a call. */
export interface Success<Data> {
  readonly ok: true
  readonly request_id: string
  readonly method: string
  readonly path: string
  readonly code: 200
  readonly message: string
  readonly data: Data
}

/** The result of a call that counts items. */
export interface Counted<Data> extends Success<Data> {
  readonly total: number
}

/** One page of a list. */
export interface Page<Item> extends Counted<ReadonlyArray<Item>> {
  /** The cursor of the next page, `null` on the last. */
  readonly next: string | null
}

/** What came after a cursor. */
export interface Continued<Item> extends Counted<ReadonlyArray<Item>> {
  /** The cursor from which to go on. */
  readonly next: string
}

const isProblem = (value: unknown): value is FieldProblem =>
  isObject(value) &&
  typeof value["message"] === "string" &&
  typeof (value["error_code"] ?? value["code"]) === "string"

/** The errors in the body of a failure: at least one, or it is not a failure of the API. */
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

/** Tells whether a body is a result. What its data are, the OpenAPI document says. */
const isResult = <Result extends object>(body: object): body is Result =>
  "ok" in body && body.ok === true && "request_id" in body && "data" in body

/** The response is not one of the API. Nothing of its text is told: it may be anything. */
export const invalidResponse = (status: number, what: string, retryAfter?: number): TenureError =>
  new TenureError({
    code: "INVALID_RESPONSE",
    message: `The response with status ${status} ${what}.`,
    status,
    retryAfter,
  })

/**
 * Judges a response that is not a success.
 *
 * @param secret - what the error must not contain, though the server repeats it
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
 * Judges a response.
 *
 * @returns the body of a success as it is, which the OpenAPI document describes, or the error that
 *   `refusal` returns
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
