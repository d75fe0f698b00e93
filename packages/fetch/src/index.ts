/** Reads the body of a web request. */

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
): Promise<ArrivedBody> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of stream) {
    length += chunk.length
    if (length > limit) return tooLargeBody
    chunks.push(chunk)
  }
  return { _tag: "Bytes", bytes: concat(chunks, length) }
}

/** Reads a stream up to a limit in bytes. */
export const readStream = (
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<ArrivedBody> => readBodyRead(stream, limit).catch(() => abortedBody)

/** Reads the body of a request at once. */
export const readWhole = (request: Request): Promise<ArrivedBody> =>
  request.arrayBuffer().then(
    (buffer): ArrivedBody => ({ _tag: "Bytes", bytes: new Uint8Array(buffer) }),
    () => abortedBody,
  )

/** Answers requests that arrive together one right after the other. */

type Immediately = (callback: () => void) => unknown

// In a runtime that gives each request its own context, such as a worker, a request must not wait for
// a timer of another request, which may be gone.
const userAgent = String(Reflect.get(globalThis, "navigator")?.userAgent)
const sharesEventLoop = /^(Node\.js|Bun|Deno)\//.test(userAgent)

// Kept, because a host's tests may replace the global function.
const immediately: Immediately | undefined = sharesEventLoop
  ? Reflect.get(globalThis, "setImmediate")
  : undefined

// A server on Node stops reading a connection once enough of its responses wait to be sent. It must
// not read on and on while requests wait here instead.
const mostWaiting = 64

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
 * Waits until the end of this turn of the event loop, if the runtime has one. By then everything that
 * has arrived is read.
 *
 * Reading all requests and then answering all takes less processor time than finishing each in turn,
 * because what each step needs stays in the processor's caches. At most 64 requests wait; the others
 * go on at once.
 */
export const nextTick = (): Promise<void> | undefined =>
  ++waiting > mostWaiting ? undefined : (next ??= makeTurn())

/** Sends the streams of responses. */

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts the stream of a response. It takes the next text when the one before was sent, ends the stream
 * when the client has gone, and breaks off when nobody takes a text for a minute.
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

/** Tenure for hosts that speak fetch: web requests in, web responses out. */

/** The options of the handler. */
export const fetchHandlerOptions = Setting.object({
  /**
   * Authenticates requests in place of API keys. By default, `authenticate` of the options of
   * `createTenure` does.
   */
  authenticate: Setting.callback<Authenticate<Request>>(),
})

/** The options that a host passes. */
export interface FetchHandlerOptions extends Setting.InputOf<typeof fetchHandlerOptions> {}

/** What the host knows about a request, and the web request does not contain. */
export interface RequestInfo {
  /**
   * The IP address of the client. If missing or not an address, the client shares the limits of one
   * address with all others without one.
   */
  readonly remoteAddress?: string | undefined
  /** The parsed body, if the host has read it. A web request can be read only once. */
  readonly parsedBody?: unknown
}

/** Answers requests for the API. Returns `undefined` for all others. */
export type FetchHandler = (request: Request, info?: RequestInfo) => Promise<Response> | undefined

// A web request with one of these methods has no body (Fetch, 5.3).
const withoutBody = new Set(["GET", "HEAD"])

// A web request joins the values of a repeated header with commas.
const joined = /, *(?=bearer )/i

const headersOf = (request: Request): HeaderFields => {
  const headers: Record<string, string> = Object.fromEntries(request.headers)
  const { authorization } = headers
  return authorization !== undefined && joined.test(authorization)
    ? { ...headers, authorization: authorization.split(joined) }
    : headers
}

const read = (
  request: Request,
  hasLength: boolean,
  limit: number,
): ArrivedBody | Promise<ArrivedBody> => {
  // HTTP limits a body to its announced length, and reading it at once is faster than streaming it.
  if (hasLength) return readWhole(request)
  return request.body === null ? emptyBody : readStream(request.body, limit)
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
  const hasLength = length !== undefined
  return isDeferred
    ? { _tag: "Deferred", read: async () => read(request, hasLength, limit) }
    : read(request, hasLength, limit)
}

/**
 * Makes a handler of web requests, for Hono, Next.js, Bun, Deno, workers and other hosts that speak
 * fetch.
 *
 * The handler matches the whole path of the URL. To mount the API under a path, set `basePath` in the
 * options of `createTenure`. Throws a `TypeError` if `tenure` is not what `await createTenure(…)` returns,
 * and `InvalidInput` if an option is invalid.
 *
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
    signal: () => request.signal,
    ...(authenticate && { authenticate: () => authenticate(request) }),
  }
  await nextTick()
  const { body, headers: fields, status } = await tenure.handle(apiRequest)
  const content = typeof body === "string" ? body : toWebStream(body)
  return new Response(content, { status, headers: fields })
}
