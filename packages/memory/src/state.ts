/** The stores' shared state: projects, webhooks, keys, events, deliveries and replayable responses. */

import {
  type Moment,
  type Ring,
  auditedOrigin,
  invariant,
  makeRing,
  mentionsUser,
  queuedBacklog,
} from "@tenure/core/internal"
import {
  type ApiKey,
  type ApiKeyId,
  type AttemptResult,
  type AuditRow,
  type Backlog,
  type Change,
  type ChangeContext,
  type Event,
  type EventId,
  type FeedCursor,
  type IdempotencyKey,
  IdempotencyMismatch,
  type NonMembershipAction,
  type ProjectId,
  ProjectNotFound,
  type PublishedEvent,
  type ReplayedResponse,
  type SettleResult,
  type StoredWebhook,
  type UserId,
  WebhookDisabled,
  type WebhookId,
  WebhookNotFound,
  type WebhookRef,
  announcementsOf,
  completeEvent,
  eraseUser,
  hostOrigin,
  replayedResponse,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { type Alarms, makeAlarms } from "./alarms.ts"
import { type AuditTrail, addRow, makeAuditTrail } from "./audit-trail.ts"
import type { CursorCipher } from "./cursors.ts"
import {
  type Deliveries,
  addAnnouncement,
  addDelivery,
  cancelDeliveries,
  countFailed,
  eraseUserFromDeliveries,
  forgetProject,
  jobsOfEvent,
  makeDeliveries,
  toDelivery,
  updateWebhook,
} from "./deliveries.ts"
import { type Project, makeProject } from "./projects.ts"

/** A response, and its request's digest. */
interface Answer {
  readonly projectId: ProjectId | undefined
  readonly fingerprint: string
  readonly replayed: ReplayedResponse
}

/** Responses by owner and idempotency key. */
type ByOwner = Map<string, Map<string, Answer>>

export interface IdempotencyLimits {
  /** How many responses to keep per owner. */
  readonly perOwner: number
  /** How long answers are kept, in milliseconds, up to twice as long if there is room. */
  readonly millis: number
}

/** Returns the part of a change's result to keep for a replay, usually what the key gives. */
export type AnswerOf<A> = (value: A, given: string | undefined) => string

/** All owners' responses. */
interface IdempotencyTable {
  /** Returns the answer to a request, or fails if the key came with another request. */
  readonly find: (
    idempotency: IdempotencyKey,
  ) => Effect.Effect<ReplayedResponse | undefined, IdempotencyMismatch>
  /**
   * Makes a change in one synchronous step, unless its idempotency key is known. A change without a key
   * is always made.
   *
   * @param projectId - the response is deleted with this project
   * @param answerOf - by default, what the key gives
   */
  readonly change: <A, E>(
    idempotency: IdempotencyKey | undefined,
    projectId: ProjectId | undefined,
    change: Effect.Effect<A, E>,
    answerOf?: AnswerOf<A>,
  ) => Effect.Effect<A | ReplayedResponse, E | IdempotencyMismatch>
  /** Deletes a purged project's responses. */
  readonly forget: (projectId: ProjectId) => void
}

/** Creates an empty table. Entries live in two generations, as in an `LruCache`. */
const makeIdempotencyTable = ({ millis, perOwner }: IdempotencyLimits): IdempotencyTable => {
  const width = Math.max(1, Math.floor(perOwner / 2))
  let young: ByOwner = new Map()
  let old: ByOwner = new Map()
  let since = -Infinity

  const age = (now: number): void => {
    if (now - since < millis) return
    old = now - since < 2 * millis ? young : new Map()
    young = new Map()
    since = now
  }

  const find = ({ fingerprint, key, owner }: IdempotencyKey, now: number) => {
    age(now)
    const known = young.get(owner)?.get(key) ?? old.get(owner)?.get(key)
    return known === undefined || known.fingerprint === fingerprint
      ? Effect.succeed(known?.replayed)
      : Effect.fail(new IdempotencyMismatch())
  }

  const keep = (
    { fingerprint, key, owner }: IdempotencyKey,
    projectId: ProjectId | undefined,
    answer: string,
  ): void => {
    const own = young.get(owner)
    if (own === undefined || own.size >= width) young.set(owner, new Map())
    if (own !== undefined && own.size >= width) old.set(owner, own)
    young.get(owner)?.set(key, { projectId, fingerprint, replayed: replayedResponse(answer) })
  }

  return {
    find: (idempotency) => Effect.flatMap(Clock.currentTimeMillis, (now) => find(idempotency, now)),

    change: <A, E>(
      idempotency: IdempotencyKey | undefined,
      projectId: ProjectId | undefined,
      change: Effect.Effect<A, E>,
      answerOf: AnswerOf<A> = (_, given = "") => given,
    ) => {
      if (idempotency === undefined) return change
      const step = Effect.gen(function* () {
        const known = yield* find(idempotency, yield* Clock.currentTimeMillis)
        if (known !== undefined) return known
        const value = yield* change
        keep(idempotency, projectId, answerOf(value, idempotency.answer))
        return value
      })
      // Nothing comes between the search for the key and the change.
      return Effect.contextWith((context: Context.Context<never>) =>
        Effect.runSyncExitWith(context)(step),
      )
    },

    forget: (projectId) => {
      for (const answers of [...young.values(), ...old.values()]) {
        for (const [key, answer] of answers) if (answer.projectId === projectId) answers.delete(key)
      }
    },
  }
}

/**
 * An event and its project. Events stay after their project's deletion, because a feed position counts
 * them.
 */
export interface Stored {
  readonly event: Event
  readonly project: Project
  /** The webhooks that it was published to. */
  readonly receivers: ReadonlyArray<WebhookId>
  /** The position after it, once read. */
  cursor?: FeedCursor
}

/** The state behind all ports. */
export interface State {
  readonly projects: Map<ProjectId, Project>
  /** All API keys, oldest first. */
  readonly keys: Map<ApiKeyId, ApiKey>
  /** The audit trail for changes outside projects. */
  readonly otherHistory: AuditTrail
  readonly deliveries: Deliveries
  readonly events: Ring<Stored>
  readonly cursors: CursorCipher
  /** The answers to requests with an idempotency key. */
  readonly answers: IdempotencyTable
  /** When to look at end dates. */
  readonly alarms: Alarms
  /** Open when there may be deliveries to claim. */
  readonly changed: Latch.Latch
  /** How many rows to keep in each project's audit trail. */
  readonly history: number
}

/**
 * Creates an empty state.
 *
 * @param history - how many rows to keep in each project's audit trail, and how many events and
 *   finished deliveries over all projects
 */
export const makeState = (
  history: number,
  answers: IdempotencyLimits,
  cursors: CursorCipher,
): State => {
  return {
    projects: new Map(),
    keys: new Map(),
    otherHistory: makeAuditTrail(0, history),
    deliveries: makeDeliveries(history),
    events: makeRing(history),
    cursors,
    answers: makeIdempotencyTable(answers),
    alarms: makeAlarms(),
    changed: Latch.makeUnsafe(),
    history,
  }
}

const unchanged = {
  userId: undefined,
  from: undefined,
  to: undefined,
  by: undefined,
  reason: undefined,
}

/** Creates a project, unless it exists. */
export const createProject = (state: State, projectId: ProjectId, context: ChangeContext): void => {
  if (state.projects.has(projectId)) return
  // The other trail gets one more row with each project.
  const trail = makeAuditTrail(state.otherHistory.count + 1, state.history)
  state.projects.set(projectId, makeProject(projectId, trail))
  addAuditRow(state, undefined, "project_created", projectId, context)
  invariant(state.otherHistory.count === trail.number, "two audit trails have the same number")
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

/** Deletes a project and its data. Returns whether it existed. */
export const deleteProject = (
  state: State,
  projectId: ProjectId,
  context: ChangeContext,
): boolean => {
  const { alarms, answers, deliveries, projects } = state
  const project = projects.get(projectId)
  if (project === undefined) return false
  projects.delete(projectId)
  alarms.forget(project)
  forgetProject(deliveries, projectId)
  closeTo(state, projectId)
  answers.forget(projectId)
  addAuditRow(state, undefined, "project_deleted", projectId, context)
  return true
}

/**
 * Publishes the event for a project's latest membership change. Returns it.
 *
 * @param metadata - the JSON of that of the membership, for an event of one
 */
export const publishChange = (
  state: State,
  project: Project,
  { event }: Pick<Change, "event">,
  now: Moment,
  metadata?: string,
): Event => {
  const completed = completeEvent(event, project.members.changes(), metadata)
  publish(state, project, completed, now)
  return completed
}

/** Erases a person from a project's data, and ends the membership. Returns whether there was one. */
export const eraseMember = (
  { deliveries, events }: State,
  project: Project,
  userId: UserId,
): boolean => {
  const { history, id, members } = project
  history.rows.replace((row) => {
    if (row.userId === userId) return { ...row, userId: undefined, reason: undefined }
    const isMove = row.action === "moved" && row.subject === userId
    return isMove ? { ...row, subject: undefined, reason: undefined } : row
  })
  eraseUserFromDeliveries(deliveries, id, userId)
  events.replace((stored) =>
    stored.project === project && mentionsUser(stored.event, userId)
      ? { ...stored, event: eraseUser(stored.event, userId) }
      : stored,
  )
  const wasMember = members.get(userId) !== undefined
  members.delete(userId)
  return wasMember
}

/** Adds an audit row for a change outside memberships. */
export const addAuditRow = (
  { otherHistory, projects }: State,
  projectId: ProjectId | undefined,
  action: NonMembershipAction,
  subject: string | undefined,
  { at, origin, reason }: ChangeContext & Partial<Pick<AuditRow, "reason">>,
  changes: AuditRow["changes"] = [],
): void => {
  const history = projectId === undefined ? otherHistory : projects.get(projectId)?.history
  if (history !== undefined) {
    addRow(history, {
      ...unchanged,
      projectId,
      action,
      subject,
      at,
      origin: auditedOrigin(origin),
      reason,
      changes,
    })
  }
}

/** Returns a project, or fails if it does not exist. */
export const projectOf = (
  { projects }: State,
  projectId: ProjectId,
): Effect.Effect<Project, ProjectNotFound> =>
  Effect.suspend(() => {
    const project = projects.get(projectId)
    return project === undefined
      ? Effect.fail(new ProjectNotFound({ projectId }))
      : Effect.succeed(project)
  })

/** Returns a project's webhook, or fails if it does not exist. */
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

/** Returns a project's webhook, or fails if it does not exist or is disabled. */
export const enabledWebhookOf = (
  state: State,
  ref: WebhookRef,
): Effect.Effect<StoredWebhook, WebhookNotFound | WebhookDisabled> =>
  Effect.filterOrFail(
    webhookOf(state, ref),
    ({ disabled }) => disabled === undefined,
    ({ id }) => new WebhookDisabled({ webhookId: id }),
  )

/** Replaces a webhook. */
export const setWebhook = (
  { changed, deliveries, projects }: State,
  webhook: StoredWebhook,
): void => {
  projects.get(webhook.projectId)?.webhooks.set(webhook.id, webhook)
  updateWebhook(deliveries, webhook)
  // It may have been enabled, and have deliveries that wait.
  changed.openUnsafe()
}

/** Removes a webhook and cancels its deliveries. Returns whether it existed. */
export const removeWebhook = (
  { deliveries, projects }: State,
  { projectId, webhookId }: WebhookRef,
): boolean => {
  const isRemoved = projects.get(projectId)?.webhooks.delete(webhookId) === true
  if (isRemoved) cancelDeliveries(deliveries, webhookId)
  return isRemoved
}

const isFor = ({ disabled, eventTypes }: StoredWebhook, { type }: Pick<Event, "type">): boolean =>
  disabled === undefined && (eventTypes === undefined || eventTypes.includes(type))

const deliver = (state: State, webhook: StoredWebhook, event: Event, now: Moment): void => {
  addDelivery(state.deliveries, event, webhook, now)
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
  if (project !== undefined) state.events.push({ event, project, receivers: [webhook.id] })
  deliver(state, webhook, event, now)
}

/** Returns the enabled webhooks subscribed to an event's type. */
export const receiversOf = (
  { webhooks }: Project,
  event: Pick<Event, "type">,
): ReadonlyArray<StoredWebhook> => [...webhooks.values()].filter((webhook) => isFor(webhook, event))

// Shared: thousands of events are kept.
const noReceivers: ReadonlyArray<never> = []

/** Adds an event, with a delivery for each of its receivers. */
export const publish = (state: State, project: Project, event: Event, now: Moment): void => {
  if (project.webhooks.size === 0) {
    state.events.push({ event, project, receivers: noReceivers })
    return
  }
  const receivers = receiversOf(project, event)
  state.events.push({ event, project, receivers: receivers.map(({ id }) => id) })
  for (const webhook of receivers) deliver(state, webhook, event, now)
}

/** Returns a project's event with its deliveries, if kept. */
export const findEvent = (
  { deliveries, events, projects }: State,
  projectId: ProjectId,
  eventId: EventId,
): PublishedEvent | undefined => {
  const jobs = jobsOfEvent(deliveries, eventId)
  // Deliveries may be kept for longer than other events.
  const stored = [...events.newestFirst()].find(
    ({ event: { id, projectId: of }, project }) => id === eventId && projects.get(of) === project,
  )
  const event = jobs[0]?.event ?? stored?.event
  return event?.projectId === projectId ? { ...event, deliveries: jobs.map(toDelivery) } : undefined
}

/** Returns how much is left to deliver. Counts no further than `most`. */
export const countBacklog = (
  { deliveries, projects }: State,
  most: number,
  now: Moment,
): Backlog => {
  const { dueForMillis, lateForMillis, waiting } = queuedBacklog(deliveries.queues, now)
  const webhooks = [...projects.values()].flatMap((project) => [...project.webhooks.values()])
  const disabled = webhooks.filter((webhook) => webhook.disabled?.by === "failures")
  const failed = countFailed(deliveries, new Set(webhooks.map(({ id }) => id)))
  return {
    waiting: Math.min(most, waiting),
    dueForMillis,
    lateForMillis,
    failedDeliveries: Math.min(most, failed),
    disabledWebhooks: Math.min(most, disabled.length),
  }
}

/** Adds an event about a webhook, with a delivery for each other receiver. */
const publishAbout = (
  state: State,
  project: Project,
  { id: about }: StoredWebhook,
  event: Event,
  now: Moment,
): void => {
  const receivers = receiversOf(project, event).filter(({ id }) => id !== about)
  state.events.push({ event, project, receivers: receivers.map(({ id }) => id) })
  for (const webhook of receivers) deliver(state, webhook, event, now)
}

/**
 * Publishes what a settlement announces, and disables the webhook if it asks for that. Does nothing if the webhook is
 * disabled already, or its failures were announced.
 */
export const announceFailure = (
  state: State,
  { id, projectId }: StoredWebhook,
  settlement: AttemptResult,
  now: Moment,
): SettleResult => {
  const project = state.projects.get(projectId)
  const webhook = project?.webhooks.get(id)
  if (project === undefined || webhook === undefined || webhook.disabled !== undefined) {
    return "Settled"
  }
  const failing = "failing" in settlement ? settlement.failing : undefined
  if (failing !== undefined && !addAnnouncement(state.deliveries, id, failing)) return "Settled"
  for (const event of announcementsOf(settlement)) {
    publishAbout(state, project, webhook, event, now)
  }
  if (settlement._tag !== "Disabled") return failing === undefined ? "Settled" : "WebhookFailing"
  const { at } = settlement.announcement
  setWebhook(state, { ...webhook, disabled: { at: now.unix, by: "failures" } })
  addAuditRow(state, projectId, "webhook_disabled", id, { at, origin: hostOrigin })
  return "WebhookDisabled"
}
