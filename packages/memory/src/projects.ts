/** A project's members, audit trail and next checks. */

import {
  type BulkExample,
  type Heap,
  type Ring,
  lastEndDate,
  makeHeap,
  makeRing,
  makeRoundRobin,
  mostBulkExtensions,
  noAdjustment,
  mostExamples,
} from "@tenure/core/internal"
import {
  type ApiKeyId,
  AuditCursor,
  type AuditRow,
  type BulkChange,
  type BulkExtensionRecord,
  type BulkPreview,
  type DatedMembership,
  EndDate,
  type EventId,
  type Extended,
  type LastAnnouncement,
  type LoggedBulkExtension,
  type Membership,
  type ProjectId,
  type ProjectSummary,
  type StoredWebhook,
  type TimedBulkExtension,
  type UserId,
  type WebhookId,
  adjustmentOf,
  changesOfUser,
  composeAdjustments,
  composeLog,
  composeWith,
  dateSetAt,
  dayOf,
  effectiveEndDate,
  extendingActions,
  metadataFromJson,
} from "@tenure/core/store"

/** A member's fields other than the end date. */
export interface Watched {
  /** The last announcement for the member; `undefined` if there was none. */
  announced: LastAnnouncement | undefined
  /** When to look at the member's end again, in milliseconds since the epoch; `undefined` for never. */
  alarm: number | undefined
  /** As JSON. */
  metadata: string
}

