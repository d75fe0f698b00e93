/** Dry runs, with previewed webhooks. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InvalidInput, type StoreUnavailable } from "../base/errors.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import { type EventDraft, type EventType, completeEvent } from "../events/event.ts"
import type { EndDate } from "./end-date.ts"
import type { UserId } from "./membership.ts"

/** Whether a change is only tried, and whether its webhooks are shown. */
export type Trial = "none" | "dry" | "events"

const trials: Readonly<Record<Trial, Result.Result<Trial, InvalidInput>>> = {
  none: Result.succeed("none"),
  dry: Result.succeed("dry"),
  events: Result.succeed("events"),
}

const notDry = Result.fail(
  new InvalidInput({ field: "events", problem: "must be left out without a dry run" }),
)

/** Tells whether a change is only tried. */
export const trialOf = ({
  dryRun,
  events,
}: {
  readonly dryRun: boolean
  readonly events: boolean
}): Result.Result<Trial, InvalidInput> => {
  if (events) return dryRun ? trials.events : notDry
  return dryRun ? trials.dry : trials.none
}

/** An import's effect on memberships, from a dry run. */
export interface ImportCounts {
  /** How many would be created. */
  readonly wouldGrant: number
  /** How many would end earlier. */
  readonly wouldShorten: number
  /** How many would keep their end date. */
  readonly wouldStay: number
}

/** An end date before and after a change. */
export interface ChangedEnd {
  /** `undefined` for a new membership. */
  readonly before: EndDate | undefined
  readonly after: EndDate
}

/** Counts the effect an import would have on its users' memberships. */
export const countImport = (ends: ReadonlyArray<ChangedEnd>): ImportCounts => {
  const countWhere = (is: (end: ChangedEnd) => boolean): number => ends.filter(is).length
  return {
    wouldGrant: countWhere(({ before }) => before === undefined),
    wouldShorten: countWhere(({ after, before }) => before !== undefined && after < before),
    wouldStay: countWhere(({ after, before }) => before === after),
  }
}

/** A change to preview: one membership, all, or an import. */
export type PreviewedChange =
  | { readonly _tag: "One"; readonly userId: UserId }
  | { readonly _tag: "All" }
  | { readonly _tag: "Import"; readonly size: number }

/** How a store would publish a change's event. */
export interface Publication {
  /** The sequence number, unless another change takes it. */
  readonly sequence: number
  /** The membership's metadata as JSON, if one is changed. */
  readonly metadata: string | undefined
  /** How many webhooks would receive the event. */
  readonly total: number
  /** The first ten, in the list's order. */
  readonly first: ReadonlyArray<{ readonly webhookId: string; readonly url: string }>
}

/** How many webhooks a preview shows. */
export const maxPreviewed = 10

/** Tells how a store would publish an event now, without a lock. */
export type PreviewPublication = (
  projectId: ProjectId,
  type: EventType,
  change: PreviewedChange,
) => Effect.Effect<Publication, ProjectNotFound | StoreUnavailable>

/** A webhook as a change would send it. */
export interface PreviewedWebhook {
  /** The webhook's id. */
  readonly webhookId: string
  /** The notification's destination. */
  readonly url: string
  /** The event's type. */
  readonly type: EventType
  /** The JSON text to send. Its time, the request and the sequence number are not final. */
  readonly body: string
}

/** The webhooks to be sent at once. Announcements may follow later. */
export interface EventsPreview {
  /** How many webhooks would be sent. */
  readonly total: number
  /** How many by event type. */
  readonly byType: Readonly<Record<string, number>>
  /** The first ten. */
  readonly first: ReadonlyArray<PreviewedWebhook>
}

/** Previews a change without effect. */
const noEvents: EventsPreview = { total: 0, byType: {}, first: [] }

/**
 * Previews a change's webhooks, if they are asked for.
 *
 * @param change - `undefined` if nothing would be changed
 */
export const previewEvents = Effect.fnUntraced(function* (
  { previewPublication }: { readonly previewPublication: PreviewPublication },
  trial: Trial,
  draft: EventDraft,
  change: PreviewedChange | undefined,
) {
  if (trial !== "events") return undefined
  if (change === undefined) return noEvents
  const { projectId, type } = draft
  const { first, metadata, sequence, total } = yield* previewPublication(projectId, type, change)
  const { body } = completeEvent(draft, sequence, metadata)
  const preview: EventsPreview = {
    total,
    byType: total === 0 ? {} : { [type]: total },
    first: first.map((webhook) => ({ ...webhook, type, body })),
  }
  return preview
})
