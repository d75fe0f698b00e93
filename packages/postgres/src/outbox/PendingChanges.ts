/** The changes that a process has heard of, and that its dispatcher does not know yet. */

import type { Change } from "@tenure/core/Outbox"
import type { WebhookId } from "@tenure/core/Webhook"

/** Changes. Each is there once, however often it is told. */
export interface PendingChanges {
  readonly addDue: () => void
  readonly addRemoved: (webhookId: WebhookId) => void
  /** Removes and returns one: first the removals, because attempts are to be aborted. */
  readonly take: () => Change | undefined
  readonly isEmpty: () => boolean
}

/** Starts without changes. */
export const make = (): PendingChanges => {
  const removed = new Set<WebhookId>()
  let isDue = false
  return {
    addDue: () => {
      isDue = true
    },
    addRemoved: (webhookId) => {
      removed.add(webhookId)
    },
    take: () => {
      const [webhookId] = removed
      if (webhookId !== undefined) {
        removed.delete(webhookId)
        return { _tag: "Removed", webhookId }
      }
      if (!isDue) return undefined
      isDue = false
      return { _tag: "Due" }
    },
    isEmpty: () => removed.size === 0 && !isDue,
  }
}
