/** Reads web requests and writes web responses. */

import {
  type ApiRequest,
  type ArrivedBody,
  type Authenticate,
  type Body,
  type HeaderFields,
  type Mountable,
  abortedBody,
  checkMountable,
  consumedBody,
  emptyBody,
  hasUnknownCoding,
  pathOf,
  queryOf,
  tooLargeBody,
  unknownCodingBody,
} from "@tenure/core/adapter"
import { type BodyLimit, Setting } from "@tenure/core/internal"

const concat = (chunks: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const [only] = chunks
  if (only !== undefined && chunks.length === 1) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

const readBodyRead = async (
  stream: ReadableStream<Uint8Array>,
  limit: number,
  most: number,
): Promise<ArrivedBody> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of stream) {
    length += chunk.length
    if (length <= limit) chunks.push(chunk)
    else if (length > most) break
  }
  return length > limit ? tooLargeBody : { _tag: "Bytes", bytes: concat(chunks, length) }
}

/** Reads a stream of at most `limit` bytes. Reads a longer one up to `most` bytes, and discards it. */
const readStream = (
  stream: ReadableStream<Uint8Array>,
  limit: number,
  most: number,
): Promise<ArrivedBody> => readBodyRead(stream, limit, most).catch(() => abortedBody)

/** Reads a request's body at once. */
const readWhole = (request: Request): Promise<ArrivedBody> =>
  request.arrayBuffer().then(
    (buffer): ArrivedBody => ({ _tag: "Bytes", bytes: new Uint8Array(buffer) }),
    () => abortedBody,
  )

/** Schedules a callback for the end of this turn in the event loop. */
type Immediately = (callback: () => void) => unknown

// In a worker, each request has its own context, possibly gone before another request's timer fires.
// There, requests must not share a timer.
const userAgent = String(Reflect.get(globalThis, "navigator")?.userAgent)
const sharesEventLoop = /^(Node\.js|Bun|Deno)\//.test(userAgent)

// Kept, because a host's tests may replace the global function.
const immediately: Immediately | undefined = sharesEventLoop
  ? Reflect.get(globalThis, "setImmediate")
  : undefined

// A server on Node stops reading a connection once enough of its responses wait to be sent. It must not
// keep reading while requests wait here.
const maxWaiting = 64

let next: Promise<void> | undefined
let waiting = 0

const makeTurn = (): Promise<void> | undefined =>
  immediately &&
  new Promise((resolve) => {
    immediately(() => {
      next = undefined
      waiting = 0
      resolve()
    })
  })

/**
 * Waits until the end of this turn in the event loop, if the runtime has one. By then, everything
 * received has been read.
 *
 * Reading all requests and then answering all takes less processor time than finishing each in turn,
 * because each step finds its code and data in the processor's caches. At most 64 requests wait; others
 * continue at once.
 */
export const nextTick = (): Promise<void> | undefined =>
  ++waiting > maxWaiting ? undefined : (next ??= makeTurn())

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts a response's stream. Takes the next text after sending the previous one, ends the stream
 * when the client disconnects, and aborts when the client reads nothing for a minute.
 */
