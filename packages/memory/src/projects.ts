/** The end dates of a project's members, and what was announced of them. */

import {
  type ApiKeyId,
  AuditCursor,
  type AuditRow,
  type BulkMode,
  type DatedMembership,
  type EndDate,
  type LastAnnouncement,
  type Membership,
  type OrderedEndDate,
  type ProjectId,
  type ProjectSummary,
  type StoredWebhook,
  type UserId,
  type WebhookId,
  addBulkExtension,
  changesOfUser,
  earliestEndDate,
  effectiveEndDate,
  noBulkExtensions,
} from "@tenure/core/store"
import { type Heap, type Ring, makeHeap, makeRing, makeRoundRobin } from "./collections.ts"

/** What a member has besides an end date. */
interface Watched {
  /** The last announcement of the member's end; `undefined` if there was none. */
  announced: LastAnnouncement | undefined
  /** When to look at the member's end again, in milliseconds since the epoch; `undefined` for never. */
  alarm: number | undefined
}

/** The members of a project. */
export interface Members {
  readonly size: () => number
  /** Returns the number of changes so far, which is the sequence of the last one. */
  readonly changes: () => number
  /** Returns a member's current end date, or `undefined` if the user is no member. */
  readonly get: (userId: UserId) => EndDate | undefined
  readonly set: (userId: UserId, endDate: EndDate) => void
  /** Returns what a member has besides the end date, to be changed in place. */
  readonly watched: (userId: UserId) => Watched | undefined
  /** Extends all members, in constant time. */
  readonly extendAll: (mode: BulkMode, endDate: EndDate) => void
  /** Returns the earliest of the dates that bulk extensions have set, if that is known. */
  readonly earliestBulk: () => EndDate | undefined
  readonly delete: (userId: UserId) => void
  /** Returns the number of members whose current end date passes a test. */
  readonly count: (test: (endDate: EndDate) => boolean) => number
  /** Returns the members whose current end date passes a test, in no particular order. */
  readonly select: (test: (endDate: EndDate) => boolean) => ReadonlyArray<DatedMembership>
  /** Returns all user ids in order. */
  readonly sorted: () => ReadonlyArray<UserId>
  /** Goes through all user ids, whoever joins or leaves meanwhile. */
  readonly userIds: () => Iterator<UserId, unknown>
}

/** A member's own date and what else the member has. */
interface Member extends Watched {
  placed: OrderedEndDate
}

// How many bulk extensions that never shorten are kept before they become members' own dates. Hardly
// anybody has more than one: each of them would have to set an earlier date than the one before.
const mostFloors = 32

/** Makes an empty set of members. */
const makeMembers = (): Members => {
  const members = new Map<UserId, Member>()
  let bulk = noBulkExtensions
  let changes = 0
  let sorted: ReadonlyArray<UserId> | undefined

  const place = (endDate: EndDate): OrderedEndDate => ({ endDate, order: ++changes })

  const current = ({ placed }: Member): EndDate => effectiveEndDate(bulk, placed)

  /** Makes what the bulk extensions have made of each date the member's own. */
  const settle = (): void => {
    for (const member of members.values()) {
      member.placed = { ...member.placed, endDate: current(member) }
    }
    bulk = noBulkExtensions
  }

  return {
    size: () => members.size,
    changes: () => changes,
    get: (userId) => {
      const member = members.get(userId)
      return member && current(member)
    },
    count: (test) => {
      let count = 0
      for (const member of members.values()) if (test(current(member))) count++
      return count
    },
    select: (test) => {
      const selected: Array<DatedMembership> = []
      for (const [userId, member] of members) {
        const endDate = current(member)
        if (test(endDate)) selected.push({ userId, endDate })
      }
      return selected
    },
    set: (userId, endDate) => {
      const placed = place(endDate)
      const member = members.get(userId)
      if (member === undefined) {
        members.set(userId, { placed, announced: undefined, alarm: undefined })
        sorted = undefined
      } else {
        member.placed = placed
      }
    },
    watched: (userId) => members.get(userId),
    extendAll: (mode, endDate) => {
      bulk = addBulkExtension(bulk, mode, place(endDate))
      if (bulk.floors.length > mostFloors) settle()
    },
    earliestBulk: () => earliestEndDate(bulk),
    delete: (userId) => {
      if (members.delete(userId)) changes++
      sorted = undefined
    },
    sorted: () => {
      sorted ??= [...members.keys()].toSorted()
      return sorted
    },
    userIds: () => members.keys(),
  }
}

