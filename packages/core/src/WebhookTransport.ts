/** The port that sends one notification. */

import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AddressPolicy, hostOf, permitsHost } from "./AddressPolicy.ts"

/** A request to a receiver: a POST. */
export interface Outgoing {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What the receiver answered. */
export interface Answer {
  readonly status: number
  /** The `Retry-After` header, as sent. */
  readonly retryAfter: string | undefined
  /** The first kilobyte of the response, as text. */
  readonly body: string
}

/** The receiver could not be reached, or did not answer. */
export class TransportError extends Data.TaggedError("TransportError")<{
  /** A word for what went wrong, such as `ECONNREFUSED` or `AddressNotAllowed`. */
  readonly reason: string
}> {}

/** The largest response body that is read, in bytes; the rest is cut off. */
const maxResponseBytes = 64 * 1024

// How much of it is kept with the attempt, in bytes.
const keptBytes = 1024

/**
 * Sends notifications.
 *
 * An implementation dials no address but those that `AddressPolicy` permits, follows no redirect,
 * and reads the response to its end, or as far as `bodyReader` wants it. When it is interrupted it
 * closes the connection at once.
 */
export class WebhookTransport extends Context.Service<
  WebhookTransport,
  {
    readonly send: (request: Outgoing) => Effect.Effect<Answer, TransportError>
  }
>()("@tenure/core/WebhookTransport") {
  /**
   * Sends by the `fetch` of the runtime, which tells nobody which address it dials. A name is
   * therefore sent to by https only: no request leaves before the certificate has proved that the
   * peer is whom the name means, and not a machine inside.
   */
  static readonly layerFetch: Layer.Layer<WebhookTransport, never, AddressPolicy> = Layer.effect(
    WebhookTransport,
    Effect.map(AddressPolicy, (policy) => ({ send: (request) => send(policy, request) })),
  )
}

const isVouchedFor = (url: URL): boolean =>
  url.protocol === "https:" || hostOf(url.hostname)._tag !== "Name"

/**
 * Makes what takes the chunks of a response body one after the other: `add` tells whether to go on
 * reading, `text` gives the first kilobyte.
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
  // Leaving the loop cancels the stream, which closes the connection.
  for await (const chunk of body ?? []) if (!reader.add(chunk)) break
  return reader.text()
}

const send = (
  policy: AddressPolicy["Service"],
  { body, headers, url }: Outgoing,
): Effect.Effect<Answer, TransportError> => {
  const target = new URL(url)
  if (!permitsHost(policy, target.hostname) || !isVouchedFor(target)) {
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

/** The code of the underlying fault where the runtime tells it, its name otherwise. */
const reasonOf = (cause: unknown): string => {
  const fault = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  if (!(fault instanceof Error)) return "Error"
  return "code" in fault && typeof fault.code === "string" ? fault.code : fault.name
}
