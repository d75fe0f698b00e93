/** Falsified end dates and events. */

import { announcements, announcementsOf } from "../checks/announcements.ts"
import { endDates } from "../checks/endDates.ts"
import { events } from "../checks/events.ts"
import type { Run } from "../history.ts"
import { hour, replace, wanted, withOperation, withState, type Sabotage } from "./Sabotage.ts"

/** An extension that was answered, and its row. */
const extension = ({ operations, state }: Run) => {
  const operation = wanted(
    operations.find(({ action, status }) => action === "extend" && status === 200),
  )
  return { operation, row: wanted(state.audit.find(({ to }) => to === operation.endDate)) }
}

/** Two answered changes of one member, of which the second one found what the first one had set. */
const succession = ({ operations, state }: Run) => {
  const asked = new Map(
    operations
      .filter(({ action, status }) => status === 200 && (action === "extend" || action === "grant"))
      .map((operation) => [operation.endDate, operation]),
  )
  const pairs = state.audit.flatMap((row) => {
    const first = row.userId === undefined ? undefined : asked.get(row.from)
    const second = asked.get(row.to)
    const isOwn = first?.userId === row.userId && second?.userId === row.userId
    // An announcement finds and leaves the same date.
    const isOther = first !== undefined && second !== undefined && first !== second
    return isOther && isOwn ? [{ first, second, row }] : []
  })
  return wanted(pairs[0])
}

const publication = ({ operations, state }: Run) => {
  const { subject } = wanted(
    operations.find(({ action, status }) => action === "publish" && status === 200),
  )
  return wanted(state.events.find(({ body }) => body.includes(`"payment":"${subject}"`)))
}

const membershipEvent = ({ state }: Run) =>
  wanted(state.events.find(({ type }) => type === "membership.extended"))

/** The announcement of the last end of a membership. */
const announcement = (run: Run) =>
  wanted(
    announcementsOf(run).find(
      ({ endDate, event: { projectId }, lead, userId }) =>
        lead === 0 &&
        run.state.memberships.some(
          (one) => one.projectId === projectId && one.userId === userId && one.endDate === endDate,
        ),
    ),
  )

/** Changes the text of its event. */
const withAnnouncement = (run: Run, pattern: RegExp, by: string): Run => {
  const { event } = announcement(run)
  const body = event.body.replace(pattern, by)
  return withState(run, { events: replace(run.state.events, event, { ...event, body }) })
}

/** Falsified end dates and events. */
export const ofChanges: ReadonlyArray<Sabotage> = [
  {
    name: "an answered extension is lost",
    check: endDates,
    spoil: (run) => withState(run, { audit: replace(run.state.audit, extension(run).row) }),
  },
  {
    name: "an extension is made twice",
    check: endDates,
    spoil: (run) => {
      const { row } = extension(run)
      return withState(run, { audit: replace(run.state.audit, row, row, row) })
    },
  },
  {
    name: "a refused extension is made",
    check: endDates,
    spoil: (run) => {
      const { operation } = extension(run)
      return withOperation(run, operation, { ...operation, status: 422 })
    },
  },
  {
    name: "an extension overwrites what it has not seen",
    check: endDates,
    spoil: (run) => {
      const { first, row } = succession(run)
      const from = run.state.audit.find(({ to }) => to === first.endDate)?.from
      return withState(run, { audit: replace(run.state.audit, row, { ...row, from }) })
    },
  },
  {
    name: "an extension takes effect before one that was answered earlier",
    check: endDates,
    spoil: (run) => {
      const { first, second } = succession(run)
      const moved = { ...second, start: first.start - 2000, end: first.start - 1000 }
      return withOperation(run, second, moved)
    },
  },
  {
    name: "a membership ends with another date",
    check: endDates,
    spoil: (run) => {
      const membership = wanted(run.state.memberships[0])
      const by = { ...membership, endDate: membership.endDate + 1 }
      return withState(run, { memberships: replace(run.state.memberships, membership, by) })
    },
  },
  {
    name: "a date is found that was overwritten",
    check: endDates,
    spoil: (run) => {
      const { first, second } = succession(run)
      const at = second.end + hour
      const stale = { ...first, action: "find", start: at, end: at } as const
      return { ...run, operations: [...run.operations, stale] }
    },
  },
  {
    name: "a change has no event",
    check: events,
    spoil: (run) => withState(run, { events: replace(run.state.events, membershipEvent(run)) }),
  },
  {
    name: "a change has two events",
    check: events,
    spoil: (run) => {
      const event = membershipEvent(run)
      return withState(run, { events: [...run.state.events, { ...event, id: `${event.id}-2` }] })
    },
  },
  {
    name: "an event tells another date",
    check: events,
    spoil: (run) => {
      const event = membershipEvent(run)
      const body = event.body.replace(/"new_end_date":"[^"]*"/, '"new_end_date":"never"')
      return withState(run, { events: replace(run.state.events, event, { ...event, body }) })
    },
  },
  {
    name: "a published event is lost",
    check: events,
    spoil: (run) => withState(run, { events: replace(run.state.events, publication(run)) }),
  },
  {
    name: "an end is not announced",
    check: announcements,
    spoil: (run) => withState(run, { events: replace(run.state.events, announcement(run).event) }),
  },
  {
    name: "an end is announced twice",
    check: announcements,
    spoil: (run) => {
      const { event } = announcement(run)
      return withState(run, { events: [...run.state.events, { ...event, id: `${event.id}-2` }] })
    },
  },
  {
    name: "an end is announced for a date that did not hold",
    check: announcements,
    spoil: (run) =>
      withAnnouncement(run, /"end_date":"[^"]*"/, '"end_date":"2000-01-01T00:00:00.000Z"'),
  },
  {
    name: "an end is announced before it has come",
    check: announcements,
    spoil: (run) =>
      withAnnouncement(run, /"timestamp":"[^"]*"/, '"timestamp":"2000-01-01T00:00:00.000Z"'),
  },
  {
    name: "an end is announced late",
    check: announcements,
    spoil: (run) =>
      withAnnouncement(run, /"timestamp":"[^"]*"/, '"timestamp":"2199-01-01T00:00:00.000Z"'),
  },
  {
    name: "a reminder comes when a shorter one has come, too",
    check: announcements,
    spoil: (run) => {
      const [longest = 0] = run.leads
      return withAnnouncement(run, /"sequence"/, `"reminder":${longest / 1000},"sequence"`)
    },
  },
]
