/**
 * Every end date is announced: its reminders and the end itself, each once, soon, and only
 * while the date holds. Of reminders that have come together, only the shortest is announced, and none whose time had
 * come when the date was set.
 */

import { knownEventTypes } from "@tenure/core/store"
import { groupBy } from "effect/Array"
import { type Check, type Event, type Finding, type Run, beginOf } from "../history.ts"
import { deadline } from "../trouble.ts"
import { dateText, describe } from "./end-dates.ts"
import {
  type History,
  type Write,
  erasedOf,
  historiesOf,
  isAnnouncement,
  memberOf,
} from "./histories.ts"

/** An event that announces an end. */
export interface Announcement {
  readonly event: Event
  readonly userId: string
  readonly endDate: number
  /** How long before the end, in milliseconds: a reminder, or 0. */
  readonly lead: number
  /** When it was decided. */
  readonly at: number
  /** The same by the database's clock, which may have been off by an hour. */
  readonly byClock: number
  readonly sequence: number
}

const hourMillis = 3_600_000

/** How far the database's clock was off when it showed this time. A run takes less than an hour. */
const offOf = (run: Run, begin: number): ((byClock: number) => number) => {
  if (!run.faults.some(({ kind }) => kind === "databaseClockJumped")) return () => 0
  const middle = (begin + run.endedAt) / 2
  return (byClock) => hourMillis * Math.round((byClock - middle) / hourMillis)
}

const announcementOf = (event: Event, isOff: (byClock: number) => number): Announcement => {
  const { data, timestamp } = JSON.parse(event.body)
  const byClock = Date.parse(timestamp)
  return {
    event,
    userId: data.user_id,
    endDate: Date.parse(data.end_date),
    lead: 1000 * (data.reminder ?? 0),
    at: byClock - isOff(byClock),
    byClock,
    sequence: data.sequence,
  }
}

// Without grace, no end is overdue: if one is, it is announced twice.
const announcingTypes: ReadonlySet<string> = new Set([
  knownEventTypes.expiring,
  knownEventTypes.overdue,
  knownEventTypes.expired,
])

/** All announcements, in order for each member. */
export const announcementsOf = (run: Run): ReadonlyArray<Announcement> => {
  const isOff = offOf(run, beginOf(run))
  return run.state.events
    .filter(({ type }) => announcingTypes.has(type))
    .map((event) => announcementOf(event, isOff))
    .toSorted((one, other) => one.sequence - other.sequence)
}

/** A time in which a member had an end date. */
interface Period {
  readonly endDate: number
  /** The change that began it, and the one that ended it, if there was one. */
  readonly first: Write
  readonly last: Write | undefined
}

const periodsOf = ({ order }: History): ReadonlyArray<Period> => {
  const changes = order
    .filter(({ row }) => !isAnnouncement(row))
    // A bulk extension may leave the date as it is.
    .filter(({ after }, index, all) => after !== all[index - 1]?.after)
  return changes.flatMap((first, index) => {
    const { after: endDate } = first
    return endDate === undefined ? [] : [{ endDate, first, last: changes[index + 1] }]
  })
}

// While nothing is wrong, an announcement is made in this time.
const longestDelayMillis = 2000

/** When a change had certainly been made. */
const madeBy = ({ operation }: Write): number => {
  if (operation === undefined) return -Infinity
  return operation.status === 200 ? operation.end : Infinity
}

/** Returns when an announcement had to be made at the latest. */
const latestOf = (run: Run, { endDate, first }: Period, lead: number): number =>
  deadline(run, Math.max(endDate - lead, madeBy(first)), longestDelayMillis)

/** Whether the database's clock was off after a change, so that a reminder's time may never have come. */
const isShifted = ({ faults }: Run, { operation }: Write, endDate: number): boolean =>
  faults.some(
    ({ end, kind, start }) =>
      kind === "databaseClockJumped" && start <= endDate && end >= (operation?.start ?? -Infinity),
  )

/** Whether an announcement had to be made: there was time, before it or its date was none any more. */
const isNeeded = (run: Run, period: Period, lead: number): boolean => {
  const { endDate, first, last } = period
  // It is none if its time came before its date was set.
  if (lead > 0 && endDate - lead <= madeBy(first)) return false
  if (lead === 0 && last === undefined) return endDate + longestDelayMillis < run.endedAt
  if (lead > 0 && isShifted(run, period.first, endDate)) return false
  const next = run.leads.find((shorter) => shorter < lead)
  const until = last === undefined ? run.endedAt : (last.operation?.start ?? -Infinity)
  return (
    latestOf(run, period, lead) < Math.min(until, next === undefined ? Infinity : endDate - next)
  )
}

