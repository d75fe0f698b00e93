/** Extends all memberships of a project, and undoes that. */

import * as Effect from "effect/Effect"
import {
  type OriginInput,
  type ReplayedResponse,
  hostOrigin,
  isReplayedResponse,
  notifyReplay,
  readOrigin,
} from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import { readBranded, readPageSize, readProjectId } from "../base/input.ts"
import { currentUnixMillis } from "../base/time.ts"
import { copyOwn } from "../base/values.ts"
import { type EventDraft, EventId, knownEventTypes } from "../events/event.ts"
import { type BulkPreview } from "./bulk-extension.ts"
import { type EventsPreview, type Trial, previewEvents, readTrial } from "./dry-run.ts"
import { fixedDurationFormat, fixedMillis, formatDuration } from "./duration.ts"
import {
  type BulkMode,
  type EndDate,
  formatEndDate,
  type BulkChange,
  bulkChangeNames,
} from "./end-date.ts"
import {
  type ChangeServices,
  type Trying,
  changeEvent,
  readOnce,
  readReason,
} from "./extensions.ts"
import {
  type ByDuration,
  type ToDate,
  onceOrInFuture,
  readBy,
  readDate,
  readMode,
  unrepeatable,
} from "./extensions.ts"
import type { InProject } from "./membership.ts"
import type { BulkExtended, Change } from "./store.ts"

/** How all memberships of a project are extended. */
export type ExtendingAll = Trying & InProject & (ToDate | ByDuration)

/** Which bulk extension is undone, and how. */
export interface UndoingBulkExtension extends Trying {
  /** The id of the project. */
  readonly projectId: string
  /** The id of the bulk extension: that of its event. */
  readonly id: string
}

/** Which bulk extensions are listed. */
export interface BulkExtensionsPage {
  /** The id of the project. */
  readonly projectId: string
  /** The `id` of a bulk extension: lists only older ones. */
  readonly after?: string | undefined
  /** The most bulk extensions to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
}

/** The result of a change of all memberships. */
export interface BulkResult {
  /** The new end date, if the change has one. */
  readonly endDate?: EndDate | undefined
  /** The number of memberships of the project, with those that were left as they are. */
  readonly total: number
  /** Of a dry run: what would change. */
  readonly preview?: BulkPreview | undefined
  /** In a dry run with `events`: the webhooks to be sent. */
  readonly events?: EventsPreview | undefined
}

const notFixed = new InvalidInput({ field: "by", problem: `must be ${fixedDurationFormat}` })

/** Reads what an extension of all memberships does. */
export const readBulkChange = Effect.fnUntraced(function* (
  extending: ExtendingAll,
  defaultMode: BulkMode,
  at: number,
) {
  if (extending.by === undefined) {
    const endDate = yield* readDate(extending, at)
    const change: BulkChange = { mode: (yield* readMode(extending.mode)) ?? defaultMode, endDate }
    return change
  }
  const by = fixedMillis(yield* readBy(extending))
  if (by === undefined) return yield* notFixed
  const change: BulkChange = { mode: "extendBy", by }
  return change
})

/** What the event of a bulk extension says of it. */
const eventDataOf = (change: BulkChange) =>
  change.mode === "extendBy"
    ? { mode: bulkChangeNames.extendBy, extend_by: formatDuration(change.by) }
    : {
        new_end_date: formatEndDate(change.endDate),
        // JSON has no mode where it is undefined.
        mode: change.mode === "set" ? undefined : bulkChangeNames[change.mode],
      }

/**
 * Makes the methods that change all memberships of a project.
 *
 * @param settings.undoPeriod - in milliseconds
 */
export const makeBulkChanges = (
  services: ChangeServices,
  { bulk: defaultMode, undoPeriod }: { readonly bulk: BulkMode; readonly undoPeriod: number },
) => {
  const { hooks, store } = services

  /** Reports a change of all memberships. Returns their number. */
  const report = (
    changed: Pick<Change, "once">,
    result: BulkExtended | ReplayedResponse,
  ): Effect.Effect<number> =>
    isReplayedResponse(result)
      ? Effect.as(notifyReplay(changed, result), Number(result.answer))
      : Effect.as(hooks.event(result.event), result.total)

  /** Returns the result of a dry run. */
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
      input: ExtendingAll,
      originInput: OriginInput = hostOrigin,
    ) {
      const extending = copyOwn(input)
      const at = yield* currentUnixMillis
      const bulk = yield* readBulkChange(extending, defaultMode, at)
      const projectId = yield* readProjectId(extending.projectId)
      const reason = yield* readReason(extending)
      const origin = yield* readOrigin(originInput)
      const endDate = bulk.mode === "extendBy" ? undefined : bulk.endDate
      const trial = yield* readTrial(extending)
      const data = { project_id: projectId, ...eventDataOf(bulk) }
      const asked = { projectId, origin, reason, at }
      const type = knownEventTypes.bulkExtended
      if (trial !== "none") {
        const preview = yield* store.previewBulkExtension(projectId, bulk)
        return yield* tried(trial, preview, changeEvent(services, asked, type, data), endDate)
      }
      const once = yield* readOnce(extending, asked, type, data)
      if (bulk.mode === "extendBy" && once === undefined) return yield* unrepeatable()
      const changed = { ...asked, event: changeEvent(services, asked, type, data), bulk, once }
      const extend = store.extendAll(changed)
      const result = yield* endDate === undefined
        ? extend
        : onceOrInFuture(services, changed, endDate, extend)
      return { endDate, total: yield* report(changed, result) }
    }),

    undoBulkExtension: Effect.fnUntraced(function* (
      input: UndoingBulkExtension,
      originInput: OriginInput = hostOrigin,
    ) {
      const undoing = copyOwn(input)
      const at = yield* currentUnixMillis
      const projectId = yield* readProjectId(undoing.projectId)
      const id = yield* readBranded("id", EventId, undoing.id)
      const reason = yield* readReason(undoing)
      const origin = yield* readOrigin(originInput)
      const target = { bulkExtensionId: id, madeAfter: at - undoPeriod }
      const trial = yield* readTrial(undoing)
      const data = { project_id: projectId, bulk_extension_id: id }
      const asked = { projectId, origin, reason, at }
      const type = knownEventTypes.extensionUndone
      if (trial !== "none") {
        const preview = yield* store.previewUndo(projectId, target)
        return yield* tried(trial, preview, changeEvent(services, asked, type, data))
      }
      const once = yield* readOnce(undoing, asked, type, data)
      const event = changeEvent(services, asked, type, data)
      const changed = { ...asked, ...target, event, once }
      return { total: yield* report(changed, yield* store.undoBulkExtension(changed)) }
    }),

    bulkExtensions: Effect.fnUntraced(function* (page: BulkExtensionsPage) {
      const { after, limit = 100, projectId } = copyOwn(page)
      return yield* store.bulkExtensions(yield* readProjectId(projectId), {
        after: after === undefined ? undefined : yield* readBranded("after", EventId, after),
        limit: yield* readPageSize(limit),
      })
    }),
  }
}
