/** Falsified deliveries. */

import { deletions } from "../checks/deletions.ts"
import { deliveries } from "../checks/deliveries.ts"
import { signatures } from "../checks/signatures.ts"
import type { Run } from "../history.ts"
import { hour, replace, wanted, withState, type Sabotage } from "./Sabotage.ts"

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
    spoil: (run) => changedDelivery(run, "delivered", { state: "leased", attempts: 1 }),
  },
  {
    name: "a delivery is given up at once",
    check: deliveries,
    spoil: (run) => {
      const { headers, url } = arrival(run)
      const webhook = wanted(run.state.webhooks.find((one) => one.url === url))
      const delivery = wanted(
        run.state.deliveries.find(
          ({ eventId, webhookId }) => eventId === headers["webhook-id"] && webhookId === webhook.id,
        ),
      )
      const by = { ...delivery, state: "failed", attempts: 1 }
      return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
    },
  },
  {
    name: "a delivery is cancelled without a deletion",
    check: deliveries,
    spoil: (run) => {
      const kept = new Set(run.state.webhooks.map(({ id }) => id))
      const delivery = wanted(run.state.deliveries.find(({ webhookId }) => kept.has(webhookId)))
      const by = { ...delivery, state: "cancelled" }
      return withState(run, { deliveries: replace(run.state.deliveries, delivery, by) })
    },
  },
  {
    name: "no receiver accepted what counts as delivered",
    check: deliveries,
    spoil: (run) => {
      const { headers, url } = arrival(run)
      return {
        ...run,
        arrivals: run.arrivals.filter(
          (one) => one.url !== url || one.headers["webhook-id"] !== headers["webhook-id"],
        ),
      }
    },
  },
  {
    name: "an event has no delivery to a webhook",
    check: deliveries,
    spoil: (run) => {
      const { webhook } = wanted(
        run.operations.find(
          ({ webhook: created }) => created !== undefined && run.manners[created.url] === "fast",
        ),
      )
      return withState(run, {
        deliveries: run.state.deliveries.filter(({ webhookId }) => webhookId !== webhook?.id),
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
    name: "something is sent after a deletion",
    check: deletions,
    spoil: (run) => {
      const { deletedAt, url } = deletion(run)
      const late = { ...arrival(run), url, at: deletedAt + hour, ended: undefined }
      return { ...run, arrivals: [...run.arrivals, late] }
    },
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
  {
    name: "an attempt has another id",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      const by = { ...one, headers: { ...one.headers, "webhook-id": "another" } }
      return { ...run, arrivals: replace(run.arrivals, one, by) }
    },
  },
  {
    name: "an attempt has another body",
    check: signatures,
    spoil: (run) => {
      const one = arrival(run)
      return { ...run, arrivals: replace(run.arrivals, one, { ...one, body: `${one.body} ` }) }
    },
  },
]
