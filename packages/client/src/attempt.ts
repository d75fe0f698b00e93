/** One attempt to perform a call. */

import { read } from "./body.ts"
import { deadline } from "./deadline.ts"
import type { Outgoing } from "./request.ts"
import { type Answer, invalid, judge } from "./response.ts"
import { TenureError } from "./TenureError.ts"

/** What every attempt of a client needs. */
export interface Connection {
  readonly baseUrl: string
  /** The token of an API key, unless something else says who calls, such as a cookie. */
  readonly token: string | undefined
  readonly fetch: typeof globalThis.fetch
  /** How long an attempt may take, in milliseconds. */
  readonly timeout: number
  /** The longest response, in bytes. */
  readonly maxResponseBytes: number
}

/** The header field that says who calls. */
export const authorization = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

const headersOf = (
  token: string | undefined,
  { body, contentType }: Outgoing,
  idempotencyKey: string | undefined,
): Record<string, string> => ({
  ...authorization(token),
  ...(body !== undefined && { "content-type": contentType }),
  ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
})

/**
 * Sends a request, and judges the response.
 *
 * @returns the result or an error. Rejects with the reason of `signal` if it is aborted.
 */
export const attempt = async <Result extends object>(
  connection: Connection,
  outgoing: Outgoing,
  idempotencyKey: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Result | TenureError> => {
  signal?.throwIfAborted()
  const { baseUrl, fetch, maxResponseBytes, timeout, token } = connection
  const { body = null, method, target } = outgoing
  const limit = deadline(signal)
  limit.start(timeout)
  try {
    const response = await fetch(baseUrl + target, {
      method,
      headers: headersOf(token, outgoing, idempotencyKey),
      body,
      // Another server must not see the token.
      redirect: "manual",
      signal: limit.signal,
    })
    const { headers, status } = response
    const text = await read(response, maxResponseBytes)
    if (text === undefined) return invalid(status, `is longer than ${maxResponseBytes} bytes`)
    const answer: Answer = { status, retryAfter: headers.get("retry-after"), text }
    return judge<Result>(answer, token, Date.now())
  } catch (cause) {
    signal?.throwIfAborted()
    return limit.isOver()
      ? new TenureError({ code: "TIMEOUT", message: `No response arrived in ${timeout} ms.` })
      : new TenureError({ code: "NETWORK_ERROR", message: "No response arrived.", cause })
  } finally {
    limit.clear()
  }
}