/** A bulk extension that can be undone. */
interface OpenBulkExtension extends TimedBulkExtension {
  /** `undefined` for several that are one now. */
  readonly id: EventId | undefined
  /** The `order` of the last change of one member before it. */
  readonly lastOwn: number
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
  /** Sets a member's end date, at a time. */
  readonly set: (userId: UserId, endDate: EndDate, at: number) => void
  /** Returns when a member got its current end date. */
  readonly dateSetAt: (userId: UserId) => number | undefined
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
  /**
   * Iterates over the members' end dates, or those after one more bulk extension. Later changes of the members are not
   * counted, or only some of them.
   */
  readonly endDates: (change: BulkChange | undefined) => Iterable<EndDate>
  /** Returns the members whose end date passes a test, in no particular order. */
  readonly select: (test: (endDate: EndDate) => boolean) => ReadonlyArray<DatedMembership>
  /** Tells what another log would make of the end dates. */
  readonly preview: (log: ReadonlyArray<LoggedBulkExtension>, now: number) => BulkPreview
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
  /** As that of an `OrderedEndDate`. */
  order: number
  /** As that of an `OwnEndDate`. */
  setAt: number
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
      setAt: Math.max(lastChange(before), lastChange(next)),
      undoneAt: undefined,
    }
    return [...joined.slice(0, -1), one]
  }

  /** Has no more bulk extensions than can be undone. */
  const shorten = (): void => {
    const newest = log.slice(-mostBulkExtensions / 2)
    const joined = log.slice(0, -newest.length).reduce(join, [])
    if (joined.length > mostBulkExtensions / 2) settle(joined)
    else setLog([...joined, ...newest])
  }

  /** Makes the oldest bulk extensions part of the members' own dates. */
  const settle = (settled: ReadonlyArray<OpenBulkExtension>): void => {
    const { order } = settled.at(-1) ?? { order: 0 }
    const oldest = composeLog(settled)
    for (const member of members.values()) {
      if (member.order < order) {
        member.setAt = dateSetAt(settled, member)
        member.endDate = effectiveEndDate(oldest, member)
        member.order = order
      }
    }
    setLog(log.slice(-mostBulkExtensions / 2))
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
        if (test(endDate)) selected.push({ userId, endDate })
      }
      return selected
    },
    set: (userId, endDate, at) => {
      const bulkOrder = log.at(-1)?.order ?? -Infinity
      lastOwn = ++changes
      const member = members.get(userId)
      if (member === undefined) {
        members.set(userId, {
          endDate,
          order: lastOwn,
          setAt: at,
          announced: undefined,
          alarm: undefined,
          metadata: "{}",
        })
        sorted = undefined
      } else {
        // The same date again is no new one.
        if (member.endDate !== endDate || member.order < bulkOrder) member.setAt = at
        member.endDate = endDate
        member.order = lastOwn
      }
    },
    dateSetAt: (userId) => {
      const member = members.get(userId)
      return member && dateSetAt(log, member)
    },
    watched: (userId) => members.get(userId),
    extendAll: (id, change, at) => {
      const made: OpenBulkExtension = {
        id,
        adjustment: adjustmentOf(change),
        order: ++changes,
        isUndone: false,
        lastOwn,
        setAt: at,
        undoneAt: undefined,
      }
      setLog([...log, made])
      if (log.length > mostBulkExtensions) shorten()
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
    preview: (other, now) => {
      const after = composeLog(other)
      const counts = { shortened: 0, reactivated: 0, capped: 0 }
      const examples: Array<BulkExample> = []
      for (const userId of sortedIds()) {
        const member = members.get(userId)
        if (member === undefined) continue
        const endDate = current(member)
        const wouldEnd = effectiveEndDate(after, member)
        if (wouldEnd < endDate) counts.shortened++
        if (endDate <= now && wouldEnd > now) counts.reactivated++
        if (wouldEnd === lastEndDate && endDate < lastEndDate) counts.capped++
        if (wouldEnd !== endDate && examples.length < mostExamples) {
          examples.push({ userId, endDate, wouldEnd })
        }
      }
      return { total: members.size, ...counts, examples }
    },
    delete: (userId) => {
      if (members.delete(userId)) changes++
      sorted = undefined
    },
    endDates: function* (change) {
      const after = composeWith(composed, change)
      // Members may leave and return meanwhile.
      const all = Array.from(members.values())
      for (const member of all) yield effectiveEndDate(after, member)
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
const mostListed = 1000

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
  bulkExtensions: makeRing(mostListed),
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

/** Returns how much a project has. */
export const summaryOf = (project: Project): ProjectSummary => ({
  id: project.id,
  memberships: project.members.size(),
  webhooks: project.webhooks.size,
  lastBulkEndDate: lastBulkEndDate(project),
})

/** Returns a user's membership, if any. */
export const membershipOf = ({ id, members }: Project, userId: UserId): Membership | undefined => {
  const endDate = members.get(userId)
  return endDate === undefined
    ? undefined
    : { projectId: id, userId, endDate, metadata: metadataFromJson(metadataOf(members, userId)) }
}

/** Returns a user's metadata as JSON, which is empty if there is no membership. */
export const metadataOf = (members: Members, userId: UserId): string =>
  members.watched(userId)?.metadata ?? "{}"

/** A row; its cursor is known by how many rows were added after it, and the name by the key. */
type Row = Omit<AuditRow, "cursor" | "keyName">

/** A trail's newest rows. */
export interface AuditTrail {
  /** Its number: no other trail has it, also if its project was deleted and created again. */
  readonly number: number
  readonly rows: Ring<Row>
  /** How many rows were added. */
  count: number
}

/** Creates an empty trail for `capacity` rows. */
export const makeAuditTrail = (number: number, capacity: number): AuditTrail => ({
  number,
  rows: makeRing(capacity),
  count: 0,
})

/** Returns a row's position in a trail; 0, before the first row, for an unknown cursor. */
const placeOf = ({ count, number }: AuditTrail, cursor: AuditCursor): number => {
  const [trail, place = 0] = cursor.split(".").map(Number)
  return trail === number && place <= count ? place : 0
}

// Reading so many takes a few milliseconds.
const mostCounted = 100_000

/** Counts the memberships that were extended by day, from the first day on whose rows are all kept and read. */
export const countExtended = ({ count, rows }: AuditTrail): Extended => {
  const byDay = new Map<number, number>()
  let read = 0
  let oldest = -Infinity
  for (const { action, at } of rows.newestFirst()) {
    if (read === mostCounted) break
    read++
    oldest = dayOf(at)
    if (extendingActions.has(action)) byDay.set(oldest, (byDay.get(oldest) ?? 0) + 1)
  }
  return { byDay, knownFrom: read < count ? oldest + 1 : -Infinity }
}

/** Adds a row. */
export const addRow = (trail: AuditTrail, row: Row): void => {
  trail.rows.push(row)
  trail.count++
}

/**
 * Returns a page from a trail, newest first; with a user, only changes to this user's membership. Empty
 * after an unknown cursor.
 *
 * @param nameOf - returns an API key's name
 */
export const readAuditPage = (
  trail: AuditTrail,
  nameOf: (keyId: ApiKeyId | undefined) => string | undefined,
  user: { readonly id: UserId; readonly isMember: boolean } | undefined,
  { after, limit }: { readonly after?: AuditCursor | undefined; readonly limit: number },
): ReadonlyArray<AuditRow> => {
  const { count, number, rows } = trail
  const all = [...rows.newestFirst()]
    .map((row, age) => ({
      ...row,
      keyName: nameOf(row.origin.keyId),
      cursor: AuditCursor(`${number}.${count - age}`),
    }))
    .toReversed()
  const found = user === undefined ? all : changesOfUser(all, user.id, user.isMember)
  const end = after === undefined ? Infinity : placeOf(trail, after)
  return found
    .filter(({ cursor }) => placeOf(trail, cursor) < end)
    .toReversed()
    .slice(0, limit)
}

/** A member to check. */
export interface AlarmMember {
  readonly project: Project
  readonly userId: UserId
  /** When the first bulk extension was made or undone that this check is for, in milliseconds since the epoch. */
  readonly changedAt: number
}

/** A next check for a member, or for the project. Outdated unless the member or project still has it. */
interface Alarm {
  readonly at: number
  readonly userId: UserId | undefined
}

/** A pass through the members of a project. */
interface Pass extends Pick<AlarmMember, "changedAt"> {
  readonly userIds: Iterator<UserId, unknown>
}

/** A project's next checks. */
interface Agenda {
  readonly alarms: Heap<Alarm>
  /** Above this number, outdated checks are dropped. */
  mostAlarms: number
  /** Members to check in turn, whatever their next checks are. */
  readonly passes: Array<Pass>
}

/**
 * All projects' next checks: when to look at members' end dates. A check may come too early; it then sets the next one. A
 * project's check is for its members with a date from a bulk extension. Nothing is kept before somebody watches.
 */
export interface Alarms {
  /** Starts to watch the projects' end dates, as in `ExpiryStore.watch`. Returns when watching began. */
  readonly watch: (leads: ReadonlyArray<number>, now: number, projects: Iterable<Project>) => number
  /** Ensures a check of a member in time for an end date. */
  readonly arm: (project: Project, userId: UserId, endDate: EndDate) => void
  /**
   * Ensures a check of all members after a bulk extension was made or undone: in time for its end date, or at once.
   *
   * @param at - when that was, in milliseconds since the epoch
   */
  readonly armAll: (project: Project, endDate: EndDate | undefined, at: number) => void
  /** Sets a member's next check. */
  readonly set: (project: Project, userId: UserId, at: number | undefined) => void
  /**
   * Yields the members to check, and clears their next checks: one per project in turn, so that a large
   * project does not delay others.
   */
  readonly due: (now: number) => Generator<AlarmMember>
  /** Returns when the first check is due, or earlier: an outdated check counts. */
  readonly nextAt: () => number
  /** Drops a deleted project's checks. */
  readonly forget: (project: Project) => void
}

interface Watching {
  readonly since: number
  readonly leads: ReadonlyArray<number>
  /** The longest lead so far. */
  readonly longest: number
}

// Up to this number, outdated checks are kept until their time.
const fewAlarms = 64

const ownerOf = (project: Project, userId: UserId | undefined) =>
  userId === undefined ? project : project.members.watched(userId)

const counts = (project: Project, { at, userId }: Alarm): boolean =>
  ownerOf(project, userId)?.alarm === at

/** Drops outdated checks. */
const clean = (project: Project, agenda: Agenda): void => {
  const counting = agenda.alarms.values().filter((alarm) => counts(project, alarm))
  agenda.alarms.clear()
  for (const alarm of counting) agenda.alarms.push(alarm)
  agenda.mostAlarms = Math.max(fewAlarms, 2 * counting.length)
}

/** Creates an empty set. */
export const makeAlarms = (): Alarms => {
  const agendas = new Map<Project, Agenda>()
  // Projects with a check due, and projects with a later one.
  const turns = makeRoundRobin<Project>()
  let watching: Watching | undefined

  const agendaOf = (project: Project): Agenda => {
    const agenda = agendas.get(project) ?? {
      alarms: makeHeap<Alarm>((one, other) => one.at < other.at),
      mostAlarms: fewAlarms,
      passes: [],
    }
    agendas.set(project, agenda)
    return agenda
  }

  const set = (project: Project, userId: UserId | undefined, at: number | undefined): void => {
    const owner = ownerOf(project, userId)
    if (owner === undefined) return
    owner.alarm = at
    if (at === undefined) return
    const agenda = agendaOf(project)
    const first = agenda.alarms.peek()
    agenda.alarms.push({ at, userId })
    if (first === undefined || at < first.at) turns.enqueue(project)
    if (agenda.alarms.size() > agenda.mostAlarms) clean(project, agenda)
  }

  const begin = (project: Project): void => {
    const changedAt = project.bulkUnseenSince ?? project.bulkChangedAt
    agendaOf(project).passes.push({ userIds: project.members.userIds(), changedAt })
    project.bulkUnseenSince = undefined
    turns.enqueue(project)
  }

  const arm = (project: Project, userId: UserId | undefined, endDate: EndDate): void => {
    if (watching === undefined) return
    const at = endDate - watching.longest
    const alarm = ownerOf(project, userId)?.alarm
    if (alarm === undefined || alarm > at) set(project, userId, at)
  }

  /**
   * If all bulk extensions end later, postpones the project's check. Otherwise starts a pass over its
   * members.
   */
  const postponeOrBegin = (project: Project, now: number): void => {
    const earliest = project.members.earliestBulk()
    const at = earliest === undefined ? -Infinity : earliest - (watching?.longest ?? 0)
    set(project, undefined, at > now ? at : undefined)
    if (at <= now) begin(project)
  }

  /** Returns a project's next member to check, if any. */
  const nextOf = (
    project: Project,
    { alarms, passes }: Agenda,
    now: number,
  ): AlarmMember | undefined => {
    const { bulkChangedAt: changedAt } = project
    for (let first = alarms.peek(); first !== undefined && first.at <= now; first = alarms.peek()) {
      alarms.pop()
      if (!counts(project, first)) continue
      if (first.userId !== undefined) return { project, userId: first.userId, changedAt }
      postponeOrBegin(project, now)
    }
    for (let pass = passes[0]; pass !== undefined; pass = passes[0]) {
      const { done, value } = pass.userIds.next()
      if (done !== true) return { project, userId: value, changedAt: pass.changedAt }
      passes.shift()
    }
    return undefined
  }

  return {
    watch: (leads, now, projects) => {
      const before = watching
      // The clock was ahead if it has not yet reached the first call's time.
      const wasAhead = before !== undefined && before.since > now
      const since = before === undefined || wasAhead ? now : before.since
      watching = { since, leads, longest: Math.max(before?.longest ?? 0, ...leads) }
      if (wasAhead || leads.some((lead) => before?.leads.includes(lead) !== true)) {
        for (const project of projects) begin(project)
      }
      return since
    },

    arm,

    armAll: (project, endDate, at) => {
      project.bulkChangedAt = at
      if (watching === undefined) return
      const isDue = project.alarm !== undefined && project.alarm <= at
      // Before that, those whom earlier ones have made active are active still.
      project.bulkUnseenSince = isDue ? (project.bulkUnseenSince ?? at) : at
      if (endDate === undefined) begin(project)
      else arm(project, undefined, endDate)
    },

    set,

    due: function* (now) {
      turns.wake(now)
      for (const project of turns.queue()) {
        const agenda = agendaOf(project)
        const member = nextOf(project, agenda, now)
        if (member === undefined) {
          turns.park(project, agenda.alarms.peek()?.at ?? Infinity)
        } else {
          turns.requeue(project)
          yield member
        }
      }
    },

    nextAt: () => {
      let first = Infinity
      for (const { alarms, passes } of agendas.values()) {
        first = Math.min(first, passes.length > 0 ? -Infinity : (alarms.peek()?.at ?? Infinity))
      }
      return first
    },

    forget: (project) => {
      agendas.delete(project)
      turns.park(project, Infinity)
    },
  }
}
