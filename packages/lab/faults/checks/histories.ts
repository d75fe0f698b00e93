/**
 * What happened to each member, in the order in which it took effect. The audit trail says so, and for
 * erasures, for which it keeps no user, the sequence of their events.
 */

import { groupBy } from "effect/Array"
import type { AuditRow, Event, Operation, Run } from "../history.ts"

/** A change that was made, and the request for it, unless it was made before the run. */
export interface Write {
  readonly row: AuditRow
  /** Repetitions are one request: from the first to the first answer. */
  readonly operation: Operation | undefined
  /** The end date afterwards; `undefined` if the user is no member. */
  readonly after: number | undefined
  readonly ledger: Ledger
}

/** What a member's end date follows from. */
export interface Ledger {
  /** The date that was last set for the member alone; `undefined` if the user is no member. */
  readonly ownDate: number | undefined
  /** The bulk extensions since then that are not undone. */
  readonly bulkExtensions: ReadonlyArray<AuditRow>
}

export const emptyLedger: Ledger = { ownDate: undefined, bulkExtensions: [] }

/** A member, with everything that concerns it, in that order. */
export interface History {
  readonly projectId: string
  readonly userId: string
  readonly order: ReadonlyArray<Write>
}

/** Whether a row tells that an end date was announced. It changes nothing, but found the date that held. */
export const isAnnouncement = ({ action }: AuditRow): boolean =>
  action === "expiring" || action === "overdue" || action === "expired"

/** Whether a row is about all memberships in a project. */
export const isOfAll = ({ action }: AuditRow): boolean => action.startsWith("bulk_")

const writes: ReadonlySet<string> = new Set([
  "extend",
  "extendAll",
  "undo",
  "grant",
  "end",
  "import",
  "erase",
] satisfies ReadonlyArray<Operation["action"]>)

/** Joins attempts at one request: what it did was done before its first answer. */
const joined = (attempts: readonly [Operation, ...ReadonlyArray<Operation>]): Operation => {
  const [first] = attempts
  const answered = attempts.filter(({ status }) => status === 200)
  const open = attempts.find(({ status }) => status === 0 || status === 503)
  const told = answered[0] ?? open ?? attempts.at(-1) ?? first
  return {
    ...told,
    start: Math.min(...attempts.map(({ start }) => start)),
    end: Math.min(...(answered.length > 0 ? answered : [told]).map(({ end }) => end)),
  }
}

const requestOf = (operation: Operation): string => {
  const { action, endDate, idempotencyKey, key, members, projectId, userId } = operation
  return JSON.stringify([key, idempotencyKey, action, projectId, userId, endDate ?? members])
}

/** Returns all requests that change memberships, each with all its repetitions. */
export const requestsOf = ({ operations }: Run): ReadonlyArray<Operation> => {
  const changes = operations.filter(({ action }) => writes.has(action))
  const single = changes.filter(({ idempotencyKey }) => idempotencyKey === undefined)
  const keyed = changes.filter(({ idempotencyKey }) => idempotencyKey !== undefined)
  return [...single, ...Object.values(groupBy(keyed, requestOf)).map(joined)]
}

/** What an operation asks for, and for whom. */
interface Asked {
  readonly operation: Operation
  readonly userId: string | undefined
}

const asksOf = (operation: Operation): ReadonlyArray<readonly [date: number, asked: Asked]> => {
  const { endDate, members = [], userId } = operation
  const all = endDate === undefined ? members : [{ endDate, userId }]
  return all.flatMap((one) =>
    one.endDate === undefined ? [] : [[one.endDate, { operation, userId: one.userId }] as const],
  )
}

/** A row with its request. A date identifies both; what asks for no date is identified by its id. */
interface Joined {
  readonly row: AuditRow
  readonly operation: Operation | undefined
}

/** Joins each row with its request, and gives back the user of rows from which a person was erased. */
export const join = (
  rows: ReadonlyArray<AuditRow>,
  requests: ReadonlyArray<Operation>,
): ReadonlyArray<Joined> => {
  const byDate = new Map(requests.flatMap(asksOf))
  const byId = new Map(requests.map((operation) => [operation.requestId, operation]))
  return rows.map((row) => {
    if (isAnnouncement(row)) return { row, operation: undefined }
    const asked = row.to === undefined ? undefined : byDate.get(row.to)
    const operation =
      asked?.operation ?? (row.requestId === undefined ? undefined : byId.get(row.requestId))
    const userId = row.userId ?? (asked ?? operation)?.userId
    return { row: isOfAll(row) ? row : { ...row, userId }, operation }
  })
}

