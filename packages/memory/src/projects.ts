/** Projects in memory: their members and bulk extensions. */

import {
  type BulkExample,
  type Ring,
  lastEndDate,
  makeRing,
  maxBulkExtensions,
  noAdjustment,
  maxExamples,
} from "@tenure/core/internal"
import {
  type BulkChange,
  type BulkExtensionRecord,
  type DateForm,
  type DateOrigin,
  type DatedMembership,
  EndDate,
  type EventId,
  type FormedEndDate,
  type LastAnnouncement,
  type LoggedBulkExtension,
  type Membership,
  type Pause,
  type ProjectId,
  type ProjectSettings,
  type ProjectSummary,
  type StoredPreview,
  type StoredWebhook,
  type TimedBulkExtension,
  type UserId,
  type WebhookId,
  adjustmentOf,
  cellOf,
  composeAdjustments,
  composeLog,
  composeWith,
  dateOrigin,
  defaultProjectSettings,
  effectiveEndDate,
  effectiveForm,
  expiredLead,
  instantForm,
  metadataFromJson,
} from "@tenure/core/store"
import type { AuditTrail } from "./audit-trail.ts"

/** A member's fields other than the end date. */
export interface Watched {
  /** The last announcement for the member; `undefined` if there was none. */
  announced: LastAnnouncement | undefined
  /** When to look at the member's end again, in milliseconds since the epoch; `undefined` for never. */
  alarm: number | undefined
  /** As JSON. */
  metadata: string
  /** The current pause, or one already over until `endPauses` is called. */
  pause: Pause | undefined
  /** A pause ended by itself, and not announced. */
  endedPause: Pause | undefined
}

/** A bulk extension that can be undone. */
interface OpenBulkExtension extends TimedBulkExtension {
  /** `undefined` for several that are one now. */
  readonly id: EventId | undefined
  /** The `order` of the last change of one member before it. */
  readonly lastOwn: number
}

/** A pause that is over, and since when. */
interface OverPause {
  readonly userId: UserId
  readonly pause: Pause
  readonly until: number
}

/** A project's members. */
export interface Members {
  readonly size: () => number
  /** Returns the number of changes so far: the last one's sequence number. */
  readonly changes: () => number
  /** Counts a change that gives no member another date. */
  readonly countChange: () => void
  /** Returns a member's current end date, or `undefined` if the user is no member. */
  readonly get: (userId: UserId) => EndDate | undefined
  /** Returns a member's own end date, and its sequence number. */
  readonly own: (userId: UserId) => Pick<Member, "endDate" | "order"> | undefined
  /** Returns how a member's current end date was given. */
  readonly form: (userId: UserId) => DateForm
  /** Sets a member's end date, alone or with others. */
  readonly set: (userId: UserId, end: FormedEndDate, origin: DateOrigin) => void
  /** Returns when and by what a member got its current end date. */
  readonly dateOrigin: (userId: UserId) => DateOrigin | undefined
  /** Returns a member's fields other than the end date, to change in place. */
  readonly watched: (userId: UserId) => Watched | undefined
  /** Extends all members, in constant time. */
  readonly extendAll: (id: EventId, change: BulkChange, at: number) => void
  /** Undoes a bulk extension, in constant time. */
  readonly undo: (id: EventId, at: number) => void
  /** Returns the bulk extensions that can be undone, oldest first. */
  readonly log: () => ReadonlyArray<OpenBulkExtension>
  /** Returns the earliest date set by bulk extensions, if known. */
  readonly earliestBulk: () => EndDate | undefined
  readonly delete: (userId: UserId) => void
  /** Begins a member's pause. Its end date stands then. */
  readonly pause: (userId: UserId, pause: Pause) => void
  /** Ends a member's pause, and leaves the end date. */
  readonly unpause: (userId: UserId) => void
  /** Ends a member's pause, and sets the end date. */
  readonly resume: (userId: UserId, endDate: EndDate, dateSetAt: number) => void
  /** Returns the members with a pause over at an instant, and since when, in order. */
  readonly pausesOver: (at: number) => ReadonlyArray<OverPause>
  /** Returns how many members are paused. */
  readonly paused: () => number
  /**
   * Iterates over the unpaused members' end dates, or over these after one more bulk extension. Later changes of the
   * members are not counted, or only some of them.
   */
  readonly endDates: (change: BulkChange | undefined) => Iterable<EndDate>
  /** Returns the unpaused members with an end date that passes a test, in no particular order. */
  readonly select: (test: (endDate: EndDate) => boolean) => ReadonlyArray<DatedMembership>
  /** Tells what another log would make of the end dates. Memberships that end after an instant are active. */
  readonly preview: (
    log: ReadonlyArray<LoggedBulkExtension>,
    activeAfter: number,
    movedFrom: ReadonlyArray<number>,
  ) => StoredPreview
  /** Returns all user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
  /** Iterates over all user ids, even while members join or leave. */
  readonly userIds: () => Iterator<UserId, unknown>
}

