/** The port that sends one notification. */

import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AddressPolicy, permitsHost } from "./AddressPolicy.ts"
import { isHttpToName } from "./WebhookUrl.ts"

/** A POST request to a receiver. */
export interface Outgoing {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The response of a receiver. */
export interface Answer {
  readonly status: number
  /** The `Retry-After` header, as sent. */
  readonly retryAfter: string | undefined
  /** The first kilobyte of the response, as text. */
  readonly body: string
}

/** The receiver could not be reached or did not answer. */
export class TransportError extends Data.TaggedError("TransportError")<{
  /** A code for the cause, for example `ECONNREFUSED` or `AddressNotAllowed`. */
  readonly reason: string
}> {}

// The most of a response body that is read, in bytes.
const maxResponseBytes = 64 * 1024

// The most of a response body that is kept with the attempt, in bytes.
const keptBytes = 1024

/**
 * Sends notifications.
 *
 * An implementation connects only to addresses that `AddressPolicy` permits, does not follow
 * redirects, and reads the response until it ends or `bodyReader` stops it. When it is interrupted, it
 * closes the connection at once.
 */
export class WebhookTransport extends Context.Service<
  WebhookTransport,
  {
    /**
     * Whether it sends over `http:` to hosts that are names. A transport must not, unless it checks the
     * address it connects to: plain HTTP does not prove which machine answers to a name. If this is
     * `false`, `Webhooks.create` refuses such URLs.
     */
    readonly sendsHttpToNames: boolean

    /** Sends a request and returns the response, whatever its status. */
    readonly send: (request: Outgoing) => Effect.Effect<Answer, TransportError>
  }
>()("@tenure/core/WebhookTransport") {
  /**
   * Sends with the `fetch` of the runtime, which does not reveal the address it connects to. It sends
   * to names over https only, where the certificate proves, before the request leaves, that the name
   * does not lead to a machine of the internal network.
   */
  static readonly layerFetch: Layer.Layer<WebhookTransport, never, AddressPolicy> = Layer.effect(
    WebhookTransport,
    Effect.map(AddressPolicy, (policy) => ({
      sendsHttpToNames: false,
      send: (request) => send(policy, request),
    })),
  )
}

/**
 * Makes a reader of a response body. `add` takes the next chunk and returns whether to go on reading;
 * `text` returns the first kilobyte.
 */
export const bodyReader = (): {
  readonly add: (chunk: Uint8Array) => boolean
  readonly text: () => string
} => {
  const decoder = new TextDecoder()
  let received = 0
  let text = ""
  return {
    add: (chunk) => {
      const room = Math.max(0, keptBytes - received)
      text += decoder.decode(chunk.subarray(0, room), { stream: true })
      received += chunk.length
      return received <= maxResponseBytes
    },
    text: () => text,
  }
}

const read = async (body: ReadableStream<Uint8Array> | null): Promise<string> => {
  const reader = bodyReader()
  // Leaving the loop cancels the stream, and that closes the connection.
  for await (const chunk of body ?? []) if (!reader.add(chunk)) break
  return reader.text()
}

const send = (
  policy: AddressPolicy["Service"],
  { body, headers, url }: Outgoing,
): Effect.Effect<Answer, TransportError> => {
  const target = new URL(url)
  if (!permitsHost(policy, target.hostname) || isHttpToName(target)) {
    return Effect.fail(new TransportError({ reason: "AddressNotAllowed" }))
  }
  return Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(target, {
        method: "POST",
        redirect: "manual",
        headers: { ...headers },
        body,
        signal,
      })
      return {
        status: response.status,
        retryAfter: response.headers.get("retry-after") ?? undefined,
        body: await read(response.body),
      }
    },
    catch: (cause) => new TransportError({ reason: reasonOf(cause) }),
  })
}

/** Returns the code of the underlying error if the runtime provides it, otherwise its name. */
const reasonOf = (cause: unknown): string => {
  const fault = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  if (!(fault instanceof Error)) return "Error"
  return "code" in fault && typeof fault.code === "string" ? fault.code : fault.name
}
