/** A transport that records requests, and sends nothing. */

import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Makes a transport answering with the given statuses in order, and then with 204. */
export const recording = (...statuses: ReadonlyArray<number>) => {
  const sent: Array<TransportRequest> = []
  const send = (request: TransportRequest) =>
    Effect.sync(() => {
      const status = statuses[sent.length] ?? 204
      sent.push(request)
      return { status, retryAfter: undefined, body: "" }
    })
  return { sent, transport: Layer.succeed(WebhookTransport, { sendsHttpToNames: true, send }) }
}
