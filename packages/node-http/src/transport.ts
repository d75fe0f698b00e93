/** Sends notifications with node:http and node:https, to permitted addresses only. */

import { type LookupAddress, Resolver } from "node:dns"
import { readFile } from "node:fs/promises"
import type * as Http from "node:http"
import * as Https from "node:https"
import { isIP } from "node:net"
import type { Duplex } from "node:stream"
import {
  AddressPolicy,
  TransportError,
  type TransportRequest,
  type TransportResponse,
  WebhookTransport,
  bodyReader,
  hostOf,
  permitsHost,
} from "@tenure/core/transport"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import { http } from "./builtin.ts"
import { type Dial, type Resolve, makeDial } from "./dial.ts"

/** Addresses by lower-case host name. */
type HostTable = ReadonlyMap<string, ReadonlyArray<LookupAddress>>

/** Returns a lower-case host name's addresses. */
export type FindInHosts = (name: string) => Promise<ReadonlyArray<LookupAddress>>

const hostsPath =
  process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts"

// How long a table is used. A change to the file takes effect after this time.
const maxAgeMillis = 5000

/** Parses a hosts file. Ignores comments and lines without a valid address. */
export const parseHosts = (text: string): HostTable => {
  const table = new Map<string, Array<LookupAddress>>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/)
    const family = isIP(address)
    if (family === 0) continue
    for (const name of new Set(names)) {
      table.set(name, [...(table.get(name) ?? []), { address, family }])
    }
  }
  return table
}

const readHosts = (): Promise<string> => readFile(hostsPath, "utf8")

/**
 * Creates a look-up in the hosts file. Reads the file at most once every five seconds. An unreadable
 * file counts as empty.
 *
 * @param read - reads the file's text
 * @param now - a clock in milliseconds
 */
export const makeFindInHosts = (
  read: () => Promise<string> = readHosts,
  now: () => number = () => performance.now(),
): FindInHosts => {
  let table: Promise<HostTable> = Promise.resolve(new Map())
  let expiresAt = -Infinity

  const load = async (): Promise<HostTable> => parseHosts(await read().catch(() => ""))

  return async (name) => {
    if (now() >= expiresAt) {
      expiresAt = now() + maxAgeMillis
      table = load()
    }
    return (await table).get(name) ?? []
  }
}

// The time for each try, in milliseconds. All tries together take less than an attempt may.
const timeout = 2000
const tries = 3

const addressOf = (text: string): LookupAddress => ({ address: text, family: isIP(text) })

/** Resolves both IPv4 and IPv6 addresses. Fails only if neither are found. */
const resolveInDns =
  (resolver: Resolver): Resolve =>
  (hostname, callback) => {
    const found: Array<LookupAddress> = []
    let pending = 2
    const collect = (
      error: NodeJS.ErrnoException | null,
      addresses: ReadonlyArray<string> = [],
    ): void => {
      found.push(...addresses.map(addressOf))
      pending--
      if (pending === 0) callback(found.length === 0 ? error : null, found)
    }
    resolver.resolve4(hostname, collect)
    resolver.resolve6(hostname, collect)
  }

/**
 * Creates a resolver: the hosts file, then DNS without search domains. Unlike `dns.lookup`, it does not
 * use Node's few threads, where look-ups at an unresponsive name server would delay all others.
 */
export const makeResolve = (
  resolver: Resolver = new Resolver({ timeout, tries }),
  findInHosts: FindInHosts = makeFindInHosts(),
): Resolve => {
  const resolve = resolveInDns(resolver)
  return (hostname, callback) => {
    const name = hostname.toLowerCase().replace(/\.$/, "")
    void findInHosts(name).then((addresses) => {
      if (addresses.length > 0) callback(null, addresses)
      else resolve(name, callback)
    })
  }
}

type Policy = AddressPolicy["Service"]

/** The error code for a forbidden address. */
const notAllowed = "AddressNotAllowed"

const isPermitted = (policy: Policy, address: string): boolean => {
  const host = hostOf(address)
  return host._tag === "Literal" && policy.permits(host.address)
}

/** Permitted loopback addresses for names such as `localhost`, resolved without DNS. */
const localAddresses = (policy: Policy): ReadonlyArray<LookupAddress> =>
  NetAddress.loopbackAddresses
    .filter(policy.permits)
    .map((address) => addressOf(NetAddress.formatIp(address)))

