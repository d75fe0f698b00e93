/** Sends events to a webhook again, or cancels what waits for it. */

import { type Moment, withdraw } from "@tenure/core/internal"
import {
  type CancelSelection,
  type EventId,
  type ReplayKind,
  type ReplayPage,
  type ReplaySelection,
  type StoredWebhook,
  isSelected,
  maxReplayRead,
  maxReplayed,
  replayKindOf,
} from "@tenure/core/store"
import { cancelWaiting, deliveriesJobsOf, newJob, queueFor, wait } from "./deliveries.ts"
import { type Job, delayJob, memberOf } from "./jobs.ts"
import type { State, Stored } from "./state.ts"

const refOf = ({ id, projectId }: StoredWebhook) => ({ projectId, webhookId: id })

/** Tells whether a delivery has ended or waits for its next attempt. A claimed one was due already. */
const canRestart = ({ dueTick, state }: Job, { tick }: Moment): boolean =>
  state !== "waiting" || dueTick > tick

/** Restarts deliveries, which are in no queue. Those of a member take turns in the order of their publication. */
const restart = (
  state: State,
  webhook: StoredWebhook,
  jobs: ReadonlyArray<Job>,
  isReplay: boolean,
  now: Moment,
): void => {
  const queue = queueFor(state.deliveries, webhook)
  for (const job of jobs.toSorted((one, other) => one.order - other.order)) {
    if (job.state !== "waiting") job.member = memberOf(webhook, job.event)
    job.state = "waiting"
    job.isReplay = isReplay
    job.claims = 0
    delayJob(job, 0, now)
    wait(state.deliveries, queue, job)
  }
  state.changed.openUnsafe()
}

/** Restarts an event's delivery. Returns how many there are. */
export const replayOne = (
  state: State,
  webhook: StoredWebhook,
  eventId: EventId,
  now: Moment,
): number => {
  const jobs = deliveriesJobsOf(state.deliveries, refOf(webhook)).filter(
    (job) => job.event.id === eventId && canRestart(job, now),
  )
  withdraw(queueFor(state.deliveries, webhook), new Set(jobs))
  restart(state, webhook, jobs, false, now)
  return jobs.length
}

/** Returns a project's events between the ends of a replay; `undefined` if one of them is not kept. */
const logOf = (
  { events, projects }: State,
  { projectId }: StoredWebhook,
  { position }: ReplaySelection,
): ReadonlyArray<Stored> | undefined => {
  const project = projects.get(projectId)
  const log = [...events.newestFirst()].filter((one) => one.project === project).toReversed()
  if (position === undefined) return log
  const [after, until] = [position.after, position.until].map((id) =>
    log.findIndex(({ event }) => event.id === id),
  )
  if (after === undefined || until === undefined || after < 0 || until < 0) return undefined
  return log.slice(after + 1, until + 1)
}

/** Sends a page of events again. Returns `undefined` if the page before it is not kept. */
export const replayMany = (
  state: State,
  webhook: StoredWebhook,
  selection: ReplaySelection,
  now: Moment,
): ReplayPage | undefined => {
  const log = logOf(state, webhook, selection)
  if (log === undefined) return undefined
  const { isDryRun, kinds, position, since, types = webhook.eventTypes } = selection
  const jobs = new Map(
    deliveriesJobsOf(state.deliveries, refOf(webhook)).map((job) => [job.event.id, job] as const),
  )

  const kindOf = ({ event, receivers }: Stored): ReplayKind | undefined => {
    // A delivery is forgotten before its event if the project has several webhooks.
    const forgotten = receivers.includes(webhook.id) ? "delivered" : undefined
    return replayKindOf(event, webhook.id, jobs.get(event.id)?.state ?? forgotten)
  }

  const seen = log.filter(({ event }) => event.at >= since).slice(0, maxReplayRead)
  const chosen = seen
    .filter((stored) => {
      const kind = kindOf(stored)
      return (
        kind !== undefined &&
        kinds.includes(kind) &&
        (types === undefined || types.includes(stored.event.type))
      )
    })
    .slice(0, maxReplayed)
  if (!isDryRun) {
    const restarted = chosen.map(
      ({ event }) => jobs.get(event.id) ?? newJob(state.deliveries, event, webhook, now),
    )
    restart(state, webhook, restarted, true, now)
  }
  const isFull = chosen.length === maxReplayed
  const last = (isFull ? chosen : seen).at(-1)?.event.id
  const until = position?.until ?? log.at(-1)?.event.id
  const isMore = isFull || seen.length === maxReplayRead
  return {
    replayed: chosen.length,
    next:
      isMore && last !== undefined && until !== undefined && last !== until
        ? { after: last, until }
        : undefined,
  }
}

/** Cancels a webhook's waiting deliveries. Returns how many. */
export const cancel = (
  { deliveries }: State,
  webhook: StoredWebhook,
  selection: CancelSelection,
): number => {
  const { waiting } = queueFor(deliveries, webhook)
  const selected = waiting.values().filter(({ event }) => isSelected(event, selection))
  if (!selection.isDryRun) cancelWaiting(deliveries, webhook, selected)
  return selected.length
}
