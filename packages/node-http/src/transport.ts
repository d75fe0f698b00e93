/** Sends notifications with node:http and node:https, to permitted addresses only. */

import * as Http from "node:http"
import * as Https from "node:https"
import type { LookupFunction } from "node:net"
import { AddressPolicy, permitsHost } from "@tenure/core/AddressPolicy"
import {
  type Answer,
  bodyReader,
  type Outgoing,
  TransportError,
  WebhookTransport,
} from "@tenure/core/WebhookTransport"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { notAllowed, vettedLookup } from "./vettedLookup.ts"

const failure = (error: NodeJS.ErrnoException): TransportError =>
  new TransportError({ reason: error.code ?? error.name })

/** Reads a response up to its end or the limit. */
const readAnswer = (
  response: Http.IncomingMessage,
  resume: (result: Effect.Effect<Answer, TransportError>) => void,
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

// The longest round trip to a receiver that had closed the connection before the request.
const roundTripNanos = 1_000_000_000n

/** Sends a request on a connection of the agent, or on a new one if `agent` is false. */
const post = (
  target: URL,
  outgoing: Outgoing,
  lookup: LookupFunction,
  agent: Http.Agent | false,
  clock: Clock.Clock,
): Effect.Effect<Answer, TransportError> =>
  Effect.callback((resume) => {
    const { request: open } = target.protocol === "https:" ? Https : Http
    const { body, headers } = outgoing
    const begin = clock.monotonicTimeNanosUnsafe()
    const request = open(target, { method: "POST", headers, agent, lookup })
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
      resume(isStale ? post(target, outgoing, lookup, false, clock) : Effect.fail(failure(error)))
    })
    // This is the only event when Node disconnects from a receiver that switches protocols.
    request.on("close", () => {
      if (!isAnswered) resume(Effect.fail(noAnswer))
    })
    request.end(body)
    return Effect.sync(() => void request.destroy())
  })

interface Agents {
  readonly http: Http.Agent
  readonly https: Https.Agent
}

// Unlike the global agents, these ignore the proxy variables of the environment.
const agents = Effect.acquireRelease(
  Effect.sync((): Agents => {
    const options = { keepAlive: true, timeout: 10_000 }
    return { http: new Http.Agent(options), https: new Https.Agent(options) }
  }),
  (open) =>
    Effect.sync(() => {
      open.http.destroy()
      open.https.destroy()
    }),
)

/**
 * A transport for webhooks. It resolves a host name once for each connection, refuses the name if any
 * of its addresses is not permitted, and connects only to an address that it has checked.
 *
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import { nodeTransport } from "tenure/node"
 *
 * const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
 * ```
 */
export const nodeTransport: Layer.Layer<WebhookTransport, never, AddressPolicy> = Layer.effect(
  WebhookTransport,
  Effect.gen(function* () {
    const policy = yield* AddressPolicy
    const pool = yield* agents
    const lookup = vettedLookup(policy)
    return {
      sendsHttpToNames: true,
      send: (request) => {
        const target = new URL(request.url)
        // Node does not call `lookup` for a literal address.
        const agent = target.protocol === "https:" ? pool.https : pool.http
        return permitsHost(policy, target.hostname)
          ? Clock.clockWith((clock) => post(target, request, lookup, agent, clock))
          : Effect.fail(new TransportError({ reason: notAllowed }))
      },
    }
  }),
)
