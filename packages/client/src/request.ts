/** Builds and sends one request, and decides whether to retry it. */

import { type JudgedResponse, TenureError, invalidResponse, judgeResponse } from "./response.ts"

export type Method = "DELETE" | "GET" | "PATCH" | "POST" | "PUT"

/** A path as the document writes it, with parameters in braces. */
export type RequestTemplate = `/v2/${string}`

/** A request without the parts shared by all requests from a client. */
export interface OutgoingRequest {
  readonly method: Method
  /** The path with the query. */
  readonly target: string
  readonly body: string | undefined
  readonly contentType: string
}

/** Input with a body in lines of JSON. */
export interface WithLines {
  readonly lines: Iterable<object>
}

// Paths for all memberships of a project have these in the place of a user id.
const reservedWords = new Set(["extend", "import"])

/**
 * Encodes one path segment. URLs resolve `.` and `..` even if they are percent-encoded, and cannot encode lone surrogates.
 * A number is no id: JavaScript rounds long ones, and the rounded one may belong to somebody else.
 */
const segment = (name: string, value: unknown): string => {
  if (typeof value !== "string" || /^\.{0,2}$|\p{Surrogate}/u.test(value)) {
    throw new TypeError(
      `${name} must be a text without lone surrogates, and neither empty nor "." nor ".."`,
    )
  }
  return name === "user_id" && reservedWords.has(value)
    ? `%${value.charCodeAt(0).toString(16)}${value.slice(1)}`
    : encodeURIComponent(value)
}

const parameter = /\{(\w+)\}/g

const queryOf = (fields: ReadonlyArray<readonly [string, unknown]>): string => {
  const texts = fields.map(([name, value]): [string, string] => [name, String(value)])
  return texts.length === 0 ? "" : `?${new URLSearchParams(texts)}`
}

/** Fills in the path parameters. Also returns the remaining fields. */
const fill = (template: RequestTemplate, input: object) => {
  const rest = new Map<string, unknown>(Object.entries(input))
  const path = template.replaceAll(parameter, (_, name: string) => {
    const value = rest.get(name)
    rest.delete(name)
    return segment(name, value)
  })
  return { path, fields: [...rest].filter(([, value]) => value !== undefined) }
}

/**
 * Builds a request. Input fields without a place in the path become the query or the body.
 *
 * @throws TypeError if a path parameter is missing or would change the path
 */
export const makeRequest = (
  method: Method,
  template: RequestTemplate,
  input: object,
): OutgoingRequest => {
  const { fields, path } = fill(template, input)
  const contentType = "application/json"
  if (method === "GET" || method === "DELETE") {
    return { method, target: `${path}${queryOf(fields)}`, body: undefined, contentType }
  }
  const body = fields.length === 0 ? undefined : JSON.stringify(Object.fromEntries(fields))
  return { method, target: path, body, contentType }
}

/** Builds a request with a body in lines of JSON. Throws as `makeRequest` does. */
export const makeLinesRequest = (
  method: Method,
  template: RequestTemplate,
  { lines, ...input }: WithLines,
): OutgoingRequest => {
  const { fields, path } = fill(template, input)
  return {
    method,
    target: `${path}${queryOf(fields)}`,
    body: Array.from(lines, (line) => `${JSON.stringify(line)}\n`).join(""),
    contentType: "application/x-ndjson",
  }
}

/** Time to wait for something, from each start on. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Starts to wait, in milliseconds. */
  readonly start: (timeout: number) => void
  readonly stop: () => void
  /** Whether time was up. */
  readonly isOver: () => boolean
  /** Aborts the signal. */
  readonly abort: () => void
  /** Stops the timer and unsubscribes from the given signal. */
  readonly clear: () => void
}

/**
 * Creates a deadline, not yet started.
 *
 * @param signal - also aborts the deadline's signal
 */
export const deadline = (signal: AbortSignal | undefined): Deadline => {
  const controller = new AbortController()
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const abort = () => controller.abort(signal?.reason)
  const expire = () => {
    isOver = true
    abort()
  }
  const stop = () => clearTimeout(timer)
  signal?.addEventListener("abort", abort)
  if (signal?.aborted === true) abort()
  return {
    signal: controller.signal,
    start: (timeout) => {
      stop()
      timer = setTimeout(expire, timeout)
    },
    stop,
    isOver: () => isOver,
    abort,
    clear: () => {
      stop()
      signal?.removeEventListener("abort", abort)
    },
  }
}

