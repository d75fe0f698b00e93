/**
 * Every reader gets every event in its project: soon, once, and not before another that had
 * happened earlier. Only what came after its last cursor may come again.
 */

import type { Check, Event, Finding, Got, Reader, Run, State } from "../history.ts"
import { deadline } from "../trouble.ts"
import { type Happened, announced, happened } from "./deliveries.ts"

/** A reader with what it has got. */
type Judge = (
  reader: Reader,
  run: Run,
  operations: ReadonlyMap<string, Happened["operation"]>,
) => ReadonlyArray<Finding>

/** Returns the events that a reader asks for. */
const wantedBy = (
  { projectId, types }: Reader,
  { events }: Pick<State, "events">,
): ReadonlyArray<Event> =>
  events.filter((event) => event.projectId === projectId && (types?.includes(event.type) ?? true))

/** Returns the events that a reader asks for and has not got. */
export const missedBy = (
  reader: Reader,
  { state }: { readonly state: Pick<State, "events"> },
): ReadonlyArray<Event> => {
  const seen = new Set(reader.got.map(({ eventId }) => eventId))
  return wantedBy(reader, state).filter(({ id }) => !seen.has(id))
}

const findMissing: Judge = (reader, run) =>
  missedBy(reader, run).map(({ id }) => ({ text: `${reader.name} has not got ${id}` }))

const findForeign: Judge = (reader, { state }) => {
  const own = new Set(wantedBy(reader, state).map(({ id }) => id))
  return reader.got
    .filter(({ eventId }) => !own.has(eventId))
    .map(({ at, eventId }) => ({
      text: `${reader.name} has got ${eventId}, for which it has not asked`,
      at,
    }))
}

/** Returns what a reader has got again after a cursor had followed it. */
export const repeatedBy = ({ got }: Reader): ReadonlyArray<Got> => {
  const settled = new Set<string>()
  return got.filter(({ eventId, isSettled }) => {
    if (settled.has(eventId)) return true
    if (isSettled) settled.add(eventId)
    return false
  })
}

const findRepeated: Judge = (reader) =>
  repeatedBy(reader).map(({ at, eventId }) => ({
    text: `${reader.name} has got ${eventId} again`,
    at,
  }))

/** What has settled, in order. */
const settledOf = ({ got }: Reader): ReadonlyArray<Got> => got.filter(({ isSettled }) => isSettled)

const findDisordered: Judge = (reader, _, operations) => {
  let latest = { start: -Infinity, eventId: "" }
  return settledOf(reader).flatMap(({ at, eventId }) => {
    const operation = operations.get(eventId)
    if (operation === undefined) return []
    const { eventId: other, start } = latest
    if (operation.start > start) latest = { start: operation.start, eventId }
    const text = `${reader.name} has got ${eventId} after ${other}, which happened later`
    return operation.end < start ? [{ text, at }] : []
  })
}

// While nothing is wrong, an event reaches its readers in this time.
const longestDelayMillis = 3000

const findLate: Judge = ({ got, name }, run, operations) => {
  const first = new Map(got.toReversed().map(({ at, eventId }) => [eventId, at]))
  return [...first].flatMap(([eventId, at]) => {
    const answered = operations.get(eventId)?.end
    if (answered === undefined) return []
    const late = at - deadline(run, answered, longestDelayMillis)
    const millis = (at - answered).toFixed(0)
    return late > 0
      ? [{ text: `${name} has got ${eventId} ${millis} ms after its change was answered`, at }]
      : []
  })
}

const judges: ReadonlyArray<Judge> = [
  findMissing,
  findForeign,
  findRepeated,
  findDisordered,
  findLate,
]

/** Returns when each event's change was requested and answered, if that is known. */
export const timesIn = (run: Run): ReadonlyMap<string, Happened["operation"]> =>
  new Map(
    [...happened(run), ...announced(run)].map(({ event, operation }) => [event.id, operation]),
  )

export const feed: Check = {
  name: "readers of the feed get every event",
  find: (run) => {
    const operations = timesIn(run)
    return run.readers.flatMap((reader) =>
      judges.flatMap((judge) => judge(reader, run, operations)),
    )
  },
}
