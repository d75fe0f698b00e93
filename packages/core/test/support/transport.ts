/** A webhook transport that records requests, and answers as a test says. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type TransportError,
  type TransportRequest,
  WebhookTransport,
} from "../../src/webhooks/transport.ts"

type Answer = (request: TransportRequest) => Effect.Effect<number, TransportError>

export const recordingTransport = (answer: Answer = () => Effect.succeed(204)) => {
  const sent: Array<TransportRequest> = []
  const transport = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: (request) => {
      sent.push(request)
      return Effect.map(answer(request), (status) => ({ status, retryAfter: undefined, body: "" }))
    },
  })
  return { sent, transport }
}