/** A project: its members, its webhooks and its audit trail. */

/** A project. */
export interface Project {
  readonly id: ProjectId
  readonly members: Members
  readonly webhooks: Map<WebhookId, StoredWebhook>
  readonly history: AuditTrail
  /** The end date of the last bulk extension. */
  lastBulkEndDate: EndDate | undefined
  /** When to look at the members again who have a date of a bulk extension; `undefined` for never. */
  alarm: number | undefined
}

/**
 * Makes a project.
 *
 * @param history - its audit trail, which is empty
 */
export const makeProject = (id: ProjectId, history: AuditTrail): Project => ({
  id,
  members: makeMembers(),
  webhooks: new Map(),
  history,
  lastBulkEndDate: undefined,
  alarm: undefined,
})

/** Returns how much a project has. */
export const summaryOf = ({ id, lastBulkEndDate, members, webhooks }: Project): ProjectSummary => ({
  id,
  memberships: members.size(),
  webhooks: webhooks.size,
  lastBulkEndDate,
})

/** Returns the membership of a user, if there is one. */
export const membershipOf = ({ id, members }: Project, userId: UserId): Membership | undefined => {
  const endDate = members.get(userId)
  return endDate === undefined ? undefined : { projectId: id, userId, endDate }
}

/** An audit trail. */

/** A row; its cursor is known by how many rows were added after it, and the name by the key. */
type Row = Omit<AuditRow, "cursor" | "keyName">

/** The newest rows of a trail. */
export interface AuditTrail {
  /** Its number: no other trail has it, also if its project was deleted and created again. */
  readonly number: number
  readonly rows: Ring<Row>
  /** How many rows were added. */
  count: number
}

/** Makes an empty trail that keeps `capacity` rows. */
export const makeAuditTrail = (number: number, capacity: number): AuditTrail => ({
  number,
  rows: makeRing(capacity),
  count: 0,
})

/** Returns the place of a row in a trail; 0, before which there is no row, for a cursor that no row has had. */
const placeOf = ({ count, number }: AuditTrail, cursor: AuditCursor): number => {
  const [trail, place = 0] = cursor.split(".").map(Number)
  return trail === number && place <= count ? place : 0
}

/** Adds a row. */
export const addRow = (trail: AuditTrail, row: Row): void => {
  trail.rows.push(row)
  trail.count++
}

/**
 * Returns a page of a trail, newest first; with a user, only changes of this one's membership. It is empty after
 * a cursor that no row has.
 *
 * @param nameOf - returns the name of an API key
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

/**
 * The alarms of members and projects: when to look at end dates. An alarm may be too early; whoever looks sets
 * the next one. That of a project is for those of its members who have a date of a bulk extension.
 */

/** A member of a project. */
export interface AlarmMember {
  readonly project: Project
  readonly userId: UserId
}

/** An alarm of a member, or of the project itself. It counts only while that still has it. */
interface Alarm {
  readonly at: number
  readonly userId: UserId | undefined
}

/** What there is to look at in a project. */
interface Agenda {
  readonly alarms: Heap<Alarm>
  /** With more alarms than these, those that do not count any more are dropped. */
  mostAlarms: number
  /** Members to look at whatever their alarms are, one after the other. */
  readonly passes: Array<Iterator<UserId, unknown>>
}