/**
 * A member's own end date and other fields, in one object instead of two: there may be millions. An
 * extension changes them in place.
 */
interface Member extends Watched {
  endDate: EndDate
  /** As in a `DateForm`. */
  inDays: boolean
  /** As in a `DateForm`. */
  keptDay: number | undefined
  /** As in an `OrderedEndDate`. */
  order: number
  /** As in an `OwnEndDate`. */
  setAt: number
  /** As in an `OwnEndDate`. */
  isSetWithOthers: boolean
}

/** When a bulk extension last changed dates. */
const lastChange = ({ setAt, undoneAt = setAt }: OpenBulkExtension): number =>
  Math.max(setAt, undoneAt)

/** Creates an empty set. */
const makeMembers = (): Members => {
  const members = new Map<UserId, Member>()
  let log: ReadonlyArray<OpenBulkExtension> = []
  let composed = composeLog(log)
  let changes = 0
  let lastOwn = 0
  let sorted: ReadonlyArray<UserId> | undefined
  const paused = new Map<UserId, Pause>()
  // No pause is over before that.
  let firstUntil = Infinity

  const current = (member: Member): EndDate => effectiveEndDate(composed, member)

  const setLog = (next: ReadonlyArray<OpenBulkExtension>): void => {
    log = next
    composed = composeLog(log)
  }

  /** Makes one of two bulk extensions if no member was changed alone between them. */
  const join = (
    joined: ReadonlyArray<OpenBulkExtension>,
    next: OpenBulkExtension,
  ): ReadonlyArray<OpenBulkExtension> => {
    const before = joined.at(-1)
    if (before === undefined || next.lastOwn > before.order) return [...joined, next]
    const [first, second] = [before, next].map(({ adjustment, isUndone }) =>
      isUndone ? noAdjustment : adjustment,
    )
    const adjustment = composeAdjustments(first ?? noAdjustment, second ?? noAdjustment)
    const one: OpenBulkExtension = {
      ...before,
      id: undefined,
      order: next.order,
      adjustment,
      isUndone: false,
      inDays: [before, next].some(({ inDays, isUndone }) => inDays === true && !isUndone),
      setAt: Math.max(lastChange(before), lastChange(next)),
      undoneAt: undefined,
    }
    return [...joined.slice(0, -1), one]
  }

  /** Has no more bulk extensions than can be undone. */
  const shorten = (): void => {
    const newest = log.slice(-maxBulkExtensions / 2)
    const joined = log.slice(0, -newest.length).reduce(join, [])
    if (joined.length > maxBulkExtensions / 2) settle(joined)
    else setLog([...joined, ...newest])
  }

  /** Makes the oldest bulk extensions part of the members' own dates. */
  const settle = (settled: ReadonlyArray<OpenBulkExtension>): void => {
    const { order } = settled.at(-1) ?? { order: 0 }
    const oldest = composeLog(settled)
    for (const member of members.values()) {
      if (member.order < order) {
        const { dateSetAt, isSetWithOthers } = dateOrigin(settled, member)
        member.setAt = dateSetAt
        member.isSetWithOthers = isSetWithOthers
        const { inDays, keptDay } = effectiveForm(oldest, member)
        member.endDate = effectiveEndDate(oldest, member)
        member.inDays = inDays
        member.keptDay = keptDay
        member.order = order
      }
    }
    setLog(log.slice(-maxBulkExtensions / 2))
  }

  const sortedIds = (): ReadonlyArray<UserId> => {
    sorted ??= [...members.keys()].toSorted()
    return sorted
  }

  return {
    size: () => members.size,
    changes: () => changes,
    countChange: () => {
      changes++
    },
    get: (userId) => {
      const member = members.get(userId)
      return member && current(member)
    },
    select: (test) => {
      const selected: Array<DatedMembership> = []
      for (const [userId, member] of members) {
        const endDate = current(member)
        if (member.pause === undefined && test(endDate)) selected.push({ userId, endDate })
      }
      return selected
    },
    own: (userId) => members.get(userId),
    form: (userId) => {
      const member = members.get(userId)
      return member === undefined ? instantForm : effectiveForm(composed, member)
    },
    set: (userId, { endDate, inDays, keptDay }, { dateSetAt, isSetWithOthers }) => {
      const bulkOrder = log.at(-1)?.order ?? -Infinity
      lastOwn = ++changes
      const member = members.get(userId)
      if (member === undefined) {
        members.set(userId, {
          endDate,
          inDays,
          keptDay,
          order: lastOwn,
          setAt: dateSetAt,
          isSetWithOthers,
          announced: undefined,
          alarm: undefined,
          metadata: "{}",
          pause: undefined,
          endedPause: undefined,
        })
        sorted = undefined
      } else {
        // The same date again is no new one.
        if (member.endDate !== endDate || member.order < bulkOrder) {
          member.setAt = dateSetAt
          member.isSetWithOthers = isSetWithOthers
        }
        member.endDate = endDate
        member.inDays = inDays
        member.keptDay = keptDay
        member.order = lastOwn
      }
    },
    dateOrigin: (userId) => {
      const member = members.get(userId)
      return member && dateOrigin(log, member)
    },
    watched: (userId) => members.get(userId),
    extendAll: (id, change, at) => {
      const made: OpenBulkExtension = {
        id,
        adjustment: adjustmentOf(change),
        inDays: change.mode !== "extendBy" && change.inDays === true,
        order: ++changes,
        isUndone: false,
        lastOwn,
        setAt: at,
        undoneAt: undefined,
      }
      setLog([...log, made])
      if (log.length > maxBulkExtensions) shorten()
    },
    undo: (id, at) => {
      changes++
      setLog(log.map((one) => (one.id === id ? { ...one, isUndone: true, undoneAt: at } : one)))
    },
    log: () => log,
    earliestBulk: () => {
      const dates = composed.flatMap(({ minimum }) => minimum ?? [])
      return dates.length === 0 ? undefined : EndDate(Math.min(...dates))
    },
    preview: (other, activeAfter, movedFrom) => {
      const after = composeLog(other)
      const counts = { shortened: 0, reactivated: 0, capped: 0, lifetimesEnded: 0 }
      const examples: Array<BulkExample> = []
      const parts = movedFrom.length + 1
      const moved = Array.from({ length: 2 * parts }, () => 0)
      for (const userId of sortedIds()) {
        const member = members.get(userId)
        if (member === undefined) continue
        const endDate = current(member)
        const wouldEnd = effectiveEndDate(after, member)
        if (wouldEnd < endDate) counts.shortened++
        const isPaused = member.pause !== undefined
        if (!isPaused && endDate <= activeAfter && wouldEnd > activeAfter) counts.reactivated++
        if (wouldEnd === lastEndDate && endDate < lastEndDate) counts.capped++
        if (endDate === lastEndDate && wouldEnd < lastEndDate) counts.lifetimesEnded++
        // Members told before stay expired in silence. In a pause, nobody is told.
        const isSilent =
          isPaused ||
          (Math.max(endDate, wouldEnd) <= activeAfter && member.announced?.lead === expiredLead)
        const told = member.announced?.endDate === wouldEnd ? member.announced.lead : undefined
        if (wouldEnd !== endDate && !isSilent && told !== expiredLead) {
          const part = cellOf({ bounds: movedFrom }, wouldEnd) + (told === 0 ? parts : 0)
          moved[part] = (moved[part] ?? 0) + 1
        }
        if (wouldEnd !== endDate && examples.length < maxExamples) {
          examples.push({ userId, endDate, wouldEnd })
        }
      }
      return { total: members.size, ...counts, examples, moved }
    },
    delete: (userId) => {
      if (members.delete(userId)) changes++
      paused.delete(userId)
      sorted = undefined
    },
    pause: (userId, pause) => {
      const member = members.get(userId)
      if (member === undefined) return
      member.pause = pause
      member.endedPause = undefined
      paused.set(userId, pause)
      firstUntil = Math.min(firstUntil, pause.until ?? Infinity)
    },
    unpause: (userId) => {
      const member = members.get(userId)
      if (member === undefined) return
      member.pause = undefined
      paused.delete(userId)
    },
    resume: (userId, endDate, dateSetAt) => {
      const member = members.get(userId)
      if (member?.pause === undefined) return
      const { inDays } = effectiveForm(composed, member)
      lastOwn = ++changes
      member.endDate = endDate
      member.inDays = inDays
      member.keptDay = undefined
      member.order = lastOwn
      member.setAt = dateSetAt
      member.isSetWithOthers = false
      member.endedPause = undefined
      member.pause = undefined
      paused.delete(userId)
    },
    pausesOver: (at) => {
      if (firstUntil > at) return []
      const over: Array<OverPause> = []
      firstUntil = Infinity
      for (const [userId, pause] of paused) {
        const { until = Infinity } = pause
        if (until <= at) over.push({ userId, pause, until })
        else firstUntil = Math.min(firstUntil, until)
      }
      return over.toSorted(
        (one, other) => one.until - other.until || (one.userId < other.userId ? -1 : 1),
      )
    },
    paused: () => paused.size,
    endDates: function* (change) {
      const after = composeWith(composed, change)
      // Members may leave and return meanwhile.
      const all = Array.from(members.values())
      for (const member of all)
        if (member.pause === undefined) yield effectiveEndDate(after, member)
    },
    sorted: sortedIds,
    userIds: () => members.keys(),
  }
}

