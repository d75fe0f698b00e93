/** Decides what a response means. */

import { isObject, parseObject } from "./json.ts"
import { type Problem, TenureError } from "./TenureError.ts"

/** A response that was read to its end. */
export interface Answer {
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

const isProblem = (value: unknown): value is Problem =>
  isObject(value) &&
  typeof value["message"] === "string" &&
  typeof (value["error_code"] ?? value["code"]) === "string"

/** The errors in the body of a failure: at least one, or it is not a failure of the API. */
const problemsOf = (body: Readonly<Record<string, unknown>>): ReadonlyArray<Problem> => {
  const { error, errors = [error] } = body
  return Array.isArray(errors) && errors.every(isProblem) ? errors : []
}

const codeOf = (problem: Problem) => ("error_code" in problem ? problem.error_code : problem.code)

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
export const invalid = (status: number, what: string, retryAfter?: number): TenureError =>
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
export const refusal = (answer: Answer, secret: string | undefined, now: number): TenureError => {
  const { status, text } = answer
  const retryAfter = readRetryAfter(answer.retryAfter, now)
  const body = parseObject(text, (_, value) =>
    typeof value === "string" && secret !== undefined ? value.replaceAll(secret, "…") : value,
  )
  const problems = body === undefined ? [] : problemsOf(body)
  const [first] = problems
  if (first === undefined) return invalid(status, "is not one of Tenure", retryAfter)
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
export const judge = <Result extends object>(
  answer: Answer,
  secret: string | undefined,
  now: number,
): Result | TenureError => {
  if (answer.status !== 200) return refusal(answer, secret, now)
  const body = parseObject(answer.text)
  return body !== undefined && isResult<Result>(body) ? body : invalid(200, "is not a result")
}
