/**
 * Every event reaches every webhook that was there when it happened, or ends visibly as failed. Soon,
 * where the receiver is well and all faults have healed. Notifications are signed, and deleted webhooks get none.
 */

import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import { groupBy } from "effect/Array"
import * as Result from "effect/Result"
import type {
  Arrival,
  Check,
  Delivery,
  Event,
  Finding,
  Operation,
  Run,
  Webhook,
} from "../history.ts"
import { deadline, troubleOf } from "../trouble.ts"
import { announcementsOf } from "./announcements.ts"

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

const urlsOf = (webhooks: ReadonlyArray<Webhook>): ReadonlyMap<string, string> =>
  new Map(webhooks.map(({ id, url }) => [id, url]))

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
        return attempts >= run.maxAttempts || isGone
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

/** What an event has in common with its operation. */
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

/** Announcements, for which nobody asks. */
export const announced = (run: Run): ReadonlyArray<Happened> =>
  announcementsOf(run).map(({ at, event }) => ({
    event,
    operation: { start: at, end: deadline(run, at, announcedMillis) },
  }))

const changesIn = (run: Run): ReadonlyArray<Happened> => [...happened(run), ...announced(run)]

/** Returns each event with each webhook that was there when it happened. */
export const owed = (
  run: Run,
  webhooks: ReadonlyArray<Known> = knownWebhooks(run),
  changes: ReadonlyArray<Happened> = changesIn(run),
) => {
  const byProject = groupBy(webhooks, ({ projectId }) => projectId)
  return changes.flatMap(({ event, operation }) =>
    (byProject[event.projectId] ?? [])
      .filter(
        ({ from, to, url }) =>
          // A receiver that is gone gets nothing more.
          run.manners[url] !== "gone" && from < operation.start && to > operation.end,
      )
      .map(({ id }) => ({ eventId: event.id, webhookId: id, answered: operation.end })),
  )
}

/** Finds events that have no delivery to a webhook that was there. */
const findUnaddressed = (
  run: Run,
  webhooks: ReadonlyArray<Known>,
  changes: ReadonlyArray<Happened>,
): ReadonlyArray<Finding> => {
  const addressed = new Set(
    run.state.deliveries.map(({ eventId, webhookId }) => `${eventId} ${webhookId}`),
  )
  return owed(run, webhooks, changes)
    .filter(({ eventId, webhookId }) => !addressed.has(`${eventId} ${webhookId}`))
    .map(({ answered, eventId, webhookId }) => ({
      text: `${eventId} has no delivery to ${webhookId}`,
      at: answered,
    }))
}

/** When each event first arrived at each receiver. */
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
  const changes = changesIn(run)
  const urls = urlsOf(webhooks)
  return [
    ...findUnended(run, urls),
    ...findUnaddressed(run, webhooks, changes),
    ...findLate(run, webhooks, changes),
    ...findSlow(run),
  ]
}

export const deliveries: Check = { name: "every event is delivered or visibly failed", find }

/**
 * Another process may have an attempt in flight when the webhook is deleted, or start one that it has
 * claimed. It learns about the deletion within this time, unless a fault keeps the news from it.
 */
const newsMillis = 250

/** Returns what is wrong if a webhook was deleted at `end`. */
const sentAfter = (run: Run, { at, ended = Infinity, url }: Arrival, end: number) => {
  const latest = deadline(run, end, newsMillis)
  const after = (instant: number) =>
    `${(instant - end).toFixed(0)} ms after its deletion was answered`
  if (at > latest) return { text: `was sent to ${url} ${after(at)}`, at }
  if (ended > latest) return { text: `was on its way to ${url} until ${after(ended)}`, at: ended }
  return undefined
}

export const deletions: Check = {
  name: "nothing is sent after a deletion",
  find: (run) => {
    const urls = urlsOf(run.operations.flatMap(createdOf))
    const deletedAt = new Map(
      run.operations
        .filter(({ action, status }) => action === "deleteWebhook" && status === 200)
        .map(({ end, subject = "" }) => [urls.get(subject), end]),
    )
    return run.arrivals.flatMap((arrival) => {
      const end = deletedAt.get(arrival.url)
      const problem = end === undefined ? undefined : sentAfter(run, arrival, end)
      if (problem === undefined) return []
      return [{ ...problem, text: `${arrival.headers["webhook-id"]} ${problem.text}` }]
    })
  },
}

const secretsOf = ({ operations, state }: Run): ReadonlyMap<string, string> =>
  new Map(
    [...operations.flatMap(({ webhook }) => webhook ?? []), ...state.webhooks].map(
      ({ secret, url }) => [url, secret],
    ),
  )

/** Whether a notification may have been signed by a clock that was off by more than receivers accept. */
const isByWrongClock = ({ faults }: Run, at: number): boolean =>
  faults
    .filter(({ kind }) => kind === "serverClockJumped")
    .map(troubleOf)
    .some(({ from, to }) => from <= at && at <= to)

const isSigned = (run: Run, { at, body, headers }: Arrival, secret: string): boolean => {
  const signedAt = 1000 * Number(headers["webhook-timestamp"])
  const now = isByWrongClock(run, at) ? signedAt : at
  return (
    WebhookSecret.is(secret) && Result.isSuccess(verifySignature({ headers, body, now }, [secret]))
  )
}

// A person may have been erased between attempts.
const withoutPerson = (body: string): string =>
  body.replaceAll(/"user_id":"\d+"/g, '"user_id":null')

const isSame = (body: string, stored: string): boolean =>
  body === stored || (stored.includes('"user_id":null') && withoutPerson(body) === stored)

export const signatures: Check = {
  name: "signatures and ids are valid",
  find: (run) => {
    const secrets = secretsOf(run)
    const bodies = new Map(run.state.events.map(({ body, id }) => [id, body]))
    return run.arrivals.flatMap((arrival) => {
      const { at, body, headers, url } = arrival
      const id = headers["webhook-id"] ?? ""
      // Without one, the answer that created the webhook was lost, and then it was deleted.
      const secret = secrets.get(url)
      const problems = [
        secret !== undefined && !isSigned(run, arrival, secret) && "has no valid signature",
        !bodies.has(id) && "is no event",
        !isSame(body, bodies.get(id) ?? body) && "has another body than its event",
      ]
      return problems.flatMap((problem) =>
        problem === false ? [] : [{ text: `${id} to ${url} ${problem}`, at }],
      )
    })
  },
}
