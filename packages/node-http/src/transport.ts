/** Sending notifications with node:http and node:https, to vetted addresses only. */

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
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { notAllowed, vettedLookup } from "./vettedLookup.ts"

const failure = (error: NodeJS.ErrnoException): TransportError =>
  new TransportError({ reason: error.code ?? error.name })

/** Reads a response to its end or to the limit. */
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

/** Sends on a connection of the agent, or without one on a connection of its own. */
const post = (
  target: URL,
  outgoing: Outgoing,
  lookup: LookupFunction,
  agent: Http.Agent | false,
): Effect.Effect<Answer, TransportError> =>
  Effect.callback((resume) => {
    const { request: open } = target.protocol === "https:" ? Https : Http
    const { body, headers } = outgoing
    const request = open(target, { method: "POST", headers, agent, lookup })
    let isAnswered = false
    request.on("response", (response) => {
      isAnswered = true
      readAnswer(response, resume)
    })
    request.on("error", (error: NodeJS.ErrnoException) => {
      // A connection kept alive may have been closed at the other end just now.
      const isStale = request.reusedSocket && !isAnswered && error.code === "ECONNRESET"
      resume(isStale ? post(target, outgoing, lookup, false) : Effect.fail(failure(error)))
    })
    // Node hangs up on a receiver that switches protocols, and tells it by no other event.
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

// Agents of our own also keep the proxy variables of the environment out.
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
 * A transport that resolves each name once for each connection, refuses names of which any address
 * is not permitted, and dials only what it has vetted.
 *
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 * import { nodeTransport } from "@tenure/node-http"
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
      send: (request) => {
        const target = new URL(request.url)
        // A literal address is dialled without a look-up.
        const agent = target.protocol === "https:" ? pool.https : pool.http
        return permitsHost(policy, target.hostname)
          ? post(target, request, lookup, agent)
          : Effect.fail(new TransportError({ reason: notAllowed }))
      },
    }
  }),
)