const findMissing = (
  run: Run,
  period: Period,
  made: ReadonlyArray<Announcement>,
): ReadonlyArray<Finding> =>
  run.leads
    .filter((lead) => isNeeded(run, period, lead) && !made.some((one) => one.lead === lead))
    .map((lead) => ({
      text: `${describe(period.first)} was not announced ${lead} ms before`,
      at: period.endDate - lead,
    }))

const textOf = ({ endDate, event, lead, userId }: Announcement): string =>
  `${event.id} announces ${dateText(endDate)} of ${userId} of ${event.projectId} ${lead} ms before`

/** What is wrong with an announcement, given the one before it for the same date. */
const problemOf = (
  run: Run,
  period: Period,
  { at, byClock, endDate, lead }: Announcement,
  before: Announcement | undefined,
): string | undefined => {
  const next = run.leads.find((shorter) => shorter < lead)
  const overwritten = period.last?.operation
  if (!run.leads.includes(lead)) return "which nobody wants"
  if (before?.lead === lead) return `as ${before.event.id} does`
  if (before !== undefined && before.lead < lead) return `after ${before.event.id}`
  if (byClock < endDate - lead) return "too early"
  const since = period.first.operation?.start ?? -Infinity
  if (lead > 0 && endDate - lead <= since && !isShifted(run, period.first, endDate)) {
    return "whose time had come when the date was set"
  }
  if (next !== undefined && byClock >= endDate - next) return `when ${next} ms are left`
  if (overwritten?.status === 200 && overwritten.end < at) {
    return `${(at - overwritten.end).toFixed(0)} ms after another date had been set`
  }
  const late = at - latestOf(run, period, lead)
  return late > 0 ? `${late.toFixed(0)} ms too late` : undefined
}

const findWrong = (
  run: Run,
  period: Period,
  made: ReadonlyArray<Announcement>,
): ReadonlyArray<Finding> =>
  made.flatMap((one, index) => {
    const problem = problemOf(run, period, one, made[index - 1])
    return problem === undefined ? [] : [{ text: `${textOf(one)}, ${problem}`, at: one.at }]
  })

/** What identifies a member's end date: no two changes ask for the same one. */
const refOf = (projectId: string, userId: string, endDate: number): string =>
  `${projectId} ${userId} ${endDate}`

/** Returns the periods that are judged, with what announced them, and what announces a date that nobody set. */
const judgedIn = (run: Run) => {
  // Events about somebody who is erased have no user.
  const erased = erasedOf(run)
  const isKnown = (projectId: string, userId: string | null): boolean =>
    userId !== null && !erased.has(memberOf({ projectId, userId }))
  const made = groupBy(
    announcementsOf(run).filter(({ event, userId }) => isKnown(event.projectId, userId)),
    ({ endDate, event: { projectId }, userId }) => refOf(projectId, userId, endDate),
  )
  const histories = historiesOf(run).filter(({ projectId, userId }) => isKnown(projectId, userId))
  const periods = new Map(
    histories.flatMap((history) =>
      periodsOf(history).map((period) => {
        const { projectId, userId } = history
        return [refOf(projectId, userId, period.endDate), period] as const
      }),
    ),
  )
  // An undo brings a date back, which may have been announced before.
  const restored = new Set(
    [...periods].flatMap(([ref, { first }]) => (first.row.action === "bulk_undone" ? [ref] : [])),
  )
  return {
    unknown: Object.entries(made).flatMap(([ref, all]) => (periods.has(ref) ? [] : all)),
    judged: [...periods].flatMap(([ref, period]) =>
      restored.has(ref) ? [] : [{ period, all: made[ref] ?? [] }],
    ),
  }
}

/** Returns the announcements of ends that had to be made. */
export const neededEnds = (run: Run): ReadonlyArray<Announcement> =>
  judgedIn(run).judged.flatMap(({ all, period }) =>
    isNeeded(run, period, 0) ? all.filter(({ lead }) => lead === 0) : [],
  )

const find = (run: Run): ReadonlyArray<Finding> => {
  const { judged, unknown } = judgedIn(run)
  return [
    ...unknown.map((one) => ({ text: `${textOf(one)}, which nobody set`, at: one.at })),
    ...judged.flatMap(({ all, period }) => [
      ...findMissing(run, period, all),
      ...findWrong(run, period, all),
    ]),
  ]
}

export const announcements: Check = { name: "every end is announced, once and in time", find }
