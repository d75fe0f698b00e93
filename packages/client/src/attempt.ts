/** One attempt to perform a call. */

import type { Outgoing } from "./request.ts"
import { type Answer, invalid, judge } from "./response.ts"
import { TenureError } from "./TenureError.ts"

/** What every attempt of a client needs. */
export interface Connection {
  readonly baseUrl: string
  readonly token: string
  readonly fetch: typeof globalThis.fetch
  /** How long an attempt may take, in milliseconds. */
  readonly timeout: number
  /** The longest response, in bytes. */
  readonly maxResponseBytes: number
}

/** Iterates over the chunks of a stream, which not every runtime does by itself. */
const chunksOf = (stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> => {
  const reader = stream.getReader()
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const { done, value } = await reader.read()
        return done ? { done, value: undefined } : { done, value }
      },
      return: async () => {
        await reader.cancel()
        return { done: true, value: undefined }
      },
    }),
  }
}

/** Reads a body, or returns `undefined` if it is longer than `limit` bytes. */
const read = async (response: Response, limit: number): Promise<string | undefined> => {
  if (response.body === null) return ""
  const decoder = new TextDecoder()
  let text = ""
  let length = 0
  for await (const chunk of chunksOf(response.body)) {
    length += chunk.length
    if (length > limit) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** A signal that also aborts when time is up. */
const deadline = (timeout: number, signal: AbortSignal | undefined) => {
  const controller = new AbortController()
  let isOver = false
  const abort = () => controller.abort(signal?.reason)
  const timer = setTimeout(() => {
    isOver = true
    controller.abort()
  }, timeout)
  signal?.addEventListener("abort", abort)
  return {
    signal: controller.signal,
    isOver: () => isOver,
    clear: () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", abort)
    },
  }
}

const headersOf = (
  token: string,
  { body, contentType }: Outgoing,
  idempotencyKey: string | undefined,
): Record<string, string> => ({
  authorization: `Bearer ${token}`,
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
  const limit = deadline(timeout, signal)
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
