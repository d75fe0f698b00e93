/** A receiver of webhooks on the loopback interface, which prints what it verifies. */

import type { IncomingMessage } from "node:http"
import { text } from "node:stream/consumers"
import { verifyWebhook, type WebhookEvent } from "@tenure/client"
import * as Effect from "effect/Effect"
import { listen } from "../connection/loopback.ts"

/** The path by which receivers of earlier runs are known. */
export const path = "/tenure-dev"

/** A receiver that listens. */
export interface Receiver {
  readonly url: string
  /** From now on, notifications are verified with the secret. */
  readonly trust: (secret: string) => void
}

/** Starts a receiver, until the scope closes. */
export const start = Effect.fnUntraced(function* (
  onEvent: (event: WebhookEvent) => void,
  onRefused: (reason: string) => void,
) {
  const secrets: Array<string> = []
  const receive = async (request: IncomingMessage): Promise<number> => {
    try {
      const { headers } = request
      onEvent(await verifyWebhook({ headers, body: await text(request) }, secrets))
      return 204
    } catch (error) {
      onRefused(error instanceof Error ? error.message : String(error))
      return 400
    }
  }
  return {
    url: `${yield* listen(receive)}${path}`,
    trust: (secret) => void secrets.push(secret),
  } satisfies Receiver
})
