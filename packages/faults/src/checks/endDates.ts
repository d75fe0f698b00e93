/**
 * End dates are linearizable: each change took effect at one instant between its request and its
 * answer. The audit trail is the witness. It says which changes were made, and what each of them
 * found, which leaves exactly one order.
 */

import type { AuditRow, Check, Operation, Run } from "../history.ts"

/** A change that was made, and the operation that asked for it, unless it was made before the run. */
interface Write {
  readonly row: AuditRow
  readonly operation: Operation | undefined
}

type Finding = ReturnType<Check["find"]>[number]

const dateText = (date: number | undefined): string =>
  date === undefined ? "nothing" : new Date(date).toISOString()

const describe = ({ operation, row }: Write): string =>
  `${row.action} ${row.userId ?? "all"} of ${row.projectId} to ${dateText(row.to)}` +
  (operation === undefined ? "" : ` (asked at ${operation.start.toFixed(0)})`)

const isWrite = ({ action }: Operation): boolean =>
  action === "extend" || action === "extendAll" || action === "grant" || action === "end"

const keyOf = (action: string, userId: string | undefined, date: number | undefined): string =>
  action === "ended" || action === "end" ? `end ${userId}` : String(date)

/**
 * Joins each row with its operation. A date identifies both; the end of a membership, which is granted
 * and ended once, its user.
 */
const join = ({ operations, state }: Run) => {
  const asked = new Map(
    operations
      .filter(isWrite)
      .map((operation) => [
        keyOf(operation.action, operation.userId, operation.endDate),
        operation,
      ]),
  )
  return state.audit.map((row): Write => ({
    row,
    operation: asked.get(keyOf(row.action, row.userId, row.to)),
  }))
}

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

/** The changes of a member, each after the one that it found; those without one come first. */
const chains = (singles: ReadonlyArray<Write>) => {
  const after = new Map<number | undefined, Array<Write>>()
  for (const write of singles) {
    const followers = after.get(write.row.from) ?? []
    after.set(write.row.from, [...followers, write])
  }
  const forks = [...after.values()].filter((followers) => followers.length > 1)
  const follow = (from: number | undefined): ReadonlyArray<Write> => {
    const chain: Array<Write> = []
    let next = after.get(from)?.[0]
    while (next !== undefined && chain.length < singles.length) {
      chain.push(next)
      next = next.row.to === undefined ? undefined : after.get(next.row.to)?.[0]
    }
    return chain
  }
  return { follow, forks }
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

/** All orders that the trail allows: bulk extensions before a grant, or after all of the member. */
const ordersOf = (
  bulks: ReadonlyArray<Write>,
  follow: (from: number | undefined) => ReadonlyArray<Write>,
): ReadonlyArray<ReadonlyArray<Write>> => {
  const head = follow(undefined)
  const places = bulks.map((bulk) => [bulk, ...follow(bulk.row.to)])
  const firstUsed = places.findIndex((place) => place.length > 1)
  const most = firstUsed === -1 ? bulks.length : firstUsed
  return Array.from({ length: most + 1 }, (_, before) => [
    ...places.slice(0, before).flat(),
    ...head,
    ...places.slice(before).flat(),
  ])
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

const groupBy = <A>(items: ReadonlyArray<A>, key: (item: A) => string): Map<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const item of items) {
    const group = groups.get(key(item))
    if (group === undefined) groups.set(key(item), [item])
    else group.push(item)
  }
  return groups
}

const memberOf = (item: { readonly projectId: string; readonly userId?: string | undefined }) =>
  `${item.projectId} ${item.userId}`

/** Checks the changes of one member. */
const checkMember = (
  member: string,
  singles: ReadonlyArray<Write>,
  bulks: ReadonlyArray<Write>,
  reads: ReadonlyArray<Operation>,
  last: number | undefined,
): ReadonlyArray<Finding> => {
  const { follow, forks } = chains(singles)
  const lost = forks.flatMap(([first, second]) =>
    first === undefined || second === undefined
      ? []
      : [{ text: `two changes found the same: ${describe(first)}, ${describe(second)}` }],
  )
  if (lost.length > 0) return lost
  const orders = ordersOf(bulks, follow)
  const complete = orders.filter((order) => order.length === singles.length + bulks.length)
  if (complete.length === 0) return [{ text: `${member}: a change found what nobody set` }]
  const sound = complete.filter((order) => findReversed(order).length === 0)
  const findings = sound.map((order) => [
    ...findStale(reads, order),
    ...findWrongEnd(member, order, last),
  ])
  return (
    findings.find((found) => found.length === 0) ??
    findings[0] ??
    complete.slice(0, 1).flatMap(findReversed)
  )
}

const find = (run: Run): ReadonlyArray<Finding> => {
  const writes = join(run)
  const singles = groupBy(
    writes.filter(({ row }) => row.userId !== undefined),
    ({ row }) => memberOf(row),
  )
  const bulks = groupBy(
    writes.filter(({ row }) => row.userId === undefined),
    ({ row }) => row.projectId,
  )
  const reads = groupBy(
    run.operations.filter(({ action, status }) => action === "find" && status === 200),
    memberOf,
  )
  const final = new Map(run.state.memberships.map((row) => [memberOf(row), row.endDate]))
  return [
    ...findMissing(run, writes),
    ...[...singles].flatMap(([member, own]) => {
      const all = bulks.get(own[0]?.row.projectId ?? "") ?? []
      return checkMember(member, own, all, reads.get(member) ?? [], final.get(member))
    }),
  ]
}

/** Checks end dates. */
export const endDates: Check = { name: "end dates are linearizable", find }
