/**
 * End dates are linearizable: each change took effect at one instant between its request and its answer, and
 * each read saw what held at one instant. The audit trail is the witness: it says which changes were made, in
 * which order, and what each found.
 */

import { groupBy } from "effect/Array"
import type { Check, Finding, Operation, Run } from "../history.ts"
import {
  type History,
  type Write,
  emptyLedger,
  endDateOf,
  entered,
  historiesOf,
  isAnnouncement,
  isOfAll,
  join,
  memberOf,
  requestsOf,
} from "./histories.ts"

/** Shows an end date. */
export const dateText = (date: number | undefined): string =>
  date === undefined ? "nothing" : new Date(date).toISOString()

/** Shows a change. */
export const describe = ({ operation, row }: Write): string =>
  `${row.action} ${row.userId ?? "all"} of ${row.projectId} to ${dateText(row.to)}` +
  (operation === undefined ? "" : ` (asked at ${operation.start.toFixed(0)})`)

const textOf = ({ action, endDate, process, status, userId }: Operation): string =>
  `${action} ${userId ?? "all"} to ${dateText(endDate)} at ${process} was answered ${status}`

/** Finds answered changes without all their rows, and refused changes with rows. */
const findMissing = (run: Run): ReadonlyArray<Finding> => {
  const requests = requestsOf(run)
  const counts = new Map<Operation, number>()
  for (const { operation } of join(run.state.audit, requests)) {
    if (operation !== undefined) counts.set(operation, 1 + (counts.get(operation) ?? 0))
  }
  return requests.flatMap((operation) => {
    const count = counts.get(operation) ?? 0
    const { end, members, status } = operation
    const all = members?.length ?? 1
    const isDone = status === 200
    const isOpen = status === 0 || status === 503
    if (count === all ? isDone || isOpen : count === 0 && !isDone) return []
    return [{ text: `${textOf(operation)}, and has ${count} of ${all} audit rows`, at: end }]
  })
}

/** Finds changes that did not find what the one before them had left, or what they expected. */
const findUnseen = ({ order }: History): ReadonlyArray<Finding> =>
  order.flatMap((write, index) => {
    const { from } = write.row
    const expected = order[index - 1]?.after
    // What concerns all members, and an erasure, does not tell what it found.
    if (isOfAll(write.row) || write.row.action === "person_erased") return []
    const asked = write.operation?.expectedEndDate
    if (asked !== undefined && asked !== from) {
      const text = `${describe(write)} found ${dateText(from)}, and expected ${dateText(asked)}`
      return [{ text, at: write.operation?.end }]
    }
    if (from === expected) return []
    const text = `${describe(write)} found ${dateText(from)} in place of ${dateText(expected)}`
    return [{ text, at: write.operation?.end }]
  })

