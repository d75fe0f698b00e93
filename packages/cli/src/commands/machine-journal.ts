/** Prints a time machine's events and requests, within bounds, and counts by day and type. */

import { performance } from "node:perf_hooks"
import type { Event } from "@tenure/core"
import { eventData } from "@tenure/core/internal"
import { isoOf, layOut, pluralize, printable } from "../support/text.ts"
import { lineOfEvent } from "./listen.ts"
import type { SentRequest, Witness } from "./time-machine.ts"

/** A journal. */
export interface Journal extends Witness {
  /** Prints nothing, and only counts, until the next `tell`. */
  readonly hush: () => void
  /** Counts from now on, and prints events and requests. */
  readonly tell: () => void
  /** How many events and requests there were since the last `hush` or `tell`. */
  readonly counted: () => Counts
  /** Returns the counts as lines: a table by day and type, and the first requests. */
  readonly summary: () => ReadonlyArray<string>
}

/** How many events and requests there were. */
interface Counts {
  readonly events: number
  readonly requests: number
  readonly failed: number
}

// A program could read more lines, but no person.
const linesPerSecond = 40

const shownRequests = 10

// With more days, counts are by month.
const maxDays = 62

// Hosts publish their own types.
const maxTypes = 20

// Not event types, because types have only letters and digits.
const others = "(others)"
const requests = "(requests)"
const failed = "(failed)"

const typeOfBody = (body: string): string => {
  const { type }: { readonly type: string } = JSON.parse(body)
  return type
}

const userOfBody = (body: string): string => {
  const { data }: { readonly data: { readonly user_id?: unknown } | null } = JSON.parse(body)
  return typeof data?.user_id === "string" ? ` of ${data.user_id}` : ""
}

/** Prints a request on one line: time, answer, URL and event. */
const lineOfRequest = ({ at, body, status, url }: SentRequest): string =>
  printable(`${isoOf(at)}  → ${status}  ${url}  ${typeOfBody(body)}${userOfBody(body)}`)

const lineOf = (event: Event): string =>
  lineOfEvent({ data: eventData(event), timestamp: isoOf(event.at), type: event.type })

type Day = Map<string, number>

const add = (counts: Day, name: string, count = 1): void =>
  void counts.set(name, (counts.get(name) ?? 0) + count)

/** Adds up many days' counts by month. */
const byPeriod = (days: ReadonlyMap<string, Day>): ReadonlyMap<string, Day> => {
  if (days.size <= maxDays) return days
  const months = new Map<string, Day>()
  for (const [day, counts] of days) {
    const month = day.slice(0, "2027-01".length)
    const joined = months.get(month) ?? new Map<string, number>()
    months.set(month, joined)
    for (const [name, count] of counts) add(joined, name, count)
  }
  return months
}

/**
 * Makes a hushed journal.
 *
 * @param print - prints a line
 */
export const makeJournal = (print: (line: string) => void): Journal => {
  let isHushed = true
  let days = new Map<string, Day>()
  let types = new Set<string>()
  let counts = { events: 0, requests: 0, failed: 0 }
  let first: Array<SentRequest> = []
  let left = new Map<string, number>()
  let second = { began: 0, lines: 0 }
  let told: Counts = { events: 0, requests: 0, failed: 0 }

  const reset = (hushed: boolean): void => {
    isHushed = hushed
    days = new Map()
    types = new Set()
    counts = { events: 0, requests: 0, failed: 0 }
    told = { ...counts }
    first = []
  }

  const flush = (): void => {
    if (left.size === 0) return
    const all = [...left].map(([name, count]) => `${count} × ${name}`)
    left = new Map()
    print(printable(`… and ${all.join(", ")}`))
  }

  const say = (name: string, line: () => string): void => {
    if (isHushed) return
    const now = performance.now()
    if (now - second.began >= 1000) {
      flush()
      second = { began: now, lines: 0 }
    }
    if (second.lines < linesPerSecond) {
      second.lines++
      print(line())
    } else {
      add(left, name)
    }
  }

  const nameOf = (type: string): string => {
    if (types.size < maxTypes) types.add(type)
    return types.has(type) ? type : others
  }

  const count = (at: number, name: string): void => {
    const day = isoOf(at).slice(0, "2027-01-31".length)
    const known = days.get(day) ?? new Map<string, number>()
    days.set(day, known)
    add(known, name)
  }

  const table = (): ReadonlyArray<string> => {
    const names = [...types].toSorted()
    const columns = types.size === maxTypes ? [...names, others] : names
    const rowOf = (period: string, day: Day) =>
      Object.fromEntries([
        ["day", period],
        ...columns.map((name) => [name, day.get(name) ?? 0] as const),
        ["requests", day.get(requests) ?? 0],
        ["failed", day.get(failed) ?? 0],
      ])
    const sum = new Map<string, number>()
    for (const day of days.values()) for (const [name, number] of day) add(sum, name, number)
    const periods = [...byPeriod(days)].map(([period, day]) => rowOf(period, day))
    return layOut([...periods, rowOf("all", sum)], Infinity).lines
  }

  return {
    event: (event) => {
      counts.events++
      const name = nameOf(event.type)
      count(event.at, name)
      say(name, () => lineOf(event))
    },
    request: (request) => {
      counts.requests++
      count(request.at, requests)
      if (request.status >= 300) {
        counts.failed++
        count(request.at, failed)
      }
      if (first.length < shownRequests) first.push(request)
      say("requests", () => lineOfRequest(request))
    },
    stands: (now) => {
      if (isHushed) return
      flush()
      const happened = [
        pluralize(counts.events - told.events, "event"),
        pluralize(counts.requests - told.requests, "request"),
      ]
      told = { ...counts }
      print(`It is ${isoOf(now)}: ${happened.join(", ")}.`)
    },
    hush: () => reset(true),
    tell: () => reset(false),
    counted: () => counts,
    summary: () => {
      if (counts.events + counts.requests === 0) return ["Nothing happens until then."]
      const isAll = counts.requests <= shownRequests
      return [
        ...table(),
        ...(counts.requests === 0
          ? []
          : [
              "",
              `The ${isAll ? "" : `first ${shownRequests} of ${counts.requests} `}requests that would be sent:`,
              "",
              ...first.map(lineOfRequest),
            ]),
      ]
    },
  }
}
