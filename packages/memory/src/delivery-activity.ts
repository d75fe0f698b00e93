/** Counts of attempts over time. */

import { answerTimeBuckets } from "@tenure/core/internal"
import {
  type ActivityCell,
  type ActivitySpan,
  type AnswerTimes,
  type Attempt,
  type ProjectId,
  answerTimeBucket,
  cellStart,
  fillCells,
  lastDay,
  lastHour,
  spanStart,
  sumAnswerTimes,
} from "@tenure/core/store"

interface Slot {
  readonly at: number
  delivered: number
  failed: number
  readonly answerTimes: Array<number>
}

const emptySlot = (at: number): Slot => ({
  at,
  delivered: 0,
  failed: 0,
  answerTimes: Array.from({ length: answerTimeBuckets }, () => 0),
})

/** Counts in each cell of a span. A cell replaces the one that is a span older. */
export interface ActivityCounts {
  readonly add: (now: number, isDelivered: boolean, durationMillis: number) => void
  readonly cells: (now: number) => ReadonlyArray<ActivityCell>
  readonly answerTimes: (now: number) => AnswerTimes
}

const makeCounts = (span: ActivitySpan): ActivityCounts => {
  const slots: Array<Slot> = []

  /** Returns the cell's counts, to add to them. */
  const slotAt = (now: number): Slot => {
    const at = cellStart(span, now)
    const index = (at / span.cellMillis) % span.cells
    const known = slots[index]
    if (known?.at === at) return known
    return (slots[index] = emptySlot(at))
  }

  /** Returns the span's counts. Cells from before the clock was set back are not part of it. */
  const within = (now: number): ReadonlyArray<Slot> =>
    slots.filter(({ at }) => at >= spanStart(span, now) && at <= now)

  return {
    add: (now, isDelivered, durationMillis) => {
      const slot = slotAt(now)
      slot[isDelivered ? "delivered" : "failed"]++
      const bucket = answerTimeBucket(durationMillis)
      slot.answerTimes[bucket] = (slot.answerTimes[bucket] ?? 0) + 1
    },
    cells: (now) => fillCells(span, now, within(now)),
    answerTimes: (now) => sumAnswerTimes(within(now).map(({ answerTimes }) => answerTimes)),
  }
}

/** Starts a webhook's last day. */
export const makeDayCounts = (): ActivityCounts => makeCounts(lastDay)

/** The last hour's counts, of all projects together and of each. */
export interface HourCounts {
  readonly add: (projectId: ProjectId, now: number, isDelivered: boolean, attempt: Attempt) => void
  /** Returns the counts of a project, or of all. */
  readonly cells: (projectId: ProjectId | undefined, now: number) => ReadonlyArray<ActivityCell>
  readonly forget: (projectId: ProjectId) => void
}

/** Starts without counts. */
export const makeHourCounts = (): HourCounts => {
  const total = makeCounts(lastHour)
  const byProject = new Map<ProjectId, ActivityCounts>()
  return {
    add: (projectId, now, isDelivered, { durationMillis }) => {
      const own = byProject.get(projectId) ?? makeCounts(lastHour)
      byProject.set(projectId, own)
      own.add(now, isDelivered, durationMillis)
      total.add(now, isDelivered, durationMillis)
    },
    cells: (projectId, now) =>
      projectId === undefined
        ? total.cells(now)
        : (byProject.get(projectId)?.cells(now) ?? fillCells(lastHour, now, [])),
    forget: (projectId) => void byProject.delete(projectId),
  }
}
