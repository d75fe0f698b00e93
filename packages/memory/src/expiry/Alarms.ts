/**
 * The alarms of members and projects: when to look at end dates. An alarm may be too early; whoever looks sets
 * the next one. That of a project is for those of its members who have a date of a bulk extension.
 */

import type { EndDate } from "@tenure/core/EndDate"
import type { UserId } from "@tenure/core/Membership"
import * as Heap from "../collections/Heap.ts"
import * as Turns from "../collections/Turns.ts"
import type { Project } from "../projects/Project.ts"

/** A member of a project. */
export interface Member {
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
  readonly alarms: Heap.Heap<Alarm>
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
  readonly set: (member: Member, at: number | undefined) => void
  /**
   * Goes through the members to look at, who have no alarm then: one of each project in turn, so that no
   * project waits for all members of another.
   */
  readonly due: (now: number) => Generator<Member>
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
export const make = (): Alarms => {
  const agendas = new Map<Project, Agenda>()
  // The projects that may have something to look at, and those whose first alarm is later.
  const turns = Turns.make<Project>()
  let watching: Watching | undefined

  const agendaOf = (project: Project): Agenda => {
    const agenda = agendas.get(project) ?? {
      alarms: Heap.make<Alarm>((one, other) => one.at < other.at),
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
