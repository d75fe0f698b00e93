/** Falsified end dates and events. */

import { announcements, announcementsOf } from "../checks/announcements.ts"
import { endDates } from "../checks/end-dates.ts"
import { erasures } from "../checks/erasures.ts"
import { events } from "../checks/events.ts"
import { repetitions } from "../checks/repetitions.ts"
import type { Operation, Run } from "../history.ts"
import { type Sabotage, hour, replace, wanted, withOperation, withState } from "./sabotage.ts"

/** Whether an answer is the first to its request. */
const isFirst = ({ isReplayed, status }: Operation): boolean =>
  status === 200 && isReplayed !== true

/** An extension that was answered and not repeated, and its row. */
const extension = ({ operations, state }: Run) => {
  const operation = wanted(
    operations.find(
      ({ action, idempotencyKey, status }) =>
        action === "extend" && status === 200 && idempotencyKey === undefined,
    ),
  )
  return { operation, row: wanted(state.audit.find(({ to }) => to === operation.endDate)) }
}

/** Two answered changes of one member, of which the second one found what the first one had set. */
const succession = ({ operations, state }: Run) => {
  const asked = new Map(
    operations
      .filter(
        ({ action, idempotencyKey, status }) =>
          status === 200 &&
          idempotencyKey === undefined &&
          (action === "extend" || action === "grant"),
      )
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
    name: "two requests with one idempotency key are carried out",
    check: repetitions,
    spoil: (run) => {
      const { operation } = wanted(
        run.operations.flatMap((one) =>
          one.status === 200 && one.idempotencyKey !== undefined ? [{ operation: one }] : [],
        )[0],
      )
      const { operation: other } = extension(run)
      const again = { ...other, key: operation.key, idempotencyKey: operation.idempotencyKey }
      return withOperation(run, other, { ...again, isReplayed: true })
    },
  },
  {
    name: "a repetition is carried out again",
    check: repetitions,
    spoil: (run) => {
      // The first answer may have been lost.
      const replayed = wanted(
        run.operations.find(
          ({ idempotencyKey, isReplayed, key }) =>
            isReplayed === true &&
            run.operations.some(
              (one) => isFirst(one) && one.idempotencyKey === idempotencyKey && one.key === key,
            ),
        ),
      )
      return withOperation(run, replayed, { ...replayed, isReplayed: false })
    },
  },
  {
    name: "the audit trail names somebody who was erased",
    check: erasures,
    spoil: (run) => {
      const granting = run.operations.filter(
        ({ action, status }) => status === 200 && (action === "grant" || action === "import"),
      )
      const [row, userId] = wanted(
        run.operations
          .filter(({ action, status }) => action === "erase" && status === 200)
          .flatMap((erasure) =>
            granting
              .filter(
                ({ end, projectId }) => end < erasure.start && projectId === erasure.projectId,
              )
              .flatMap(({ endDate, members = [], userId: ofOne }) =>
                [...members, { endDate, userId: ofOne }]
                  .filter((one) => one.userId === erasure.userId)
                  .flatMap((one) => run.state.audit.filter(({ to }) => to === one.endDate)),
              )
              .map((one) => [one, erasure.userId] as const),
          )[0],
      )
      return withState(run, { audit: replace(run.state.audit, row, { ...row, userId }) })
    },
  },
  {
    name: "a change has no event",
    check: events,
    spoil: (run) => withState(run, { events: replace(run.state.events, membershipEvent(run)) }),
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
]
