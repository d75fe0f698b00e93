/**
 * Every event reaches every webhook that was there when it happened, or ends visibly as failed. Soon,
 * where the receiver is well and all faults have healed.
 */

import { groupBy } from "effect/Array"
import type { Check, Delivery, Event, Operation, Run, Webhook } from "../history.ts"
import { deadline } from "../trouble.ts"
import { announcementsOf } from "./announcements.ts"

type Finding = ReturnType<Check["find"]>[number]

const isSuccess = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status <= 299

const refOf = (eventId: string, url: string): string => `${eventId} ${url}`

/** The webhooks that were seen, with the time in which each was certainly there. */
interface Known extends Webhook {
  readonly projectId: string
  readonly from: number
  readonly to: number
}

const createdOf = ({ end, projectId, webhook }: Operation): ReadonlyArray<Known> =>
  webhook === undefined ? [] : [{ ...webhook, projectId, from: end, to: Infinity }]

const knownWebhooks = ({ operations }: Run): ReadonlyArray<Known> => {
  const deletions = new Map(
    operations
      .filter(({ action }) => action === "deleteWebhook")
      // What is not answered is asked again.
      .toReversed()
      .map(({ start, subject }) => [subject, start]),
  )
  return operations
    .flatMap(createdOf)
    .map((webhook) => ({ ...webhook, to: deletions.get(webhook.id) ?? Infinity }))
}

/** Finds deliveries that did not end, or not in the way that the receiver saw. */
const findUnended = (run: Run, urls: ReadonlyMap<string, string>): ReadonlyArray<Finding> => {
  const received = new Set(
    run.arrivals
      .filter(({ status }) => isSuccess(status))
      .map(({ headers, url }) => refOf(headers["webhook-id"] ?? "", url)),
  )
  const kept = new Map(run.state.webhooks.map((webhook) => [webhook.id, webhook]))
  const judge = ({ attempts, eventId, state, webhookId }: Delivery): string | undefined => {
    const url = urls.get(webhookId)
    const isGone = kept.get(webhookId)?.isDisabled ?? run.manners[url ?? ""] === "gone"
    switch (state) {
      case "delivered":
        // The answer that created the webhook may have been lost.
        return url === undefined || received.has(refOf(eventId, url))
          ? undefined
          : "is delivered, but no receiver accepted it"
      case "failed":
        return attempts >= run.mostAttempts || isGone
          ? undefined
          : `is given up after ${attempts} attempts`
      case "cancelled":
        return kept.has(webhookId) ? "is cancelled, but its webhook is there" : undefined
      default:
        // Of a deleted webhook, nothing needs to end.
        if (!kept.has(webhookId)) return undefined
        return `stays ${state} after ${attempts} attempts`
    }
  }
  return run.state.deliveries.flatMap((delivery) => {
    const problem = judge(delivery)
    const { eventId, webhookId } = delivery
    return problem === undefined ? [] : [{ text: `${eventId} to ${webhookId} ${problem}` }]
  })
}

/** An event, and when its change was requested and answered. */
export interface Happened {
  readonly event: Event
  readonly operation: Pick<Operation, "start" | "end">
}

/** What an event has in common with the operation that it tells of. */
const markOf = ({ body }: Event): string | undefined => {
  const { data } = JSON.parse(body)
  return data.request_id ?? data.payment
}

/** The changes that were answered, with their events. */
export const happened = ({ operations, state }: Run): ReadonlyArray<Happened> => {
  const byMark = new Map(state.events.map((event) => [markOf(event), event]))
  return operations
    .filter(({ status }) => status === 200)
    .flatMap((operation) => {
      const mark = operation.requestId ?? operation.subject
      const event = mark === undefined ? undefined : byMark.get(mark)
      return event === undefined ? [] : [{ event, operation }]
    })
}

// An announcement that was decided is made in this time.
const announcedMillis = 1000

/** The announcements of ends, for which nobody asks. */
export const announced = (run: Run): ReadonlyArray<Happened> =>
  announcementsOf(run).map(({ at, event }) => ({
    event,
    operation: { start: at, end: deadline(run, at, announcedMillis) },
  }))