/**
 * Creates a resolver that fails with the code `AddressNotAllowed` unless all addresses of a name are
 * permitted. A connection goes to a returned address, so no second look-up can return a different one.
 */
export const makeVettedResolve =
  (policy: Policy, resolve: Resolve = makeResolve()): Resolve =>
  (hostname, callback) => {
    const answer = (addresses: ReadonlyArray<LookupAddress>): void =>
      addresses.length > 0 && addresses.every(({ address }) => isPermitted(policy, address))
        ? callback(null, addresses)
        : callback(Object.assign(new Error(notAllowed), { code: notAllowed }), [])
    if (hostOf(hostname)._tag === "Localhost") return answer(localAddresses(policy))
    resolve(hostname, (error, addresses) =>
      error === null ? answer(addresses) : callback(error, []),
    )
  }

const failure = (error: NodeJS.ErrnoException): TransportError =>
  new TransportError({ reason: error.code ?? error.name })

/** Whether a response announces a body that it cannot have (RFC 9112, 6.3). Some frameworks send it. */
const hasForbiddenBody = ({ headers, statusCode }: Http.IncomingMessage): boolean =>
  (statusCode === 204 || statusCode === 304) &&
  (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0)

/**
 * Reads a response up to its end, the limit, or an error in its body: the status has arrived, so it
 * counts. Returns the response as far as it is received when the effect runs.
 */
const readAnswer = (
  response: Http.IncomingMessage,
  onResponse: (received: () => TransportResponse) => void,
  resume: (answer: Effect.Effect<TransportResponse>) => void,
): Effect.Effect<TransportResponse> => {
  const reader = bodyReader()
  const received = (): TransportResponse => ({
    status: response.statusCode ?? 0,
    retryAfter: response.headers["retry-after"],
    body: reader.text(),
  })
  onResponse(received)
  const answer = Effect.sync(received)
  const cut = (): void => {
    resume(answer)
    response.destroy()
  }
  response.on("data", (chunk: Buffer) => {
    if (!reader.add(chunk)) cut()
  })
  response.on("end", () => resume(answer))
  response.on("error", () => resume(answer))
  // The body would be read as the response to the next request.
  if (hasForbiddenBody(response)) cut()
  return answer
}

/**
 * Returns a response whose head Node refuses to read after the status line, for example because it is too
 * long: the status has arrived, so it counts.
 */
const answerIn = (error: object): Effect.Effect<TransportResponse> | undefined => {
  if (!("rawPacket" in error) || !(error.rawPacket instanceof Buffer)) return undefined
  const start = error.rawPacket.toString("latin1", 0, "HTTP/1.1 200 ".length)
  const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)[ \r\n]/.exec(start) ?? []
  if (status === undefined) return undefined
  return Effect.succeed({ status: Number(status), retryAfter: undefined, body: "" })
}

const noAnswer = new TransportError({ reason: "NoAnswer" })

// The maximum round-trip time to a receiver that had closed the connection before the request.
const roundTripNanos = 1_000_000_000n

/** The agents for `http:` and `https:`. */
export interface Agents {
  readonly http: Http.Agent
  readonly https: Https.Agent
}

/** The ways to receivers. */
interface Connections {
  /** Agents that keep connections alive. */
  readonly kept: Agents
  /** Agents that open a connection for each request. */
  readonly single: Agents
}

/** A request's options. They reach the agent's `createConnection`. */
export interface ConnectionOptions extends Https.RequestOptions {
  /** Takes what to do if the request is interrupted. */
  readonly onInterrupt?: (close: () => void) => void
}

/** Opens a connection without TLS to the host and port of a request. */
export type OpenConnection = (
  receiver: ConnectionOptions,
  callback: (error: Error | null, connection?: Duplex | null) => void,
) => void

/** Opens connections by dialling. */
export const openByDial =
  (dial: Dial): OpenConnection =>
  (receiver, callback) =>
    receiver.onInterrupt?.(dial(receiver.host ?? "", Number(receiver.port), callback))

/** Creates agents with connections of one's own. */
export const makeAgents = (open: OpenConnection, options: Http.AgentOptions): Agents => {
  const https = new Https.Agent(options)
  const secure = https.createConnection.bind(https)
  const openSecure: OpenConnection = (receiver, callback) =>
    open(receiver, (error, socket) =>
      error === null
        ? callback(null, secure(Object.assign({}, receiver, { socket })))
        : callback(error),
    )
  return {
    http: Object.assign(new http.Agent(options), { createConnection: open }),
    https: Object.assign(https, { createConnection: openSecure }),
  }
}