export const toWebStream = (texts: AsyncIterable<string>): ReadableStream<Uint8Array> => {
  const iterator = texts[Symbol.asyncIterator]()
  const utf8 = new TextEncoder()
  let patience: ReturnType<typeof setTimeout> | undefined

  return new ReadableStream(
    {
      pull: async (controller) => {
        clearTimeout(patience)
        const { done, value } = await iterator.next()
        if (done === true) return controller.close()
        controller.enqueue(utf8.encode(value))
        patience = setTimeout(() => {
          controller.error(new Error("The client does not read."))
          void iterator.return?.()
        }, patienceMillis)
      },
      cancel: async () => {
        clearTimeout(patience)
        await iterator.return?.()
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
}

export const fetchHandlerOptions = Setting.object({
  /**
   * Authenticates requests in place of API keys. By default, `authenticate` in the options for
   * `createTenure` does.
   */
  authenticate: Setting.callback<Authenticate<Request>>(),
})

/** The options as a host passes them. */
export interface FetchHandlerOptions extends Setting.InputOf<typeof fetchHandlerOptions> {}

/** The host's knowledge about a request beyond the web request. */
export interface RequestInfo {
  /** The client's IP address. Without a valid address, clients share one address's limits. */
  readonly remoteAddress?: string | undefined
  /** The parsed body, if the host has read it. A web request can be read only once. */
  readonly parsedBody?: unknown
}

/** Answers requests for the API. Returns `undefined` for all others. */
export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response> | undefined

// Web requests with these methods have no body (Fetch, 5.3).
const withoutBody = new Set(["GET", "HEAD"])

// Web requests join a repeated header's values with commas.
const joined = /, *(?=bearer )/i

const headersOf = (request: Request): HeaderFields => {
  const headers: Record<string, string> = Object.fromEntries(request.headers)
  const { authorization } = headers
  return authorization !== undefined && joined.test(authorization)
    ? { ...headers, authorization: authorization.split(joined) }
    : headers
}

// Bun closes a connection with the response if the client asks for that. What the client still sends
// then resets the connection, often before it has read the response, so the body is read first. Bun
// reads it in any case if the connection stays.
const maxDiscarded = 20_000_000
const isBun = userAgent.startsWith("Bun/")

const isResetByResponse = ({ connection }: HeaderFields): boolean =>
  isBun && /^close$/i.test(String(connection))

const read = (
  request: Request,
  headers: HeaderFields,
  limit: number,
): ArrivedBody | Promise<ArrivedBody> => {
  // HTTP limits a body to its announced length, and reading it at once is faster than streaming it.
  if (headers["content-length"] !== undefined) return readWhole(request)
  const most = isResetByResponse(headers) ? maxDiscarded : limit
  return request.body === null ? emptyBody : readStream(request.body, limit, most)
}

const discard = async ({ body, bodyUsed }: Request): Promise<void> => {
  if (body !== null && !bodyUsed) await readStream(body, 0, maxDiscarded)
}

const bodyOf = (
  request: Request,
  headers: HeaderFields,
  { parsedBody }: RequestInfo,
  { bytes: limit, isDeferred }: BodyLimit,
): Body | Promise<Body> => {
  if (parsedBody !== undefined) return { _tag: "Parsed", value: parsedBody }
  if (request.bodyUsed) return consumedBody
  if (hasUnknownCoding(headers)) return unknownCodingBody
  if (withoutBody.has(request.method)) return emptyBody
  const { "content-length": length } = headers
  if (Number(length) > limit) return tooLargeBody
  return isDeferred
    ? { _tag: "Deferred", read: async () => read(request, headers, limit) }
    : read(request, headers, limit)
}

/**
 * Creates a handler for web requests: for Hono, Next.js, Bun, Deno, workers and other fetch hosts.
 *
 * It matches the URL's whole path. To mount the API under a path, set `basePath` in the options for
 * `createTenure`. Throws a `TypeError` unless `tenure` comes from `await createTenure(…)`, and
 * `InvalidInput` if an option is invalid.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { fetchHandler } from "tenure/fetch"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 * const api = fetchHandler(tenure)
 *
 * export default {
 *   fetch: (request: Request) =>
 *     api(request, { remoteAddress: request.headers.get("cf-connecting-ip") ?? undefined }) ??
 *     new Response("the rest of your backend"),
 * }
 * ```
 */
export const fetchHandler = (tenure: Mountable, given: FetchHandlerOptions = {}): FetchHandler => {
  checkMountable(tenure)
  const { authenticate } = Setting.parse(fetchHandlerOptions, given)
  return (request, info = {}) => {
    const path = pathOf(request.url)
    return tenure.owns(path) ? answer(tenure, request, path, info, authenticate) : undefined
  }
}

const answer = async (
  tenure: Mountable,
  request: Request,
  path: string,
  info: RequestInfo,
  authenticate: FetchHandlerOptions["authenticate"],
): Promise<Response> => {
  const headers = headersOf(request)
  const apiRequest: ApiRequest = {
    method: request.method,
    path,
    query: queryOf(request.url),
    headers,
    body: await bodyOf(request, headers, info, tenure.bodyLimit(request.method, path)),
    remoteAddress: info.remoteAddress,
    scheme: request.url.startsWith("https:") ? "https" : undefined,
    signal: () => request.signal,
    ...(authenticate && { authenticate: () => authenticate(request) }),
  }
  await nextTick()
  const { body, headers: fields, status } = await tenure.handle(apiRequest)
  const content = typeof body === "string" ? body : toWebStream(body)
  const response = new Response(content, { status, headers: fields })
  if (isResetByResponse(headers)) {
    await discard(request)
    // Bun does not tell it by itself.
    response.headers.set("connection", "close")
  }
  return response
}
