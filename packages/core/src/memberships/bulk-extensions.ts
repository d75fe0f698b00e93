/** Extends all memberships in a project, and undoes bulk extensions. */

import * as Effect from "effect/Effect"
import {
  type ChangeContext,
  type ReplayedResponse,
  isReplayedResponse,
  notifyReplay,
} from "../base/change-context.ts"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import type { Repeatable } from "../base/host-method.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import type { ProjectId, ProjectNotFound } from "../base/values.ts"
import { type EventDraft, knownEventTypes } from "../events/event.ts"
import { parseBulkAnswer } from "./answers.ts"
import type { BulkPreview, StoredPreview } from "./bulk-extension.ts"
import { type EventsPreview, type Trial, previewEvents, trialOf } from "./dry-run.ts"
import { formatDuration } from "./duration.ts"
import {
  type BulkChange,
  type BulkMode,
  type EndDate,
  bulkChangeNames,
  endDateNotInFuture,
  formatEndDate,
} from "./end-date.ts"
import type { BulkGoal, bulkExtension, bulkExtensionsPage, undoing } from "./extension-inputs.ts"
import {
  type ChangeServices,
  changeEvent,
  findEndOfDay,
  isTooLate,
  onceOrInFuture,
  unrepeatable,
} from "./extensions.ts"
import { type BulkExtended, type Change } from "./store.ts"

/** The arguments to extend all memberships in a project. */
export type ExtendingAll = HostInputOf<typeof bulkExtension> & Repeatable

/** The bulk extension to undo, and the options. */
export interface UndoingBulkExtension extends HostInputOf<typeof undoing>, Repeatable {}

/** Selects a page from a project's bulk extensions. */
export interface BulkExtensionsPage extends HostInputOf<typeof bulkExtensionsPage> {}

/** The result after changing all memberships. */
export interface BulkResult {
  /** The new end date, if the change has one. */
  readonly endDate?: EndDate | undefined
  /** The project's membership count, including unchanged ones. */
  readonly total: number
  /** After a dry run: the changes it would make. */
  readonly preview?: BulkPreview | undefined
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

/** Returns the change a bulk extension makes. */
export const findBulkChange = (
  services: Pick<ChangeServices, "store">,
  projectId: ProjectId,
  goal: BulkGoal,
  defaultMode: BulkMode,
): Effect.Effect<BulkChange, InvalidInput | ProjectNotFound | StoreUnavailable> => {
  if (goal.by !== undefined) return Effect.succeed({ mode: "extendBy", by: goal.by.millis })
  const mode = goal.mode ?? defaultMode
  return goal.through === undefined
    ? Effect.succeed({ mode, endDate: goal.endDate })
    : Effect.map(findEndOfDay(services, projectId, goal), (endDate) => ({
        mode,
        endDate,
        inDays: true,
      }))
}

/** The data in a bulk extension's event. */
const eventDataOf = (change: BulkChange) =>
  change.mode === "extendBy"
    ? { mode: bulkChangeNames.extendBy, extend_by: formatDuration(change.by) }
    : {
        new_end_date: formatEndDate(change.endDate),
        // JSON omits an undefined mode.
        mode: change.mode === "set" ? undefined : bulkChangeNames[change.mode],
      }

/**
 * Makes the acts that change all memberships in a project.
 *
 * @param settings.undoPeriod - in milliseconds
 */
export const makeBulkChanges = (
  services: ChangeServices,
  { bulk: defaultMode, undoPeriod }: { readonly bulk: BulkMode; readonly undoPeriod: number },
) => {
  const { hooks, store } = services

  /** Reports a change to all memberships. Returns their count, and a replay's end date. */
  const report = (
    changed: Pick<Change, "idempotency">,
    result: BulkExtended | ReplayedResponse,
  ): Effect.Effect<Pick<BulkResult, "endDate" | "total">> =>
    isReplayedResponse(result)
      ? Effect.as(notifyReplay(changed, result), parseBulkAnswer(result.answer))
      : Effect.as(hooks.event(result.event), { total: result.total })

  /** Has the store preview a change, and counts the announcements. */
  const foreseen = Effect.fnUntraced(function* <Failure>(
    projectId: ProjectId,
    preview: (offsets?: ReadonlyArray<number>) => Effect.Effect<StoredPreview, Failure>,
  ): Effect.fn.Return<BulkPreview, Failure | ProjectNotFound | StoreUnavailable> {
    const { grace } = yield* store.findProject(projectId)
    const foresight = yield* services.foresee(grace, true)
    const { moved, ...counted } = yield* preview(foresight?.offsets)
    return { ...counted, announcements: moved && foresight?.count(moved) }
  })

  /** Returns a dry run's result. */
  const tried = Effect.fnUntraced(function* (
    trial: Trial,
    preview: BulkPreview,
    event: EventDraft,
    endDate?: EndDate,
  ) {
    const result: BulkResult = {
      endDate,
      total: preview.total,
      preview,
      events: yield* previewEvents(store, trial, event, { _tag: "All" }),
    }
    return result
  })

  return {
    extendAll: Effect.fnUntraced(function* (
      extension: Decoded<typeof bulkExtension>,
      context: ChangeContext,
    ) {
      const { dryRun, projectId, reason } = extension
      const bulk = yield* findBulkChange(services, projectId, extension, defaultMode)
      const endDate = bulk.mode === "extendBy" ? undefined : bulk.endDate
      if (endDate !== undefined && isTooLate({ dryRun, endDate }, context)) {
        return yield* endDateNotInFuture
      }
      const trial = yield* Effect.fromResult(trialOf(extension))
      const change = { ...context, projectId, reason }
      const event = changeEvent(services, change, knownEventTypes.bulkExtended, {
        project_id: projectId,
        ...eventDataOf(bulk),
      })
      if (trial !== "none") {
        const preview = yield* foreseen(projectId, (offsets) =>
          store.previewBulkExtension(projectId, bulk, offsets),
        )
        return yield* tried(trial, preview, event, endDate)
      }
      if (bulk.mode === "extendBy" && context.idempotency === undefined)
        return yield* unrepeatable()
      const extend = store.extendAll({ ...change, event, bulk })
      const result = yield* endDate === undefined
        ? extend
        : onceOrInFuture(services, change, endDate, extend)
      const reported = yield* report(context, result)
      // A replay has the date of the first response, even if the project has another time zone by now.
      return { total: reported.total, endDate: reported.endDate ?? endDate }
    }),

    undoBulkExtension: Effect.fnUntraced(function* (
      { id, projectId, reason, ...given }: Decoded<typeof undoing>,
      context: ChangeContext,
    ) {
      const target = { bulkExtensionId: id, madeAfter: context.at - undoPeriod }
      const trial = yield* Effect.fromResult(trialOf(given))
      const change = { ...context, projectId, reason }
      const event = changeEvent(services, change, knownEventTypes.extensionUndone, {
        project_id: projectId,
        bulk_extension_id: id,
      })
      if (trial !== "none") {
        const preview = yield* foreseen(projectId, (offsets) =>
          store.previewUndo(projectId, target, offsets),
        )
        return yield* tried(trial, preview, event)
      }
      const result = yield* store.undoBulkExtension({ ...change, ...target, event })
      const { total } = yield* report(context, result)
      return { total }
    }),

    bulkExtensions: ({ projectId, ...page }: Decoded<typeof bulkExtensionsPage>) =>
      store.bulkExtensions(projectId, page),
  }
}