/** Finds a change that had been answered before another that precedes it was requested. */
const findReversed = ({ order }: History): ReadonlyArray<Finding> => {
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

/** What somebody read: a member's end date, or that there is none. */
interface Read {
  readonly projectId: string
  readonly userId: string
  readonly endDate: number | undefined
  readonly start: number
  readonly end: number
}

/** Returns what an operation has read. Who expects another date than there is learns it, too. */
const readsBy = (operation: Operation): ReadonlyArray<Read> => {
  const {
    action,
    conflictingDate,
    end,
    endDate,
    members = [],
    projectId,
    start,
    status,
  } = operation
  const { userId = "" } = operation
  const at = { projectId, start, end }
  if (action === "find" && status === 200) return [{ ...at, userId, endDate }]
  if ((action === "find" || action === "extend") && status === 404) {
    return [{ ...at, userId, endDate: undefined }]
  }
  if (conflictingDate !== undefined) return [{ ...at, userId, endDate: conflictingDate }]
  if (action === "list" && status === 200) return members.map((one) => ({ ...at, ...one }))
  return []
}

/** What can have held, and when. */
interface Span {
  readonly endDate: number | undefined
  readonly from: number
  readonly to: number
}

const answeredAt = ({ operation, row }: Write): number => {
  // What nobody asked for in the run was made before it.
  if (operation === undefined) return isAnnouncement(row) ? Infinity : -Infinity
  return operation.status === 200 ? operation.end : Infinity
}

const askedAt = ({ operation }: Write): number => operation?.start ?? -Infinity

const isFree = ({ operation, row }: Write): boolean =>
  row.action === "extended" && operation?.expectedEndDate === undefined

/**
 * What held before an extension that expects no date, if bulk extensions that follow it in the trail came first: an
 * extension that waits while a bulk extension is made has its place before that. What the bulk extension made from the
 * date before has held until then.
 */
const overtakenBy = (
  order: ReadonlyArray<Write>,
  index: number,
  before: Span,
  overwrittenAt: ReadonlyArray<number>,
): ReadonlyArray<Span> => {
  const write = order[index]
  if (write === undefined || !isFree(write) || before.endDate === undefined) return []
  const spans: Array<Span> = []
  let ledger = order[index - 1]?.ledger ?? emptyLedger
  let { from } = before
  for (let place = index + 1; place < order.length; place++) {
    const next = order[place]
    if (next === undefined) break
    if (isOfAll(next.row)) {
      if (askedAt(next) > answeredAt(write)) break
      ledger = entered(ledger, next.row)
      from = Math.max(from, askedAt(next))
      spans.push({ endDate: endDateOf(ledger), from, to: overwrittenAt[index] ?? Infinity })
    } else if (!isFree(next) && !isAnnouncement(next.row)) break
  }
  return spans
}

/** Returns when each change that counts, or one after it, had been answered; in the end, when none follows. */
const answeredFrom = (
  order: ReadonlyArray<Write>,
  counts: (write: Write) => boolean,
): ReadonlyArray<number> => {
  let first = Infinity
  const answers = order.toReversed().map((write) => {
    if (counts(write)) first = Math.min(first, answeredAt(write))
    return first
  })
  return [...answers.toReversed(), Infinity]
}

/** Returns what can have held, in this order: what was before all changes, and what each left. */
const spansOf = ({ order }: History): ReadonlyArray<Span> => {
  const ends = answeredFrom(order, () => true)
  const overwrittenAt = answeredFrom(order, ({ row }) => !isOfAll(row))
  let last: Span = { endDate: undefined, from: -Infinity, to: ends[0] ?? Infinity }
  const spans = [last]
  for (const [index, write] of order.entries()) {
    spans.push(...overtakenBy(order, index, last, overwrittenAt))
    // It had been asked for, and so had all before it.
    const from = Math.max(last.from, askedAt(write))
    last = { endDate: write.after, from, to: ends[index + 1] ?? Infinity }
    spans.push(last)
  }
  return spans
}

/**
 * Finds what was read at a time when it did not hold: it had not been set yet, had been overwritten, or an
 * earlier read had seen what came later.
 */
const findStale = (reads: ReadonlyArray<Read>, history: History): ReadonlyArray<Finding> => {
  const spans = spansOf(history)
  /** What was seen, ordered by the answers, and the latest that had been seen by then. */
  const seen: Array<{ readonly end: number; readonly latest: number }> = []
  return reads
    .toSorted((one, other) => one.end - other.end)
    .flatMap((read) => {
      const least = seen.findLast(({ end }) => end < read.start)?.latest ?? 0
      const possible = spans
        .slice(least)
        .filter(({ from, to }) => from <= read.end && to >= read.start)
      const found = possible.find(({ endDate }) => endDate === read.endDate)
      if (found !== undefined) {
        const latest = Math.max(seen.at(-1)?.latest ?? 0, spans.indexOf(found, least))
        seen.push({ end: read.end, latest })
        return []
      }
      const held = possible.map(({ endDate }) => dateText(endDate))
      const text = `${read.userId} of ${read.projectId} was found with ${dateText(read.endDate)}`
      return [{ text: `${text}, where ${held.join(" or ")} can have held`, at: read.end }]
    })
}

/** Finds that a member does not end with the date that was set last. */
const findWrongEnd = (history: History, last: number | undefined): ReadonlyArray<Finding> => {
  const expected = history.order.at(-1)?.after
  const text = `${memberOf(history)} ends with ${dateText(last)} in place of ${dateText(expected)}`
  return expected === last ? [] : [{ text }]
}

const find = (run: Run): ReadonlyArray<Finding> => {
  const reads = groupBy(run.operations.flatMap(readsBy), memberOf)
  const final = new Map(run.state.memberships.map((row) => [memberOf(row), row.endDate]))
  return [
    ...findMissing(run),
    ...historiesOf(run).flatMap((history) => [
      ...findUnseen(history),
      ...findReversed(history),
      ...findStale(reads[memberOf(history)] ?? [], history),
      ...findWrongEnd(history, final.get(memberOf(history))),
    ]),
  ]
}

export const endDates: Check = { name: "end dates are linearizable", find }