/** A request, and where it goes. */
interface Post {
  readonly isSecure: boolean
  readonly hostname: string
  readonly port: string
  readonly path: string
  /** Names and values in turns: Node writes these at once, in place of storing each first. */
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const toPost = (target: URL, { body, headers }: TransportRequest): Post => ({
  isSecure: target.protocol === "https:",
  hostname: target.hostname.replace(/^\[|\]$/g, ""),
  port: target.port,
  path: target.pathname + target.search,
  headers: [
    "host",
    target.host,
    "content-length",
    String(Buffer.byteLength(body)),
    ...Object.entries(headers).flat(),
  ],
  body,
})

/** Sends a request on a kept-alive connection if there is one, otherwise on a new one. */
const exchange = (
  post: Post,
  connections: Connections,
  clock: Clock.Clock,
  onResponse: (received: () => TransportResponse) => void,
): Effect.Effect<TransportResponse, TransportError> =>
  Effect.callback((resume) => {
    const { body, isSecure, ...target } = post
    const { request: open } = isSecure ? Https : http
    const { kept, single } = connections
    const begin = clock.monotonicTimeNanosUnsafe()
    const agent = isSecure ? kept.https : kept.http
    let close: (() => void) | undefined
    const onInterrupt = (given: () => void) => void (close = given)
    const options: ConnectionOptions = { ...target, method: "POST", agent, onInterrupt }
    const request = open(options)
    let answer: Effect.Effect<TransportResponse> | undefined
    request.on("response", (response) => {
      answer = readAnswer(response, onResponse, resume)
    })
    request.on("error", (error: NodeJS.ErrnoException) => {
      answer ??= answerIn(error)
      if (answer !== undefined) return resume(answer)
      // The receiver may have closed the kept-alive connection just before the request. Later, it has
      // probably received the request.
      const isStale =
        request.reusedSocket &&
        error.code === "ECONNRESET" &&
        clock.monotonicTimeNanosUnsafe() - begin < roundTripNanos
      const retry = () => exchange(post, { ...connections, kept: single }, clock, onResponse)
      resume(isStale ? retry() : Effect.fail(failure(error)))
    })
    // Node emits only this event when it disconnects from a receiver switching protocols.
    request.on("close", () => {
      if (answer === undefined) resume(Effect.fail(noAnswer))
    })
    request.end(body)
    return Effect.sync(() => {
      close?.()
      request.destroy()
    })
  })

const openAgents = (make: () => Agents) =>
  Effect.acquireRelease(Effect.sync(make), (open) =>
    Effect.sync(() => {
      open.http.destroy()
      open.https.destroy()
    }),
  )

/** How a transport reaches receivers. */
interface Route {
  readonly open: OpenConnection
  /** Tells whether it may send to a URL. */
  readonly permits: (target: URL) => boolean
}

/** Creates the function that sends requests. Its connections close with the scope. */
export const makeSend = Effect.fnUntraced(function* ({ open, permits }: Route) {
  const kept = yield* openAgents(() => makeAgents(open, { keepAlive: true, timeout: 10_000 }))
  const single = yield* openAgents(() => makeAgents(open, {}))
  const connections = { kept, single }
  const send: WebhookTransport["Service"]["send"] = (request, onResponse = () => {}) => {
    const target = new URL(request.url)
    return permits(target)
      ? Clock.clockWith((clock) =>
          exchange(toPost(target, request), connections, clock, onResponse),
        )
      : Effect.fail(new TransportError({ reason: notAllowed }))
  }
  return send
})

/**
 * A webhook transport. It resolves a host name once per connection, refuses the name if any of its
 * addresses is forbidden, and connects to the first of the checked addresses that answers. It ignores
 * the environment's proxy variables.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
 * ```
 */
export const nodeTransport: Layer.Layer<WebhookTransport, never, AddressPolicy> = Layer.effect(
  WebhookTransport,
  Effect.gen(function* () {
    const policy = yield* AddressPolicy
    const send = yield* makeSend({
      open: openByDial(makeDial(makeVettedResolve(policy))),
      // A literal address is not looked up.
      permits: ({ hostname }) => permitsHost(policy, hostname),
    })
    return { sendsHttpToNames: true, send }
  }),
)
