/** The error of every call. */

import type { Problems } from "./operations.ts"

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
export type Code = keyof Problems | keyof Faults

/** An error in the body of a response, with the fields that errors of this code have. */
export type Problem<Of extends Code = Code> = (Problems & Faults)[Of]

/** What is known of a failed call. */
export interface Failure<Of extends Code = Code> {
  readonly code: Of
  readonly message: string
  readonly status?: number | undefined
  readonly requestId?: string | undefined
  readonly retryAfter?: number | undefined
  readonly problems?: ReadonlyArray<Problem<Of>>
  readonly cause?: unknown
}

/** A call failed. `code` says why; its type lists all codes. */
export class TenureError<Of extends Code = Code> extends Error {
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
  readonly problems: ReadonlyArray<Problem<Of>>

  constructor(failure: Failure<Of>) {
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
export const isTenureError = <Of extends Code = Code>(
  error: unknown,
  code?: Of,
): error is TenureError<Of> =>
  error instanceof TenureError && (code === undefined || error.code === code)
