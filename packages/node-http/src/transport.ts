/**
 * Sends webhooks. Resolves names through the machine's hosts file (`/etc/hosts`, or its counterpart on
 * Windows), then DNS.
 */

import { type LookupAddress, Resolver } from "node:dns"
import { readFile } from "node:fs/promises"
import type * as Http from "node:http"
import * as Https from "node:https"
import { type LookupFunction, isIP } from "node:net"
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
import * as Result from "effect/Result"
import { http } from "./builtin.ts"

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

/** Calls back with all addresses for a name. */
export type Resolve = (
  hostname: string,
  callback: (error: NodeJS.ErrnoException | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

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

/** Looks up host names, and returns only permitted addresses. */

type Policy = AddressPolicy["Service"]

/** The error code for a forbidden address. */
const notAllowed = "AddressNotAllowed"

const isPermitted = (policy: Policy, address: string): boolean => {
  const parsed = NetAddress.ipFromString(address.replace(/%.*$/, ""))
  return Result.isSuccess(parsed) && policy.permits(parsed.success)
}

/** Permitted loopback addresses for names such as `localhost`, resolved without DNS. */
const localAddresses = (policy: Policy): ReadonlyArray<LookupAddress> =>
  NetAddress.loopbackAddresses.filter(policy.permits).map((address) => ({
    address: NetAddress.formatIp(address),
    family: NetAddress.isIpv4Address(address) ? 4 : 6,
  }))

/**
 * Creates a look-up function for sockets. It resolves a name once per connection, and fails with the
 * code `AddressNotAllowed` unless all its addresses are permitted. The socket connects to a returned
 * address, so no second look-up can return a different one.
 */
export const vettedLookup =
  (policy: Policy, resolve: Resolve = makeResolve()): LookupFunction =>
  (hostname, options, callback) => {
    const answer = (addresses: ReadonlyArray<LookupAddress>): void => {
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPermitted(policy, address))) {
        callback(Object.assign(new Error(notAllowed), { code: notAllowed }), "", 0)
      } else if (options.all === true) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    if (hostOf(hostname)._tag === "Localhost") return answer(localAddresses(policy))
    resolve(hostname, (error, addresses) =>
      error === null ? answer(addresses) : callback(error, "", 0),
    )
  }

/** Sends notifications with node:http and node:https. */

const failure = (error: NodeJS.ErrnoException): TransportError =>
  new TransportError({ reason: error.code ?? error.name })

/** Reads a response up to its end or the limit. */
const readAnswer = (
  response: Http.IncomingMessage,
  resume: (result: Effect.Effect<TransportResponse, TransportError>) => void,
): void => {
  const reader = bodyReader()
  const answer = Effect.sync(() => ({
    status: response.statusCode ?? 0,
    retryAfter: response.headers["retry-after"],
    body: reader.text(),
  }))
  response.on("data", (chunk: Buffer) => {
    if (reader.add(chunk)) return
    resume(answer)
    response.destroy()
  })
  response.on("end", () => resume(answer))
  response.on("error", (error) => resume(Effect.fail(failure(error))))
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
  readonly lookup: LookupFunction | undefined
}

/** A request's options. They reach the agent's `createConnection`. */
export interface ConnectionOptions extends Https.RequestOptions {
  /** Takes what to do if the request is interrupted. */
  readonly onInterrupt?: (close: () => void) => void
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
): Effect.Effect<TransportResponse, TransportError> =>
  Effect.callback((resume) => {
    const { body, isSecure, ...target } = post
    const { request: open } = isSecure ? Https : http
    const { kept, lookup, single } = connections
    const begin = clock.monotonicTimeNanosUnsafe()
    const agent = isSecure ? kept.https : kept.http
    let close: (() => void) | undefined
    const onInterrupt = (given: () => void) => void (close = given)
    const options: ConnectionOptions = { ...target, method: "POST", agent, lookup, onInterrupt }
    const request = open(options)
    let isAnswered = false
    request.on("response", (response) => {
      isAnswered = true
      readAnswer(response, resume)
    })
    request.on("error", (error: NodeJS.ErrnoException) => {
      // The receiver may have closed the kept-alive connection just before the request. Later, it has
      // probably received the request.
      const isStale =
        request.reusedSocket &&
        !isAnswered &&
        error.code === "ECONNRESET" &&
        clock.monotonicTimeNanosUnsafe() - begin < roundTripNanos
      const retry = () => exchange(post, { ...connections, kept: single }, clock)
      resume(isStale ? retry() : Effect.fail(failure(error)))
    })
    // Node emits only this event when it disconnects from a receiver switching protocols.
    request.on("close", () => {
      if (!isAnswered) resume(Effect.fail(noAnswer))
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
  readonly makeAgents: (options: Http.AgentOptions) => Agents
  readonly lookup?: LookupFunction
  /** Tells whether it may send to a URL. */
  readonly permits: (target: URL) => boolean
}

/** Creates the function that sends requests. Its connections close with the scope. */
export const makeSend = Effect.fnUntraced(function* ({ lookup, makeAgents, permits }: Route) {
  const kept = yield* openAgents(() => makeAgents({ keepAlive: true, timeout: 10_000 }))
  const single = yield* openAgents(() => makeAgents({}))
  const connections = { kept, single, lookup }
  const send: WebhookTransport["Service"]["send"] = (request) => {
    const target = new URL(request.url)
    return permits(target)
      ? Clock.clockWith((clock) => exchange(toPost(target, request), connections, clock))
      : Effect.fail(new TransportError({ reason: notAllowed }))
  }
  return send
})

/**
 * A webhook transport. It resolves a host name once per connection, refuses the name if any of its
 * addresses is forbidden, and connects only to a checked address.
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
      // Unlike the global agents, these ignore the environment's proxy variables.
      makeAgents: (options) => ({
        http: new http.Agent(options),
        https: new Https.Agent(options),
      }),
      lookup: vettedLookup(policy),
      // Node does not call `lookup` for a literal address.
      permits: ({ hostname }) => permitsHost(policy, hostname),
    })
    return { sendsHttpToNames: true, send }
  }),
)
