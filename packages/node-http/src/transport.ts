/** Sending notifications with node:http and node:https, to vetted addresses only. */

import * as Http from "node:http"
import * as Https from "node:https"
import type { LookupFunction } from "node:net"
import { AddressPolicy, permitsHost } from "@tenure/core/AddressPolicy"
import {
  type Answer,
  maxResponseBytes,
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
  const answer = Effect.succeed({
    status: response.statusCode ?? 0,
    retryAfter: response.headers["retry-after"],
  })
  let received = 0
  response.on("data", (chunk: Buffer) => {
    received += chunk.length
    if (received > maxResponseBytes) {
      resume(answer)
      response.destroy()
    }
  })
  response.on("end", () => resume(answer))
  response.on("error", (error) => resume(Effect.fail(failure(error))))
}

const post = (
  agents: Agents,
  lookup: LookupFunction,
  target: URL,
  { body, headers }: Outgoing,
): Effect.Effect<Answer, TransportError> =>
  Effect.callback((resume) => {
    let isAborted = false
    const open = (): Http.ClientRequest => {
      const isSecure = target.protocol === "https:"
      const request = (isSecure ? Https : Http).request(target, {
        method: "POST",
        headers,
        agent: isSecure ? agents.https : agents.http,
        lookup,
      })
      request.on("response", (response) => readAnswer(response, resume))
      request.on("error", (error: NodeJS.ErrnoException) => {
        // A connection kept alive may have been closed at the other end just now.
        const isStale = request.reusedSocket && error.code === "ECONNRESET"
        if (isStale && !isAborted) current = open()
        else resume(Effect.fail(failure(error)))
      })
      request.end(body)
      return request
    }
    let current = open()
    return Effect.sync(() => {
      isAborted = true
      current.destroy()
    })
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
        return permitsHost(policy, target.hostname)
          ? post(pool, lookup, target, request)
          : Effect.fail(new TransportError({ reason: notAllowed }))
      },
    }
  }),
)
