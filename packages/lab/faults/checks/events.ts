/** One event for one change: none is lost, doubled or invented. */

import { knownEventTypes } from "@tenure/core/store"
import type { AuditRow, Check, Event as StoredEvent, Run } from "../history.ts"
import { erasedOf, memberOf } from "./histories.ts"

type Finding = ReturnType<Check["find"]>[number]

const typeOf: Readonly<Record<string, string>> = {
  granted: knownEventTypes.granted,
  imported: knownEventTypes.imported,
  extended: knownEventTypes.extended,
  bulk_extended: knownEventTypes.bulkExtended,
  bulk_lengthened: knownEventTypes.bulkExtended,
  bulk_extended_by: knownEventTypes.bulkExtended,
  bulk_undone: knownEventTypes.extensionUndone,
  ended: knownEventTypes.ended,
  expiring: knownEventTypes.expiring,
  expired: knownEventTypes.expired,
  person_erased: knownEventTypes.ended,
}

const membershipTypes = new Set(Object.values(typeOf))

const dataOf = ({ body }: StoredEvent): Readonly<Record<string, unknown>> => JSON.parse(body).data

const countBy = <A, K>(items: ReadonlyArray<A>, key: (item: A) => K): ReadonlyMap<K, number> => {
  const counts = new Map<K, number>()
  for (const item of items) counts.set(key(item), 1 + (counts.get(key(item)) ?? 0))
  return counts
}

/** Shows a user, unless somebody wanted to erase it: the trail, the event or both may name it then. */
type Show = (projectId: string, userId: unknown) => string | undefined

const modes: Readonly<Record<string, string>> = {
  bulk_lengthened: "never_shorten",
  bulk_extended_by: "extend_by",
}

/** What an event tells of a change, as text. */
const tellsOf = (event: StoredEvent, show: Show): string => {
  const {
    end_date,
    mode,
    new_end_date: date = end_date,
    request_id,
    total,
    user_id,
  } = dataOf(event)
  const { projectId, type } = event
  return JSON.stringify([projectId, type, show(projectId, user_id), date, mode, request_id, total])
}

/** What the event of a change has to tell. */
const expectedOf = ({ action, projectId, requestId, to, userId }: AuditRow, show: Show) => {
  const date = to === undefined ? undefined : new Date(to).toISOString()
  const mode = modes[action]
  const isAnnounced = action === "expiring" || action === "expired"
  const id = isAnnounced ? undefined : (requestId ?? null)
  return JSON.stringify([
    projectId,
    typeOf[action],
    show(projectId, userId),
    date,
    mode,
    id,
    undefined,
  ])
}

/** What the event of an import of so many memberships has to tell. */
const expectedOfImport = (projectId: string, requestId: string | undefined, total: number) =>
  JSON.stringify([
    projectId,
    knownEventTypes.imported,
    undefined,
    undefined,
    undefined,
    requestId,
    total,
  ])

const findOfChanges = (run: Run): ReadonlyArray<Finding> => {
  const { audit, events } = run.state
  const erased = erasedOf(run)
  const show: Show = (projectId, userId) =>
    typeof userId === "string" && !erased.has(memberOf({ projectId, userId })) ? userId : undefined
  const imports = audit.filter(({ action }) => action === "imported")
  const totals = countBy(imports, ({ requestId }) => requestId)
  const projectsOf = new Map(imports.map(({ projectId, requestId }) => [requestId, projectId]))
  const expected = countBy(
    [
      ...audit.filter(({ action }) => action !== "imported").map((row) => expectedOf(row, show)),
      ...[...totals].map(([requestId, total]) =>
        expectedOfImport(projectsOf.get(requestId) ?? "", requestId, total),
      ),
    ],
    (text) => text,
  )
  // An erasure has an event only if there was a membership.
  const optional = new Set(
    audit.filter(({ action }) => action === "person_erased").map((row) => expectedOf(row, show)),
  )
  const told = countBy(
    events.filter(({ type }) => membershipTypes.has(type)),
    (event) => tellsOf(event, show),
  )
  return [...new Set([...expected.keys(), ...told.keys()])].flatMap((text) => {
    const changes = expected.get(text) ?? 0
    const count = told.get(text) ?? 0
    const isRight = count === changes || (count === 0 && optional.has(text))
    return isRight ? [] : [{ text: `${count} events for ${changes} changes: ${text}` }]
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
