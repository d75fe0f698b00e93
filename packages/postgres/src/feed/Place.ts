/** Places in the feed, and the text of a cursor. */

import { EventId } from "@tenure/core/Event"
import { Cursor } from "@tenure/core/FeedStore"
import * as Snapshot from "./Snapshot.ts"

/** A moment at which the feed was read. */
export interface Seen {
  readonly snapshot: Snapshot.Snapshot
  /** When that was, in milliseconds since the epoch, on the clock of the database. */
  readonly at: number
}

/** A place: after everything that `base` sees and, if a page ended early, after a part of what follows. */
export interface Place {
  /** The history of the database. The numbers of transactions mean nothing in another one. */
  readonly epoch: string
  readonly base: Seen
  readonly within: Within | undefined
}

/**
 * Where in what `until` sees and `base` does not: after an event, in the order of transactions and ids. What
 * becomes visible later comes after all of it, even if its transaction has a smaller number.
 */
interface Within {
  readonly until: Seen
  readonly xid: bigint
  readonly id: EventId
}

/** The place at which the feed begins, as it is seen at a moment. */
export const start = (epoch: string, at: number): Place => ({
  epoch,
  base: { snapshot: Snapshot.nothing, at },
  within: undefined,
})

const digits = (value: bigint | number): string => value.toString(36)

// Running transactions are close to each other, so the gaps between them are short.
const seenText = ({ at, snapshot: { running, xmax, xmin } }: Seen): string =>
  [
    digits(at),
    digits(xmin),
    digits(xmax - xmin),
    ...running.map((xid, index) => digits(xid - (running[index - 1] ?? xmin))),
  ].join("-")

// A cursor has 8,192 characters at most, of which all but two lists of running transactions take fewer
// than 200. A list may get one more transaction.
const maxListLength = 3900

/**
 * Returns a moment whose snapshot a cursor can hold: the same, unless more transactions are running, which
 * about 1,900 have to be. It does not see the youngest of them, nor what has begun after these.
 */
export const fitting = (seen: Seen): Seen => {
  const { running, xmin } = seen.snapshot
  let length = 0
  const first = running.findIndex((xid, index) => {
    length += 1 + digits(xid - (running[index - 1] ?? xmin)).length
    return length > maxListLength
  })
  const xmax = running[first]
  return xmax === undefined
    ? seen
    : { ...seen, snapshot: { xmin, xmax, running: running.slice(0, first) } }
}

/** The beginning of the cursors of all events of a page. */
export const prefixOf = (epoch: string, base: Seen, until: Seen): string =>
  `${epoch}.${seenText(base)}.${seenText(until)}`

/** The cursor of an event in the page with a prefix. */
export const cursorWithin = (prefix: string, xid: bigint, id: string): Cursor =>
  Cursor(`${prefix}.${digits(xid)}.${id}`)

/** The cursor of the place after everything that has been seen. */
export const cursorAfter = (epoch: string, base: Seen): Cursor =>
  Cursor(`${epoch}.${seenText(base)}`)

const number = /^[0-9a-z]{1,13}$/

// Numbers of 64 bits without their sign, so that PostgreSQL can read all of them.
const most = 2n ** 63n - 1n

const parseNumber = (text: string): bigint | undefined => {
  if (!number.test(text)) return undefined
  let value = 0n
  for (const digit of text) value = value * 36n + BigInt(Number.parseInt(digit, 36))
  return value <= most ? value : undefined
}

const isNumbers = (values: ReadonlyArray<bigint | undefined>): values is ReadonlyArray<bigint> =>
  values.every((value) => value !== undefined)

const isAscending = (values: ReadonlyArray<bigint>): boolean =>
  values.every((value, index) => index === 0 || value > (values[index - 1] ?? value))

const parseSeen = (text: string | undefined): Seen | undefined => {
  const numbers = (text ?? "").split("-").map(parseNumber)
  if (!isNumbers(numbers)) return undefined
  const [at, xmin, length, ...gaps] = numbers
  if (at === undefined || at > 8_640_000_000_000_000n) return undefined
  if (xmin === undefined || xmin === 0n || length === undefined) return undefined
  const xmax = xmin + length
  let last = xmin
  const running = gaps.map((gap) => (last += gap))
  const isSnapshot = xmax <= most && isAscending([...running, xmax])
  return isSnapshot ? { at: Number(at), snapshot: { xmin, xmax, running } } : undefined
}

/** The place after an event of what became visible between two moments. */
const placeWithin = (
  epoch: string,
  base: Seen,
  until: Seen | undefined,
  xid: bigint | undefined,
  id: string,
): Place | undefined => {
  if (until === undefined || !EventId.is(id)) return undefined
  // PostgreSQL has no snapshot with the number 0, which is no transaction.
  if (xid === undefined || xid === 0n) return undefined
  if (!Snapshot.sees(until.snapshot, xid)) return undefined
  return { epoch, base, within: { until, xid, id } }
}

/** Reads a cursor. Returns `undefined` for text that this store does not write. */
export const parse = (cursor: Cursor): Place | undefined => {
  const [epoch = "", ofBase, ofUntil, ofXid = "", id = "", ...others] = cursor.split(".")
  const base = parseSeen(ofBase)
  if (base === undefined || others.length > 0) return undefined
  return ofUntil === undefined
    ? { epoch, base, within: undefined }
    : placeWithin(epoch, base, parseSeen(ofUntil), parseNumber(ofXid), id)
}
