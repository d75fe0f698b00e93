/** The state that all stores share. Each function that changes it is one synchronous step. */

import type { ApiKey, ApiKeyId } from "@tenure/core/ApiKey"
import * as Erasure from "@tenure/core/Erasure"
import { complete, type Event, type EventId } from "@tenure/core/Event"
import type { Cursor } from "@tenure/core/FeedStore"
import type { OtherAction, UserId } from "@tenure/core/Membership"
import type { Change } from "@tenure/core/MembershipStore"
import type { Moment } from "@tenure/core/Moment"
import * as Origin from "@tenure/core/Origin"
import type { Backlog, PublishedEvent, WebhookRef } from "@tenure/core/Outbox"
import { type ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { type StoredWebhook, WebhookDisabled, WebhookNotFound } from "@tenure/core/Webhook"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Answers from "./Answers.ts"
import * as Ring from "./collections/Ring.ts"
import type * as Cursors from "./Cursors.ts"
import * as Deliveries from "./deliveries/Deliveries.ts"
import * as Job from "./deliveries/Job.ts"
import * as Alarms from "./expiry/Alarms.ts"
import * as Project from "./projects/Project.ts"
import * as Trail from "./projects/Trail.ts"

/** An event, and its project: the feed counts events, so those of a project that was deleted stay. */
interface Stored {
  readonly event: Event
  readonly project: Project.Project
  /** The place after it, once somebody has read it. */
  cursor?: Cursor
}

/** The state behind all ports. */
export interface State {
  readonly projects: Map<ProjectId, Project.Project>
  /** The projects that are in other stores; see `ProjectDirectory`. */
  readonly elsewhere: Set<ProjectId>
  /** All API keys, oldest first. */
  readonly keys: Map<ApiKeyId, ApiKey>
  /** The audit trail of what belongs to no project. */
  readonly otherHistory: Trail.Trail
  readonly deliveries: Deliveries.Deliveries
  readonly events: Ring.Ring<Stored>
  readonly cursors: Cursors.Cursors
  /** The answers to requests with an idempotency key. */
  readonly answers: Answers.Answers
  /** When to look at end dates. */
  readonly alarms: Alarms.Alarms
  /** Open when there may be deliveries to claim. */
  readonly changed: Latch.Latch
  /** How many rows of each project's audit trail are kept. */
  readonly history: number
}

/**
 * Makes an empty state.
 *
 * @param history - how many rows of each project's audit trail are kept, and how many events and
 *   deliveries that have ended, over all projects
 */
export const make = (history: number, answers: Answers.Bounds, cursors: Cursors.Cursors): State => {
  return {
    projects: new Map(),
    elsewhere: new Set(),
    keys: new Map(),
    otherHistory: Trail.make(0, history),
    deliveries: Deliveries.make(history),
    events: Ring.make(history),
    cursors,
    answers: Answers.make(answers),
    alarms: Alarms.make(),
    changed: Latch.makeUnsafe(),
    history,
  }
}

const unchanged = { userId: undefined, from: undefined, to: undefined, reason: undefined }

/** Creates a project, unless it exists. */
export const createProject = (
  state: State,
  projectId: ProjectId,
  occasion: Origin.Occasion,
): void => {
  if (state.projects.has(projectId)) return
  // That trail has one more row with each project.
  const trail = Trail.make(state.otherHistory.count + 1, state.history)
  state.projects.set(projectId, Project.make(projectId, trail))
  audit(state, undefined, "project_created", projectId, occasion)
}

/** A key without its access to a project. */
const without = (key: ApiKey, projectId: ProjectId): ApiKey =>
  key.projects === "all"
    ? key
    : { ...key, projects: new Set([...key.projects].filter((id) => id !== projectId)) }

/** Takes the access to a project from all keys. */
const closeTo = ({ keys }: State, projectId: ProjectId): void => {
  for (const [id, key] of keys) keys.set(id, without(key, projectId))
}

/** Adds a project that is in another store, unless it is known. */
export const addElsewhere = (
  state: State,
  projectId: ProjectId,
  occasion: Origin.Occasion,
): void => {
  if (state.elsewhere.has(projectId)) return
  state.elsewhere.add(projectId)
  audit(state, undefined, "project_created", projectId, occasion)
}

/** Removes a project that is in another store, with the access of keys to it. */
export const removeElsewhere = (
  state: State,
  projectId: ProjectId,
  occasion: Origin.Occasion,
): void => {
  if (!state.elsewhere.delete(projectId)) return
  closeTo(state, projectId)
  audit(state, undefined, "project_deleted", projectId, occasion)
}

/** Deletes a project with all that belongs to it. Returns whether it existed. */
export const deleteProject = (
  state: State,
  projectId: ProjectId,
  occasion: Origin.Occasion,
): boolean => {
  const { alarms, answers, deliveries, projects } = state
  const project = projects.get(projectId)
  if (project === undefined) return false
  projects.delete(projectId)
  alarms.forget(project)
  Deliveries.forget(deliveries, projectId)
  closeTo(state, projectId)
  answers.forget(projectId)
  audit(state, undefined, "project_deleted", projectId, occasion)
  return true
}

/** Publishes the event of the last change of a project's memberships. Returns it. */
export const publishChange = (
  state: State,
  project: Project.Project,
  { event }: Change,
  now: Moment,
): Event => {
  const completed = complete(event, project.members.changes())
  publish(state, project, completed, now)
  return completed
}

/** Erases a person from all that a project has, and ends the membership. Returns whether there was one. */
export const erase = (
  { deliveries, events }: State,
  project: Project.Project,
  userId: UserId,
): boolean => {
  const { history, id, members } = project
  history.rows.replace((row) =>
    row.userId === userId ? { ...row, userId: undefined, reason: undefined } : row,
  )
  Deliveries.erase(deliveries, id, userId)
  events.replace((stored) =>
    stored.project === project && Erasure.concerns(stored.event, userId)
      ? { ...stored, event: Erasure.erase(stored.event, userId) }
      : stored,
  )
  const wasMember = members.get(userId) !== undefined
  members.delete(userId)
  return wasMember
}

/** Adds an audit row of something else than a membership. */
export const audit = (
  { otherHistory, projects }: State,
  projectId: ProjectId | undefined,
  action: OtherAction,
  subject: string | undefined,
  { at, origin }: Origin.Occasion,
): void => {
  const history = projectId === undefined ? otherHistory : projects.get(projectId)?.history
  if (history !== undefined) {
    Trail.add(history, {
      ...unchanged,
      projectId,
      action,
      subject,
      at,
      origin: Origin.kept(origin),
    })
  }
}

/** Returns a project, or fails if it does not exist. */
export const projectOf = (
  { projects }: State,
  projectId: ProjectId,
): Effect.Effect<Project.Project, ProjectNotFound> =>
  Effect.suspend(() => {
    const project = projects.get(projectId)
    return project === undefined
      ? Effect.fail(new ProjectNotFound({ projectId }))
      : Effect.succeed(project)
  })

/** Returns a webhook of a project, or fails if it does not exist. */
export const webhookOf = (
  { projects }: State,
  { projectId, webhookId }: WebhookRef,
): Effect.Effect<StoredWebhook, WebhookNotFound> =>
  Effect.suspend(() => {
    const webhook = projects.get(projectId)?.webhooks.get(webhookId)
    return webhook === undefined
      ? Effect.fail(new WebhookNotFound({ webhookId }))
      : Effect.succeed(webhook)
  })

/** Returns a webhook of a project, or fails if it does not exist or is disabled. */
export const enabledWebhookOf = (
  state: State,
  ref: WebhookRef,
): Effect.Effect<StoredWebhook, WebhookNotFound | WebhookDisabled> =>
  Effect.filterOrFail(
    webhookOf(state, ref),
    ({ disabledAt }) => disabledAt === undefined,
    ({ id }) => new WebhookDisabled({ webhookId: id }),
  )

/** Replaces a webhook. */
export const setWebhook = ({ deliveries, projects }: State, webhook: StoredWebhook): void => {
  projects.get(webhook.projectId)?.webhooks.set(webhook.id, webhook)
  Deliveries.update(deliveries, webhook)
}

/** Removes a webhook and cancels its deliveries. Returns whether it existed. */
export const removeWebhook = (
  { deliveries, projects }: State,
  { projectId, webhookId }: WebhookRef,
): boolean => {
  const isRemoved = projects.get(projectId)?.webhooks.delete(webhookId) === true
  if (isRemoved) Deliveries.cancel(deliveries, webhookId)
  return isRemoved
}

const isFor = ({ disabledAt, eventTypes }: StoredWebhook, { type }: Event): boolean =>
  disabledAt === undefined && (eventTypes === undefined || eventTypes.includes(type))

const deliver = (state: State, webhook: StoredWebhook, event: Event, now: Moment): void => {
  Deliveries.add(state.deliveries, event, webhook, now)
  state.changed.openUnsafe()
}

/** Adds an event with a delivery for one webhook. */
export const publishTo = (
  state: State,
  webhook: StoredWebhook,
  event: Event,
  now: Moment,
): void => {
  const project = state.projects.get(event.projectId)
  if (project !== undefined) state.events.push({ event, project })
  deliver(state, webhook, event, now)
}

/** Adds an event with a delivery for each webhook of its project that is enabled and for its type. */
export const publish = (
  state: State,
  project: Project.Project,
  event: Event,
  now: Moment,
): void => {
  state.events.push({ event, project })
  for (const webhook of project.webhooks.values()) {
    if (isFor(webhook, event)) deliver(state, webhook, event, now)
  }
}

/** Returns an event of a project with its deliveries, if it is kept. */
export const findEvent = (
  { deliveries, events, projects }: State,
  projectId: ProjectId,
  eventId: EventId,
): PublishedEvent | undefined => {
  const jobs = Deliveries.jobsOfEvent(deliveries, eventId)
  // Deliveries may be kept for longer than other events.
  const stored = [...events.newestFirst()].find(
    ({ event: { id, projectId: of }, project }) => id === eventId && projects.get(of) === project,
  )
  const event = jobs[0]?.event ?? stored?.event
  return event?.projectId === projectId
    ? { ...event, deliveries: jobs.map(Job.toDelivery) }
    : undefined
}

/** Returns how much is left to deliver. Counts no further than `most`. */
export const backlogOf = ({ deliveries, projects }: State, most: number, now: Moment): Backlog => {
  const { dueForMillis, waiting } = Deliveries.backlogOf(deliveries, now)
  const webhooks = [...projects.values()].flatMap((project) => [...project.webhooks.values()])
  const disabled = webhooks.filter(({ disabledAt }) => disabledAt !== undefined)
  const failed = Deliveries.countFailed(deliveries, new Set(webhooks.map(({ id }) => id)))
  return {
    waiting: Math.min(most, waiting),
    dueForMillis,
    failedDeliveries: Math.min(most, failed),
    disabledWebhooks: Math.min(most, disabled.length),
  }
}

/**
 * Disables a webhook, and publishes the announcement to the others of its project. Returns whether it was
 * enabled.
 */
export const disable = (
  state: State,
  { id, projectId }: StoredWebhook,
  announcement: Event,
  now: Moment,
): boolean => {
  const project = state.projects.get(projectId)
  const webhook = project?.webhooks.get(id)
  if (project === undefined || webhook === undefined || webhook.disabledAt !== undefined) {
    return false
  }
  setWebhook(state, { ...webhook, disabledAt: now.unix })
  audit(state, projectId, "webhook_disabled", id, { at: announcement.at, origin: Origin.host })
  publish(state, project, announcement, now)
  return true
}