/** A project. */
export interface Project {
  readonly id: ProjectId
  readonly members: Members
  readonly webhooks: Map<WebhookId, StoredWebhook>
  readonly history: AuditTrail
  settings: ProjectSettings
  /** When the grace was set, in milliseconds since the epoch; `undefined` if it never was. */
  graceSetAt: number | undefined
  /** The bulk extensions, as far as they are kept. Those that can be undone are also in the log of the members. */
  readonly bulkExtensions: Ring<BulkExtensionRecord>
  /** When a bulk extension was last made or undone, in milliseconds since the epoch. */
  bulkChangedAt: number
  /** When the first of those was made or undone that no pass through the members has looked at; `undefined` without one. */
  bulkUnseenSince: number | undefined
  /** The next check for members with a date from a bulk extension; `undefined` for never. */
  alarm: number | undefined
}

// How many bulk extensions of a project are listed.
const maxListed = 1000

/**
 * Creates a project.
 *
 * @param history - its empty audit trail
 */
export const makeProject = (id: ProjectId, history: AuditTrail): Project => ({
  id,
  members: makeMembers(),
  webhooks: new Map(),
  history,
  settings: defaultProjectSettings,
  graceSetAt: undefined,
  bulkExtensions: makeRing(maxListed),
  bulkChangedAt: -Infinity,
  bulkUnseenSince: undefined,
  alarm: undefined,
})

