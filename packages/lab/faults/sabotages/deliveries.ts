/** Falsified deliveries. */

import { deletions } from "../checks/deletions.ts"
import { deliveries, happened } from "../checks/deliveries.ts"
import { signatures } from "../checks/signatures.ts"
import type { Run } from "../history.ts"
import { type Sabotage, hour, replace, wanted, withState } from "./sabotage.ts"

/** A delivery to a receiver that is well, of an event that was answered. */
const arrival = (run: Run) => {
  const kept = new Set(run.state.webhooks.map(({ url }) => url))
  return wanted(
    run.arrivals.find(
      ({ status, url }) => status === 204 && kept.has(url) && run.manners[url] === "fast",
    ),
  )
}

const changedDelivery = (
  run: Run,
  old: string,
  changed: { state: string; attempts: number },
): Run => {
  const delivery = wanted(run.state.deliveries.find(({ state }) => state === old))
  const by = { ...delivery, ...changed }
  return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
}

/** The URL of a webhook that was deleted, and when. */
const deletion = (run: Run) => {
  const deleted = wanted(
    run.operations.find(({ action, status }) => action === "deleteWebhook" && status === 200),
  )
  const { webhook } = wanted(
    run.operations.find((operation) => operation.webhook?.id === deleted.subject),
  )
  return { deletedAt: deleted.end, url: webhook?.url ?? "" }
}

/** Falsified deliveries. */
export const ofDeliveries: ReadonlyArray<Sabotage> = [
  {
    name: "a delivery stays open",
    check: deliveries,
    spoil: (run) => changedDelivery(run, "delivered", { state: "ready", attempts: 1 }),
  },
  {
    name: "an event has no delivery to a webhook",
    check: deliveries,
    spoil: (run) => {
      const kept = new Set(run.state.webhooks.map(({ id }) => id))
      const changes = happened(run)
      const webhook = wanted(
        run.operations.flatMap(({ end, projectId, webhook: created }) => {
          const isTold = changes.some(
            ({ event, operation }) => event.projectId === projectId && operation.start > end,
          )
          const isFast = created !== undefined && run.manners[created.url] === "fast"
          return isTold && isFast && kept.has(created.id) ? [created] : []
        })[0],
      )
      return withState(run, {
        deliveries: run.state.deliveries.filter(({ webhookId }) => webhookId !== webhook.id),
      })
    },
  },
  {
    name: "events reach a receiver late",
    check: deliveries,
    spoil: (run) => ({
      ...run,
      arrivals: run.arrivals.map((one) => ({ ...one, at: one.at + hour })),
    }),
  },
  {
    name: "deliveries wait for nothing",
    check: deliveries,
    spoil: (run) => ({ ...run, drainedMillis: hour }),
  },
  {
    name: "an attempt goes on after a deletion",
    check: deletions,
    spoil: (run) => {
      const { deletedAt, url } = deletion(run)
      const endless = { ...arrival(run), url, at: deletedAt - 1, ended: undefined }
      return { ...run, arrivals: [...run.arrivals, endless] }
    },
  },
  {
    name: "a notification is not signed",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      const by = { ...one, headers: { ...one.headers, "webhook-signature": "v1,AAAA" } }
      return { ...run, arrivals: replace(run.arrivals, one, by) }
    },
  },
]