/** Finds events that have no delivery to a webhook that was there. */
const findUnaddressed = (
  run: Run,
  webhooks: ReadonlyArray<Known>,
  changes: ReadonlyArray<Happened>,
): ReadonlyArray<Finding> => {
  const addressed = new Set(
    run.state.deliveries.map(({ eventId, webhookId }) => `${eventId} ${webhookId}`),
  )
  const byProject = groupBy(webhooks, ({ projectId }) => projectId)
  return changes.flatMap(({ event, operation }) =>
    (byProject[event.projectId] ?? [])
      .filter(
        ({ from, id, to, url }) =>
          // A receiver that is gone gets nothing more.
          run.manners[url] !== "gone" &&
          from < operation.start &&
          to > operation.end &&
          !addressed.has(`${event.id} ${id}`),
      )
      .map(({ id }) => ({ text: `${event.id} has no delivery to ${id}`, at: operation.end })),
  )
}

/** The first arrival of each event at each receiver. */
const firstArrivals = ({ arrivals }: Run): ReadonlyMap<string, number> => {
  const first = new Map<string, number>()
  for (const { at, headers, url } of arrivals) {
    const ref = refOf(headers["webhook-id"] ?? "", url)
    first.set(ref, Math.min(at, first.get(ref) ?? Infinity))
  }
  return first
}

// While nothing is wrong, an event reaches its receivers in this time.
const longestDelayMillis = 3000

/** When each event reached each receiver that is well, and when it had to at the latest. */
export const delays = (
  run: Run,
  webhooks: ReadonlyArray<Known> = knownWebhooks(run),
  changes: ReadonlyArray<Happened> = happened(run),
) => {
  const first = firstArrivals(run)
  const judged = groupBy(
    webhooks.filter(({ to, url }) => to === Infinity && run.manners[url] === "fast"),
    ({ projectId }) => projectId,
  )
  return changes.flatMap(({ event, operation }) =>
    (judged[event.projectId] ?? []).flatMap(({ from, url }) => {
      const arrived = first.get(refOf(event.id, url))
      if (from >= operation.start || arrived === undefined) return []
      const latest = deadline(run, operation.end, longestDelayMillis)
      return [{ event, url, answered: operation.end, arrived, latest }]
    }),
  )
}

const findLate = (
  run: Run,
  webhooks: ReadonlyArray<Known>,
  changes: ReadonlyArray<Happened>,
): ReadonlyArray<Finding> =>
  delays(run, webhooks, changes)
    .filter(({ arrived, latest }) => arrived > latest)
    .map(({ answered, arrived, event, latest, url }) => ({
      text:
        `${event.id} of ${event.projectId} reached ${url} ${(arrived - answered).toFixed(0)} ms ` +
        `after its change was answered, ${(arrived - latest).toFixed(0)} ms too late`,
      at: arrived,
    }))

// Longer than all delays between attempts together.
const longestDrainMillis = 10_000

// So many deliveries end within that, also on a busy machine. What waits after a long run takes longer.
const promptDeliveries = 1000
const millisPerDelivery = 20

/** Returns how long deliveries may be under way after the last request. */
export const drainMillisFor = (backlog: number): number =>
  longestDrainMillis + millisPerDelivery * Math.max(0, backlog - promptDeliveries)

/** Finds that deliveries waited for nothing after the last request, when all receivers were well. */
const findSlow = ({ backlog, drainedMillis, slackMillis }: Run): ReadonlyArray<Finding> =>
  drainedMillis > drainMillisFor(backlog) + slackMillis
    ? [
        {
          text: `deliveries were under way for ${drainedMillis.toFixed(0)} ms after the last request`,
        },
      ]
    : []

const find = (run: Run): ReadonlyArray<Finding> => {
  const webhooks = knownWebhooks(run)
  const changes = [...happened(run), ...announced(run)]
  const urls = new Map(webhooks.map(({ id, url }) => [id, url]))
  return [
    ...findUnended(run, urls),
    ...findUnaddressed(run, webhooks, changes),
    ...findLate(run, webhooks, changes),
    ...findSlow(run),
  ]
}

/** Checks deliveries. */
export const deliveries: Check = { name: "every event is delivered or visibly failed", find }