/** The alarms of all projects. Nothing is kept before somebody watches. */
export interface Alarms {
  /** Has the end dates of the projects watched, as `ExpiryStore.watch`. Returns since when they are. */
  readonly watch: (leads: ReadonlyArray<number>, now: number, projects: Iterable<Project>) => number
  /** Sees to it that there is an alarm in time for an end date of a member, or of all members. */
  readonly arm: (project: Project, userId: UserId | undefined, endDate: EndDate) => void
  /** Sets the alarm of a member. */
  readonly set: (member: AlarmMember, at: number | undefined) => void
  /**
   * Goes through the members to look at, who have no alarm then: one of each project in turn, so that no
   * project waits for all members of another.
   */
  readonly due: (now: number) => Generator<AlarmMember>
  /** Drops the alarms of a project that was deleted. */
  readonly forget: (project: Project) => void
}

/** What is watched for. */
interface Watching {
  readonly since: number
  readonly leads: ReadonlyArray<number>
  /** The longest of all leads so far. */
  readonly longest: number
}

// Up to this number, alarms that do not count any more are kept until their time.
const fewAlarms = 64

const ownerOf = (project: Project, userId: UserId | undefined) =>
  userId === undefined ? project : project.members.watched(userId)

const counts = (project: Project, { at, userId }: Alarm): boolean =>
  ownerOf(project, userId)?.alarm === at

/** Drops the alarms that do not count. */
const clean = (project: Project, agenda: Agenda): void => {
  const counting = agenda.alarms.values().filter((alarm) => counts(project, alarm))
  agenda.alarms.clear()
  for (const alarm of counting) agenda.alarms.push(alarm)
  agenda.mostAlarms = Math.max(fewAlarms, 2 * counting.length)
}

/** Makes an empty set of alarms. */
export const makeAlarms = (): Alarms => {
  const agendas = new Map<Project, Agenda>()
  // The projects that may have something to look at, and those whose first alarm is later.
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
    agendaOf(project).passes.push(project.members.userIds())
    turns.enqueue(project)
  }

  /** Postpones the alarm of a project if all of its bulk extensions are later. Otherwise begins a pass. */
  const postponeOrBegin = (project: Project, now: number): void => {
    const earliest = project.members.earliestBulk()
    const at = earliest === undefined ? -Infinity : earliest - (watching?.longest ?? 0)
    set(project, undefined, at > now ? at : undefined)
    if (at <= now) begin(project)
  }

  /** Returns the next member of a project to look at, if there is one. */
  const nextOf = (project: Project, { alarms, passes }: Agenda, now: number) => {
    for (let first = alarms.peek(); first !== undefined && first.at <= now; first = alarms.peek()) {
      alarms.pop()
      if (!counts(project, first)) continue
      if (first.userId !== undefined) return first.userId
      postponeOrBegin(project, now)
    }
    for (let pass = passes[0]; pass !== undefined; pass = passes[0]) {
      const { done, value } = pass.next()
      if (done !== true) return value
      passes.shift()
    }
    return undefined
  }

  return {
    watch: (leads, now, projects) => {
      const before = watching
      // The clock was ahead, if it has not come to the time of the first call.
      const wasAhead = before !== undefined && before.since > now
      const since = before === undefined || wasAhead ? now : before.since
      watching = { since, leads, longest: Math.max(before?.longest ?? 0, ...leads) }
      if (wasAhead || leads.some((lead) => before?.leads.includes(lead) !== true)) {
        for (const project of projects) begin(project)
      }
      return since
    },

    arm: (project, userId, endDate) => {
      if (watching === undefined) return
      const at = endDate - watching.longest
      const alarm = ownerOf(project, userId)?.alarm
      if (alarm === undefined || alarm > at) set(project, userId, at)
    },

    set: ({ project, userId }, at) => set(project, userId, at),

    due: function* (now) {
      turns.wake(now)
      for (const project of turns.queue()) {
        const agenda = agendaOf(project)
        const userId = nextOf(project, agenda, now)
        if (userId === undefined) {
          turns.park(project, agenda.alarms.peek()?.at ?? Infinity)
        } else {
          turns.requeue(project)
          yield { project, userId }
        }
      }
    },

    forget: (project) => {
      agendas.delete(project)
      turns.park(project, Infinity)
    },
  }
}
