/** The request of one attempt, in the form of Standard Webhooks. */

import * as Effect from "effect/Effect"
import type { Traceparent } from "../base/Traceparent.ts"
import type * as Event from "../events/Event.ts"
import { Encryption, SecretUnreadable } from "./Encryption.ts"
import type { Claim } from "./Outbox.ts"
import * as WebhookSignature from "./WebhookSignature.ts"
import type { Outgoing } from "./WebhookTransport.ts"

/** The header fields of a request. Those that each attempt makes anew may be of another type. */
export const headersOf = <Own>(
  { id }: Pick<Event.Event, "id">,
  timestamp: Own,
  signature: Own,
  traceparent: Traceparent | undefined,
) => ({
  "content-type": "application/json",
  "user-agent": "Tenure",
  "webhook-id": id,
  "webhook-timestamp": timestamp,
  "webhook-signature": signature,
  ...(traceparent !== undefined && { traceparent }),
})

/**
 * Makes the request for a claimed delivery, signed by all secrets and keys of its webhook. Fails with
 * `SecretUnreadable` if it cannot read one of them: no request is sent without a signature.
 *
 * @param now - milliseconds since the epoch
 * @param traceparent - the trace that the receiver may continue
 */
export const make = Effect.fnUntraced(function* (
  { event, webhook }: Claim,
  now: number,
  traceparent: Traceparent | undefined,
) {
  const message = { id: event.id, timestamp: Math.floor(now / 1000), body: event.body }
  const encryption = yield* Encryption
  const signatures: Array<string> = []
  for (const stored of webhook.secrets) {
    const secret = yield* encryption.secret(webhook, stored)
    signatures.push(WebhookSignature.sign(message, secret))
  }
  if (webhook.signingKey !== undefined) {
    const key = yield* encryption.signingKey(webhook, webhook.signingKey)
    signatures.push(yield* WebhookSignature.signAsymmetric(message, key))
  }
  if (signatures.length === 0) {
    return yield* new SecretUnreadable({
      webhookId: webhook.webhookId,
      problem: "it is missing",
      isOfServer: false,
    })
  }
  return {
    url: webhook.url,
    headers: headersOf(event, String(message.timestamp), signatures.join(" "), traceparent),
    body: event.body,
  } satisfies Outgoing
})