/** What an event says. */
export const dataOf = ({ body }: Event): Readonly<Record<string, unknown>> => JSON.parse(body).data

/** Returns the sequence that each event tells, by its request's id. */
const sequencesOf = ({ state }: Run): ReadonlyMap<string | undefined, number> =>
  new Map(
    state.events.flatMap((event) => {
      const { request_id: requestId, sequence } = dataOf(event)
      return typeof requestId === "string" && typeof sequence === "number"
        ? [[requestId, sequence] as const]
        : []
    }),
  )

/** Returns the ledger after a change. */
export const entered = (ledger: Ledger, row: AuditRow): Ledger => {
  const { bulkExtensions, ownDate } = ledger
  switch (row.action) {
    case "ended":
    case "person_erased":
      return emptyLedger
    case "expiring":
    case "overdue":
    case "expired":
      return ledger
    case "bulk_extended":
    case "bulk_lengthened":
    case "bulk_extended_by":
      return ownDate === undefined ? ledger : { ownDate, bulkExtensions: [...bulkExtensions, row] }
    case "bulk_undone": {
      const others = bulkExtensions.filter((one) => one.bulkExtensionId !== row.bulkExtensionId)
      return { ownDate, bulkExtensions: others }
    }
    default:
      return { ownDate: row.to, bulkExtensions: [] }
  }
}

const bulkExtended = (date: number, { action, extendBy = 0, to = date }: AuditRow): number => {
  switch (action) {
    case "bulk_extended":
      return to
    case "bulk_lengthened":
      return Math.max(date, to)
    default:
      return date + extendBy
  }
}

/** Returns the end date that follows from a ledger; `undefined` if the user is no member. */
export const endDateOf = ({ bulkExtensions, ownDate }: Ledger): number | undefined =>
  ownDate === undefined ? undefined : bulkExtensions.reduce(bulkExtended, ownDate)

/** Puts erasures between the member's other changes, by their sequences. */
const ordered = (
  rows: ReadonlyArray<Joined>,
  erasures: ReadonlyArray<Joined>,
  sequences: ReadonlyMap<string | undefined, number>,
): ReadonlyArray<Write> => {
  const all = [...rows]
  for (const erasure of erasures) {
    // Without an event, there was nothing to end.
    const sequence = sequences.get(erasure.row.requestId)
    if (sequence === undefined) continue
    // An announcement that has no request follows a change that has one.
    const next = all.findIndex(({ row }) => (sequences.get(row.requestId) ?? 0) > sequence)
    all.splice(next === -1 ? all.length : next, 0, erasure)
  }
  let ledger = emptyLedger
  return all.map(({ operation, row }) => {
    ledger = entered(ledger, row)
    return { row, operation, after: endDateOf(ledger), ledger }
  })
}

const isErasure = ({ row }: Joined): boolean => row.action === "person_erased"

/** What identifies a member. */
export const memberOf = (item: {
  readonly projectId: string
  readonly userId?: string | undefined
}): string => `${item.projectId} ${item.userId}`

/** Returns every member's history. */
export const historiesOf = (run: Run): ReadonlyArray<History> => {
  const sequences = sequencesOf(run)
  const joinedRows = join(run.state.audit, requestsOf(run))
  const projects = Map.groupBy(joinedRows, ({ row }) => row.projectId)
  return [...projects].flatMap(([projectId, rows]) => {
    const userIds = new Set(rows.flatMap(({ row }) => row.userId ?? []))
    return [...userIds].map((userId) => {
      const own = rows.filter(({ row }) => isOfAll(row) || row.userId === userId)
      const order = ordered(
        own.filter((one) => !isErasure(one)),
        own.filter(isErasure),
        sequences,
      )
      return { projectId, userId, order }
    })
  })
}

/** Returns the members that somebody wanted to erase, also in vain. */
export const erasedOf = ({ operations }: Run): ReadonlySet<string> =>
  new Set(operations.filter(({ action }) => action === "erase").map(memberOf))
