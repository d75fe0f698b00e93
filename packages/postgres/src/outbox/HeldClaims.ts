/** The claims that this process attempts or has in its queues, whatever others have made of them since. */

import type { Claim } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"

/** Claims. Each is kept until it is settled or its lease passes. */
export interface HeldClaims {
  /** Adds claims whose lease passes at `until`, in milliseconds by the monotonic clock. */
  readonly add: (claims: ReadonlyArray<Claim>, until: number) => void
  readonly delete: (claim: Claim) => void
  /** Returns the webhooks of the claims, each once. */
  readonly webhooks: (now: number) => ReadonlyArray<WebhookId>
}

const keyOf = ({ event, webhook }: Claim): string => `${event.id} ${webhook.webhookId}`

/** Starts without claims. */
export const make = (): HeldClaims => {
  const held = new Map<string, { readonly webhookId: WebhookId; readonly until: number }>()
  return {
    add: (claims, until) => {
      for (const claim of claims) {
        held.set(keyOf(claim), { webhookId: claim.webhook.webhookId, until })
      }
    },
    delete: (claim) => void held.delete(keyOf(claim)),
    webhooks: (now) => {
      for (const [key, { until }] of held) if (until <= now) held.delete(key)
      return [...new Set(Array.from(held.values(), ({ webhookId }) => webhookId))]
    },
  }
}
