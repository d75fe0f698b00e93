/** A transport that records what is sent, and sends nothing. */

import { type Outgoing, WebhookTransport } from "@tenure/core/WebhookTransport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Makes a transport that answers with the given statuses in order, and then with 204. */
export const recording = (...statuses: ReadonlyArray<number>) => {
  const sent: Array<Outgoing> = []
  const send = (request: Outgoing) =>
    Effect.sync(() => {
      const status = statuses[sent.length] ?? 204
      sent.push(request)
      return { status, retryAfter: undefined, body: "" }
    })
  return { sent, transport: Layer.succeed(WebhookTransport, { sendsHttpToNames: true, send }) }
}
