/** When the next check of a member is due, in memory. */

import { type Heap, makeHeap, makeRoundRobin } from "@tenure/core/internal"
import type { EndDate, UserId } from "@tenure/core/store"
import type { Project } from "./projects.ts"

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
  maxAlarms: number
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
  /** Returns when watching began; `undefined` if it has not. */
  readonly watchedSince: () => number | undefined
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
  agenda.maxAlarms = Math.max(fewAlarms, 2 * counting.length)
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
      maxAlarms: fewAlarms,
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
    if (agenda.alarms.size() > agenda.maxAlarms) clean(project, agenda)
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
    watchedSince: () => watching?.since,
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
