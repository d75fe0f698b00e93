/**
 * Takes that wait for a statement, in a line for each client. However many takes a client has in a
 * statement, they are one row for each of its buckets.
 */

import type { Client, Policies, Take } from "@tenure/core/RateLimitStore"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Exit from "effect/Exit"
import { type Bucket, bucketsOf } from "./Bucket.ts"
import type { Demand } from "./Demand.ts"
import * as Selection from "./Selection.ts"

/** A take, and who waits for its outcome. */
interface Waiting {
  readonly resume: (take: Exit.Exit<Take, StoreUnavailable>) => void
  /** When it came, in milliseconds. */
  readonly since: number
}

/** The takes of a client that wait. */
interface Line {
  readonly buckets: ReadonlyArray<Bucket>
  readonly waiting: Array<Waiting>
  isQueued: boolean
  /** How many statements in a row have left some of its takes undecided. */
  rounds: number
  /** Forgets the line. */
  readonly forget: () => void
}

/** The turn of a client: those of its takes that share a statement. */
export interface Turn extends Demand {
  readonly line: Line
  readonly takes: ReadonlyArray<Waiting>
}

/** The bounds. */
export interface Bounds extends Selection.Bounds {
  /** The most takes of a client in a statement. */
  readonly takes: number
  /** The most takes that wait. */
  readonly waiting: number
  /** The most takes of a client that wait. */
  readonly waitingOfClient: number
  /** The longest that a take waits for its statement. */
  readonly millis: number
}

/** The lines of all clients. */
export interface Lines {
  /**
   * Adds a take, or fails it if too many wait. Returns a function that removes it again, unless it is
   * in a statement by then.
   */
  readonly add: (client: Client, policies: Policies, waiting: Waiting) => () => void
  /** Removes and returns the takes for the next statement. `now` is in milliseconds. */
  readonly next: (now: number) => ReadonlyArray<Turn>
  /** Ends a turn. The takes that are undecided go first into the next statement. */
  readonly settle: (turn: Turn, undecided: ReadonlyArray<Waiting>) => void
}

const fail = ({ resume }: Waiting, cause: string): void =>
  resume(Exit.fail(new StoreUnavailable({ cause })))

/** A name that no other client has. */
const nameOf = ({ address, keyId }: Client): string =>
  keyId === undefined ? `-${address}` : `${address.length}-${address}${keyId}`

/** Makes lines without takes. */
export const make = (bounds: Bounds): Lines => {
  const linesByPolicies = new WeakMap<Policies, Map<string, Line>>()
  let queue: ReadonlyArray<Line> = []
  // The lines that come first, and those that come last.
  let first: Array<Line> = []
  let last: Array<Line> = []
  // For each bucket, the number of turns in flight.
  const busy = new Map<string, number>()
  let waiting = 0

  const linesOf = (policies: Policies): Map<string, Line> => {
    const lines = linesByPolicies.get(policies) ?? new Map<string, Line>()
    linesByPolicies.set(policies, lines)
    return lines
  }

  const lineOf = (client: Client, policies: Policies): Line => {
    const lines = linesOf(policies)
    const name = nameOf(client)
    const known = lines.get(name)
    if (known !== undefined) return known
    const buckets = bucketsOf(client, policies)
    const forget = (): void => void lines.delete(name)
    const line: Line = { buckets, waiting: [], isQueued: false, rounds: 0, forget }
    lines.set(name, line)
    return line
  }

  const enqueue = (line: Line, into: Array<Line>): void => {
    line.isQueued = true
    into.push(line)
  }

  const count = ({ buckets }: Line, change: 1 | -1): void => {
    for (const { key } of buckets) {
      const turns = (busy.get(key) ?? 0) + change
      if (turns > 0) busy.set(key, turns)
      else busy.delete(key)
    }
  }

  /** Removes and returns the lines of the next statement. */
  const select = (): ReadonlyArray<Line> => {
    const { chosen, rest } = Selection.select([...first, ...queue, ...last], busy, bounds)
    queue = rest
    first = []
    last = []
    return chosen
  }

  /** Removes takes from a line. Fails those that have waited too long. */
  const turnOf = (line: Line, now: number): Turn => {
    line.isQueued = false
    const takes = line.waiting.splice(0, bounds.takes)
    waiting -= takes.length
    const isLate = ({ since }: Waiting): boolean => now - since > bounds.millis
    for (const take of takes.filter(isLate)) fail(take, "timeout")
    const patient = takes.filter((take) => !isLate(take))
    return { line, takes: patient, buckets: line.buckets, count: patient.length }
  }

  /** Puts a line where it comes first. */
  const promote = (line: Line): void => {
    if (line.isQueued) {
      queue = queue.filter((other) => other !== line)
      last = last.filter((other) => other !== line)
    }
    enqueue(line, first)
  }

  /** Keeps a line in the queue while takes wait in it. */
  const keep = (line: Line): void => {
    if (line.isQueued) return
    if (line.waiting.length > 0) enqueue(line, last)
    else line.forget()
  }

  /** Whether a client may not add another take. */
  const isCrowded = (client: Client, policies: Policies): boolean => {
    const own = linesOf(policies).get(nameOf(client))?.waiting.length ?? 0
    return waiting >= bounds.waiting || own >= bounds.waitingOfClient
  }

  return {
    add: (client, policies, take) => {
      if (isCrowded(client, policies)) {
        fail(take, "crowded")
        return () => {}
      }
      const line = lineOf(client, policies)
      line.waiting.push(take)
      waiting++
      if (!line.isQueued) enqueue(line, last)
      return () => {
        const index = line.waiting.indexOf(take)
        if (index === -1) return
        line.waiting.splice(index, 1)
        waiting--
      }
    },

    next: (now) => {
      // Who no longer waits may be all that was selected.
      for (let chosen = select(); chosen.length > 0; chosen = select()) {
        const turns = chosen.map((line) => turnOf(line, now))
        for (const { line, takes } of turns) {
          if (takes.length > 0) count(line, 1)
          else keep(line)
        }
        const wanted = turns.filter(({ takes }) => takes.length > 0)
        if (wanted.length > 0) return wanted
      }
      return []
    },

    settle: ({ line }, undecided) => {
      count(line, -1)
      line.rounds = undecided.length > 0 ? line.rounds + 1 : 0
      line.waiting.unshift(...undecided)
      waiting += undecided.length
      if (undecided.length > 0) promote(line)
      else keep(line)
    },
  }
}