/** Iterates over a stream's chunks. Some runtimes cannot iterate over a stream. */
export const bodyChunks = (stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> => {
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
export const readBody = async (response: Response, limit: number): Promise<string | undefined> => {
  if (response.body === null) return ""
  const decoder = new TextDecoder()
  let text = ""
  let length = 0
  for await (const chunk of bodyChunks(response.body)) {
    length += chunk.length
    if (length > limit) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** Settings shared by all attempts. */
export interface Connection {
  readonly baseUrl: string
  /** The API key's token. `undefined` if a cookie, for example, identifies the caller. */
  readonly token: string | undefined
  readonly fetch: typeof globalThis.fetch
  /** How long an attempt may take, in milliseconds. */
  readonly timeout: number
  /** The longest response, in bytes. */
  readonly maxResponseBytes: number
}

/** Returns the `authorization` header field. */
export const authorization = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` }

const headersOf = (
  token: string | undefined,
  { body, contentType }: OutgoingRequest,
  idempotencyKey: string | undefined,
): Record<string, string> => ({
  ...authorization(token),
  ...(body !== undefined && { "content-type": contentType }),
  ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
})

/**
 * Sends a request and reads the response.
 *
 * @returns the result or an error. Rejects with the reason of `signal` if it aborts.
 */
export const attempt = async <Result extends object>(
  connection: Connection,
  outgoing: OutgoingRequest,
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
    const text = await readBody(response, maxResponseBytes)
    if (text === undefined)
      return invalidResponse(status, `is longer than ${maxResponseBytes} bytes`)
    const answer: JudgedResponse = { status, retryAfter: headers.get("retry-after"), text }
    return judgeResponse<Result>(answer, token, Date.now())
  } catch (cause) {
    signal?.throwIfAborted()
    return limit.isOver()
      ? new TenureError({ code: "TIMEOUT", message: `No response arrived in ${timeout} ms.` })
      : new TenureError({ code: "NETWORK_ERROR", message: "No response arrived.", cause })
  } finally {
    limit.clear()
  }
}

/** The maximum delay for a timer, in milliseconds. */
export const longestTime = 2_147_483_647

/**
 * Waits.
 *
 * @param millis - at most `longestTime`
 * @param signal - ends the wait: the promise rejects with its reason
 */
export const sleep = (millis: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, millis)
    signal?.addEventListener("abort", abort)
    if (signal?.aborted === true) abort()
  })

export interface RetryLimits {
  /** The most attempts after the first. */
  readonly maxRetries: number
  /** The longest wait before a retry, in milliseconds. */
  readonly maxWait: number
}

const firstWait = 500
const longestWait = 8000

// A proxy answers 502 or 504 when its connection to the server breaks.
const statuses: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504])
const codes: ReadonlySet<string> = new Set(["NETWORK_ERROR", "TIMEOUT", "IDEMPOTENCY_IN_PROGRESS"])

/** Returns the wait without a `Retry-After`: it doubles with each attempt, and half is random. */
const backOff = (retries: number, random: number): number =>
  Math.min(longestWait, firstWait * 2 ** retries) * (0.5 + random / 2)

/**
 * How long to wait before the next attempt.
 *
 * @param retries - how many attempts have followed the first
 * @param random - a number from 0 to 1
 * @returns milliseconds, or `undefined` if there is no next attempt
 */
export const retryDelay = (
  { code, retryAfter, status }: TenureError,
  retries: number,
  { maxRetries, maxWait }: RetryLimits,
  random: number,
): number | undefined => {
  if (retries >= maxRetries || !(statuses.has(status) || codes.has(code))) return undefined
  const wait = retryAfter === undefined ? backOff(retries, random) : retryAfter * 1000
  return wait <= maxWait ? wait : undefined
}

const longestPause = 30_000

/** Tells whether to reconnect after this error. Reconnecting has no maximum number of attempts. */
export const isTransient = ({ code, status = 0 }: TenureError): boolean =>
  codes.has(code) || status === 429 || status >= 500

/**
 * Returns the wait before the next connection in milliseconds: a random part of a maximum, doubled per
 * failure, but at least the time requested by the server.
 *
 * @param error - the error on the last connection, if any
 * @param failures - the number of consecutive failures
 * @param first - the maximum wait without a failure, in milliseconds
 * @param random - a number from 0 to 1
 */
export const reconnectDelay = (
  error: TenureError | undefined,
  failures: number,
  first: number,
  random: number,
): number =>
  Math.min(
    longestTime,
    1000 * (error?.retryAfter ?? 0) +
      random * Math.min(longestPause, Math.max(1, first) * 2 ** failures),
  )
