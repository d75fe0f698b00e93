/** Forwards events to a URL, as a webhook would be notified of them. */

import type { FeedEvent } from "@tenure/client"
import { type Secret, sign } from "@tenure/core/WebhookSignature"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { reasonOf } from "../connection/networkFault.ts"
import { failed, type Failure } from "../Failure.ts"

/** Where events go, and what signs them. */
export interface Target {
  readonly url: string
  readonly secret: Secret
}

const requestOf = ({ data, id, timestamp, type }: FeedEvent, secret: Secret, now: number) => {
  const message = {
    id,
    timestamp: Math.floor(now / 1000),
    body: JSON.stringify({ type, timestamp, data }),
  }
  return {
    body: message.body,
    headers: {
      "content-type": "application/json",
      "user-agent": "Tenure",
      "webhook-id": message.id,
      "webhook-timestamp": String(message.timestamp),
      "webhook-signature": sign(message, secret),
    },
  }
}

// As long as a webhook may take.
const timeout = 15_000

// While a program starts again: seven seconds in all.
const again = { schedule: Schedule.exponential("500 millis"), times: 4 }

/** Sends an event, and returns the status of the response. Fails if several attempts get no response. */
export const forward = (
  event: FeedEvent,
  { secret, url }: Target,
): Effect.Effect<number, Failure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.tryPromise({
      try: async (signal) => {
        const { body, status } = await fetch(url, {
          method: "POST",
          redirect: "manual",
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeout)]),
          ...requestOf(event, secret, now),
        })
        await body?.cancel()
        return status
      },
      catch: (fault) => failed(reasonOf(fault)),
    }),
  ).pipe(Effect.retry(again))
