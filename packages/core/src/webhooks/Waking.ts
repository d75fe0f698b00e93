/** Which settlements are a reason to claim again: those that make room for what was kept back. */

import type { WebhookId } from "./Webhook.ts"

// How often to look whether somebody else has made room.
const pauseMillis = 200

/** Decides whether to claim again, from what claims have kept back and what was settled since. */
export interface Waking {
  readonly beginClaim: () => void
  /**
   * Takes note of the webhooks of which the claim kept something back.
   *
   * @param isInHand - tells whether there are claims of a webhook that will be settled here
   * @returns in how many milliseconds to claim again, or `undefined` for not before a settlement
   */
  readonly endClaim: (
    keptBack: ReadonlyArray<WebhookId>,
    isInHand: (webhookId: WebhookId) => boolean,
  ) => number | undefined
  /** Tells whether to claim again because a claim of a webhook was settled. */
  readonly settled: (webhookId: WebhookId) => boolean
}

/** Starts without claims. */
export const make = (): Waking => {
  let keptBack: ReadonlySet<WebhookId> = new Set()
  // The claim may not have seen these settlements.
  const settledMeanwhile = new Set<WebhookId>()
  return {
    beginClaim: () => {
      keptBack = new Set()
      settledMeanwhile.clear()
    },
    endClaim: (ids, isInHand) => {
      keptBack = new Set(ids)
      if (ids.some((id) => settledMeanwhile.has(id))) return 0
      return ids.every(isInHand) ? undefined : pauseMillis
    },
    settled: (webhookId) => {
      settledMeanwhile.add(webhookId)
      return keptBack.has(webhookId)
    },
  }
}
