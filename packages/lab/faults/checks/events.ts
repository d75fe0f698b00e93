/**
 * One event for one change: none is lost, doubled or invented. One change for one idempotency key, and no trace left by a
 * person who was erased.
 */

import { knownEventTypes } from "@tenure/core/store"
import { groupBy } from "effect/Array"
import type { AuditRow, Check, Event as StoredEvent, Finding, Operation, Run } from "../history.ts"
import { dataOf, erasedOf, isAnnouncement, join, memberOf, requestsOf } from "./histories.ts"

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
  overdue: knownEventTypes.overdue,
  expired: knownEventTypes.expired,
  person_erased: knownEventTypes.ended,
}

const membershipTypes = new Set(Object.values(typeOf))

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

/** What an event tells about a change, as text. */
const tellsOf = (event: StoredEvent, show: Show): string => {
  const { projectId, type } = event
  const data = dataOf(event)
  const date = data["new_end_date"] ?? data["end_date"]
  const user = show(projectId, data["user_id"])
  return JSON.stringify([
    projectId,
    type,
    user,
    date,
    data["mode"],
    data["request_id"],
    data["total"],
  ])
}

/** What a change's event has to tell. */
const expectedOf = (row: AuditRow, show: Show) => {
  const { action, projectId, requestId, to, userId } = row
  const date = to === undefined ? undefined : new Date(to).toISOString()
  const mode = modes[action]
  const id = isAnnouncement(row) ? undefined : (requestId ?? null)
  const user = show(projectId, userId)
  return JSON.stringify([projectId, typeOf[action], user, date, mode, id, undefined])
}

/** What an import's event has to tell. */
const expectedOfImport = (projectId: string, requestId: string | undefined, total: number) => {
  const none = [undefined, undefined, undefined]
  return JSON.stringify([projectId, knownEventTypes.imported, ...none, requestId, total])
}

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

export const events: Check = {
  name: "one event for one change",
  find: (run) => [...findOfChanges(run), ...findOfPublications(run)],
}

const isBefore = (erasure: Operation, change: Operation | undefined): boolean =>
  change !== undefined && change.status === 200 && change.end < erasure.start

const findErased = (run: Run): ReadonlyArray<Finding> => {
  const requests = requestsOf(run)
  const rows = join(run.state.audit, requests)
  const byId = new Map(
    run.operations.flatMap((operation) =>
      operation.requestId === undefined ? [] : [[operation.requestId, operation] as const],
    ),
  )
  const named = run.state.events.flatMap((event) => {
    const { request_id: requestId, user_id: userId } = dataOf(event)
    const { id, projectId } = event
    const change = byId.get(String(requestId))
    return typeof userId === "string" ? [{ id, projectId, userId, change }] : []
  })
  const eventsOf = groupBy(named, memberOf)
  const rowsOf = groupBy(
    run.state.audit.map((row, index) => ({ ...row, change: rows[index]?.operation })),
    memberOf,
  )
  return run.operations
    .filter(({ action, status }) => action === "erase" && status === 200)
    .flatMap((erasure) => {
      const who = `${erasure.userId} of ${erasure.projectId}, who was erased`
      return [
        ...(rowsOf[memberOf(erasure)] ?? [])
          .filter(({ change }) => isBefore(erasure, change))
          .map(({ action }) => ({ text: `a row "${action}" names ${who}`, at: erasure.end })),
        ...(eventsOf[memberOf(erasure)] ?? [])
          .filter(({ change }) => isBefore(erasure, change))
          .map(({ id }) => ({ text: `the event ${id} names ${who}`, at: erasure.end })),
      ]
    })
}

export const erasures: Check = { name: "who is erased is named nowhere", find: findErased }

const keyOf = ({ idempotencyKey, key }: Operation): string => `${idempotencyKey} of ${key}`

/** Finds keys with which several requests were carried out. */
const findSeveral = (run: Run): ReadonlyArray<Finding> => {
  const requests = requestsOf(run).filter(({ idempotencyKey }) => idempotencyKey !== undefined)
  const done = new Set(join(run.state.audit, requests).map(({ operation }) => operation))
  return Object.entries(groupBy(requests, keyOf)).flatMap(([key, all]) => {
    const made = all.filter((request) => done.has(request))
    const [first, second] = made
    if (first === undefined || second === undefined) return []
    const projects = made.map(({ projectId }) => projectId).join(" and ")
    return [{ text: `with the key ${key}, changes were made in ${projects}`, at: first.end }]
  })
}

/** Finds that several answers say that they are the first to their key. */
const findFirst = ({ operations }: Run): ReadonlyArray<Finding> => {
  const first = operations.filter(
    ({ idempotencyKey, isReplayed, status }) =>
      idempotencyKey !== undefined && status === 200 && isReplayed !== true,
  )
  return Object.entries(groupBy(first, keyOf)).flatMap(([key, all]) =>
    all.length < 2
      ? []
      : [{ text: `${all.length} answers with the key ${key} are no repetition`, at: all[0].end }],
  )
}

export const repetitions: Check = {
  name: "one change for one idempotency key",
  find: (run) => [...findSeveral(run), ...findFirst(run)],
}
