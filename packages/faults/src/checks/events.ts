/** One event for one change: none is lost, doubled or invented. */

import * as Event from "@tenure/core/Event"
import type { AuditRow, Check, Event as StoredEvent, Run } from "../history.ts"

type Finding = ReturnType<Check["find"]>[number]

const typeOf: Readonly<Record<string, string>> = {
  granted: Event.types.granted,
  extended: Event.types.extended,
  bulk_extended: Event.types.bulkExtended,
  bulk_lengthened: Event.types.bulkExtended,
  ended: Event.types.ended,
  expiring: Event.types.expiring,
  expired: Event.types.expired,
}

const membershipTypes = new Set(Object.values(typeOf))

const dataOf = ({ body }: StoredEvent): Readonly<Record<string, unknown>> => JSON.parse(body).data

/** What an event tells of a change, as text. */
const tellsOf = (event: StoredEvent): string => {
  const { end_date, new_end_date: date = end_date, request_id, user_id: userId } = dataOf(event)
  return JSON.stringify([event.projectId, event.type, userId, date, request_id ?? null])
}

/** What the event of a change has to tell. */
const expectedOf = ({ action, projectId, requestId, to, userId }: AuditRow): string =>
  JSON.stringify([
    projectId,
    typeOf[action],
    userId,
    to === undefined ? undefined : new Date(to).toISOString(),
    requestId ?? null,
  ])

const countBy = <A>(items: ReadonlyArray<A>, key: (item: A) => string): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(key(item), 1 + (counts.get(key(item)) ?? 0))
  return counts
}

const findOfChanges = ({ state }: Run): ReadonlyArray<Finding> => {
  const changes = countBy(state.audit, expectedOf)
  const events = countBy(
    state.events.filter(({ type }) => membershipTypes.has(type)),
    tellsOf,
  )
  return [...new Set([...changes.keys(), ...events.keys()])].flatMap((told) => {
    const rows = changes.get(told) ?? 0
    const count = events.get(told) ?? 0
    return rows === count ? [] : [{ text: `${count} events for ${rows} changes: ${told}` }]
  })
}

const findOfPublications = ({ operations, state }: Run): ReadonlyArray<Finding> => {
  const counts = countBy(
    state.events.filter(({ type }) => type === "payment.completed"),
    (event) => String(dataOf(event)["payment"]),
  )
  return operations
    .filter(({ action }) => action === "publish")
    .flatMap(({ end, status, subject = "" }) => {
      const count = counts.get(subject) ?? 0
      const isRight = count === 1 || (count === 0 && status !== 200)
      const text = `payment ${subject}, answered ${status}, has ${count} events`
      return isRight ? [] : [{ text, at: end }]
    })
}

/** Checks events. */
export const events: Check = {
  name: "one event for one change",
  find: (run) => [...findOfChanges(run), ...findOfPublications(run)],
}
