/**
 * The alarms of members and projects: when to look at end dates. An alarm may be too early; whoever looks sets
 * the next one. That of a project is for those of its members who have a date of a bulk extension.
 */

import type { EndDate } from "@tenure/core/EndDate"
import type { UserId } from "@tenure/core/Membership"
import * as Heap from "../collections/Heap.ts"
import type { Project } from "../projects/Project.ts"

/** A member of a project. */
export interface Member {
  readonly project: Project
  readonly userId: UserId
}

/** An alarm of a member, or of a project. It counts only while that still has it. */
interface Alarm {
  readonly at: number
  readonly project: Project
  readonly userId: UserId | undefined
}

/** The members of a project who are to be looked at, one after the other. */
interface Pass {
  readonly project: Project
  readonly userIds: Iterator<UserId, unknown>
}

/** The alarms of all projects. Nothing is kept before somebody watches. */
export interface Alarms {
  /** Has the end dates of the projects watched from `now` on. Returns since when they are. */
  readonly watch: (longest: number, now: number, projects: Iterable<Project>) => number
  /** Sees to it that there is an alarm in time for an end date of a member, or of all members. */
  readonly arm: (project: Project, userId: UserId | undefined, endDate: EndDate) => void
  /** Sets the alarm of a member. */
  readonly set: (member: Member, at: number | undefined) => void
  /** Goes through the members to look at, who have no alarm then. */
  readonly due: (now: number) => Generator<Member>
  /** How many alarms are kept, with those that do not count any more. */
  readonly size: () => number
}

const over = { done: true, value: undefined } as const

// Below this number, alarms that do not count any more are kept until their time.
const fewAlarms = 1024

/**
 * Makes an empty set of alarms.
 *
 * @param exists - tells whether a project was not deleted
 */
export const make = (exists: (project: Project) => boolean): Alarms => {
  const alarms = Heap.make<Alarm>((one, other) => one.at < other.at)
  const passes: Array<Pass> = []
  let watching: { readonly since: number; readonly longest: number } | undefined
  let mostAlarms = fewAlarms

  /** Returns what has the alarm: the member, or the project. */
  const ownerOf = ({ project, userId }: Omit<Alarm, "at">) =>
    userId === undefined ? project : project.members.watched(userId)

  const counts = (alarm: Alarm): boolean =>
    exists(alarm.project) && ownerOf(alarm)?.alarm === alarm.at

  /** Drops the alarms that do not count. */
  const clean = (): void => {
    const counting = alarms.values().filter(counts)
    alarms.clear()
    for (const alarm of counting) alarms.push(alarm)
    mostAlarms = Math.max(fewAlarms, 2 * counting.length)
  }

  const set = (of: Omit<Alarm, "at">, at: number | undefined): void => {
    const owner = ownerOf(of)
    if (owner === undefined) return
    owner.alarm = at
    if (at === undefined) return
    alarms.push({ ...of, at })
    if (alarms.size() > mostAlarms) clean()
  }

  const begin = (project: Project): void => {
    passes.push({ project, userIds: project.members.userIds() })
  }

  /** Postpones the alarm of a project if all of its bulk extensions are later. Otherwise begins a pass. */
  const turn = (project: Project, now: number, longest: number): void => {
    const earliest = project.members.earliestBulk()
    const isLater = earliest !== undefined && earliest - longest > now
    set({ project, userId: undefined }, isLater ? earliest - longest : undefined)
    if (!isLater) begin(project)
  }

  return {
    watch: (longest, now, projects) => {
      if (watching === undefined || watching.longest < longest) {
        watching = { since: watching?.since ?? now, longest }
        for (const project of projects) begin(project)
      }
      return watching.since
    },

    arm: (project, userId, endDate) => {
      if (watching === undefined) return
      const at = endDate - watching.longest
      const of = { project, userId }
      const alarm = ownerOf(of)?.alarm
      if (alarm === undefined || alarm > at) set(of, at)
    },

    set,

    due: function* (now) {
      for (
        let first = alarms.peek();
        first !== undefined && first.at <= now;
        first = alarms.peek()
      ) {
        alarms.pop()
        if (!counts(first)) continue
        const { project, userId } = first
        if (userId === undefined) turn(project, now, watching?.longest ?? 0)
        else yield { project, userId }
      }
      for (let pass = passes[0]; pass !== undefined; pass = passes[0]) {
        const { done, value } = exists(pass.project) ? pass.userIds.next() : over
        if (done !== true) yield { project: pass.project, userId: value }
        else passes.shift()
      }
    },

    size: alarms.size,
  }
}