/** Returns the date of the newest bulk extension that names one and is not undone. */
const lastBulkEndDate = ({ bulkExtensions }: Project): EndDate | undefined => {
  for (const { change, undone } of bulkExtensions.newestFirst()) {
    if (undone === undefined && change.mode !== "extendBy") return change.endDate
  }
  return undefined
}

/** Returns a project's settings, and how much it has. */
export const summaryOf = (project: Project): ProjectSummary => ({
  id: project.id,
  memberships: project.members.size(),
  webhooks: project.webhooks.size,
  lastBulkEndDate: lastBulkEndDate(project),
  ...project.settings,
})

/** Returns a user's membership, if any. */
export const membershipOf = (
  { id, members, settings }: Project,
  userId: UserId,
): Membership | undefined => {
  const endDate = members.get(userId)
  if (endDate === undefined) return undefined
  const { inDays, keptDay } = members.form(userId)
  const metadata = metadataFromJson(metadataOf(members, userId))
  const pause = members.watched(userId)?.pause
  return { projectId: id, userId, endDate, inDays, keptDay, metadata, pause, ...settings }
}

/** Returns a user's metadata as JSON, which is empty if there is no membership. */
export const metadataOf = (members: Members, userId: UserId): string =>
  members.watched(userId)?.metadata ?? "{}"
