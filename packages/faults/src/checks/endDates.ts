/**
 * End dates are linearizable: each change took effect at one instant between its request and its
 * answer. The audit trail is the witness: it says which changes were made, in which order, and what each
 * of them found.
 */

import type { AuditRow, Check, Operation, Run } from "../history.ts"

/** A change that was made, and the operation that asked for it, unless it was made before the run. */
export interface Write {
  readonly row: AuditRow
  readonly operation: Operation | undefined
}

/** Whether a row tells that an end date was announced. It changes nothing, but found the date that held. */
export const isAnnouncement = ({ action }: AuditRow): boolean =>
  action === "expiring" || action === "expired"

type Finding = ReturnType<Check["find"]>[number]

/** Shows an end date. */
export const dateText = (date: number | undefined): string =>
  date === undefined ? "nothing" : new Date(date).toISOString()

/** Shows a change. */
export const describe = ({ operation, row }: Write): string =>
  `${row.action} ${row.userId ?? "all"} of ${row.projectId} to ${dateText(row.to)}` +
  (operation === undefined ? "" : ` (asked at ${operation.start.toFixed(0)})`)

const memberOf = (item: {
  readonly projectId: string
  readonly userId?: string | undefined
}): string => `${item.projectId} ${item.userId}`

const isWrite = ({ action }: Operation): boolean =>
  action === "extend" || action === "extendAll" || action === "grant" || action === "end"

const keyOf = (action: string, userId: string | undefined, date: number | undefined): string =>
  action === "ended" || action === "end" ? `end ${userId}` : String(date)

/**
 * Joins each row with its operation. A date identifies both; the end of a membership, which is granted
 * and ended once, its user. Nobody asks for announcements.
 */
const join = ({ operations, state }: Run): ReadonlyArray<Write> => {
  const asked = new Map(
    operations
      .filter(isWrite)
      .map((operation) => [
        keyOf(operation.action, operation.userId, operation.endDate),
        operation,
      ]),
  )
  return state.audit.map((row) => {
    const key = keyOf(row.action, row.userId, row.to)
    return { row, operation: isAnnouncement(row) ? undefined : asked.get(key) }
  })
}

/** A member, with everything that concerns it in the audit trail, in that order. */
export interface History {
  readonly projectId: string
  readonly userId: string
  readonly order: ReadonlyArray<Write>
}

const historiesIn = (writes: ReadonlyArray<Write>): ReadonlyArray<History> => {
  const members = new Map(
    writes.flatMap(({ row: { projectId, userId } }) =>
      userId === undefined ? [] : [[memberOf({ projectId, userId }), { projectId, userId }]],
    ),
  )
  return [...members.values()].map(({ projectId, userId }) => ({
    projectId,
    userId,
    order: writes.filter(
      ({ row }) =>
        row.projectId === projectId && (row.userId === undefined || row.userId === userId),
    ),
  }))
}

/** Returns the history of every member that there was. */
export const historiesOf = (run: Run): ReadonlyArray<History> => historiesIn(join(run))

/** Finds answered changes without exactly one row, and rows of changes that were refused. */
const findMissing = (run: Run, writes: ReadonlyArray<Write>): ReadonlyArray<Finding> => {
  const counts = new Map<Operation, number>()
  for (const { operation } of writes) {
    if (operation !== undefined) counts.set(operation, 1 + (counts.get(operation) ?? 0))
  }
  return run.operations.filter(isWrite).flatMap((operation) => {
    const count = counts.get(operation) ?? 0
    const { action, end, endDate, process, status, userId } = operation
    const isDone = status === 200
    const isOpen = status === 0 || status === 503
    if (count === 1 ? isDone || isOpen : count === 0 && !isDone) return []
    const what = `${action} ${userId ?? "all"} to ${dateText(endDate)} at ${process}`
    return [{ text: `${what} was answered ${status}, and has ${count} audit rows`, at: end }]
  })
}

/** Finds changes that did not find what the one before them had set. */
const findUnseen = (order: ReadonlyArray<Write>): ReadonlyArray<Finding> => {
  let isMember = false
  let date: number | undefined
  return order.flatMap((write) => {
    const { action, from, to, userId } = write.row
    const expected = date
    if (userId !== undefined) isMember = action !== "ended"
    if (isMember) date = to
    else date = undefined
    if (userId === undefined || from === expected) return []
    const text = `${describe(write)} found ${dateText(from)} in place of ${dateText(expected)}`
    return [{ text, at: write.operation?.end }]
  })
}

/** Finds a change that had been answered before another that precedes it was requested. */
const findReversed = (order: ReadonlyArray<Write>): ReadonlyArray<Finding> => {
  let latest: Write | undefined
  for (const write of order) {
    const { operation } = write
    if (operation === undefined) continue
    if (latest?.operation !== undefined && operation.status === 200) {
      if (operation.end < latest.operation.start) {
        const text = `${describe(write)} had been answered, but took effect before ${describe(latest)}`
        return [{ text, at: operation.end }]
      }
    }
    if (latest?.operation === undefined || operation.start > latest.operation.start) latest = write
  }
  return []
}

/** Finds what was read at a time when it had not been written yet, or had been overwritten. */
const findStale = (
  reads: ReadonlyArray<Operation>,
  order: ReadonlyArray<Write>,
): ReadonlyArray<Finding> =>
  reads.flatMap((read) => {
    const index = order.findIndex(({ row }) => row.to === read.endDate)
    const text = `${read.userId} of ${read.projectId} was found with ${dateText(read.endDate)}`
    const found = order[index]
    if (found === undefined) return [{ text: `${text}, which nobody set`, at: read.end }]
    if (found.operation !== undefined && found.operation.start > read.end) {
      return [{ text: `${text} before that was asked for`, at: read.end }]
    }
    const later = order
      .slice(index + 1)
      .find(({ operation }) => operation?.status === 200 && operation.end < read.start)
    return later === undefined
      ? []
      : [{ text: `${text}, after ${describe(later)} had been answered`, at: read.end }]
  })

/** Finds that a member does not end with the date that was set last. */
const findWrongEnd = (
  member: string,
  order: ReadonlyArray<Write>,
  last: number | undefined,
): ReadonlyArray<Finding> => {
  const isEnded = order.some(({ row }) => row.action === "ended")
  const expected = isEnded ? undefined : order.at(-1)?.row.to
  const text = `${member} ends with ${dateText(last)} in place of ${dateText(expected)}`
  return expected === last ? [] : [{ text }]
}

const find = (run: Run): ReadonlyArray<Finding> => {
  const writes = join(run)
  const reads = run.operations.filter(({ action, status }) => action === "find" && status === 200)
  const final = new Map(run.state.memberships.map((row) => [memberOf(row), row.endDate]))
  return [
    ...findMissing(run, writes),
    ...historiesIn(writes).flatMap(({ order, ...of }) => {
      const member = memberOf(of)
      return [
        ...findUnseen(order),
        ...findReversed(order),
        ...findStale(
          reads.filter((read) => memberOf(read) === member),
          order,
        ),
        ...findWrongEnd(member, order, final.get(member)),
      ]
    }),
  ]
}

/** Checks end dates. */
export const endDates: Check = { name: "end dates are linearizable", find }
