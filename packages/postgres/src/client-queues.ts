/** The takes that wait, by client: which of them share the next statement, and what each learns of it. */

import {
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  StoreUnavailable,
  type TakeResult,
} from "@tenure/core/store"
import * as Exit from "effect/Exit"

/** The takes of a client. */
export interface TakeRequest {
  readonly rows: ClientRows
  /** The number of takes. */
  readonly count: number
}

/** A row of the table: a bucket, and beside that of a key the one for its bursts. */
interface BucketRow {
  readonly id: string
  readonly policy: BucketPolicy
  readonly burst: BucketPolicy | undefined
}

/** The rows of a client: that of its address, and that of its key if it has one. */
type ClientRows = readonly [address: BucketRow, ...key: ReadonlyArray<BucketRow>]

const rowsOf = ({ address, keyId }: LimitedClient, policies: BucketPolicies): ClientRows => {
  const ofAddress = { id: `address:${address}`, policy: policies.address, burst: undefined }
  return keyId === undefined
    ? [ofAddress]
    : [ofAddress, { id: `key:${keyId}`, policy: policies.key, burst: policies.burst }]
}

/** Which of the clients that wait share the next statement. */

/** A client that waits. */
interface QueueCandidate {
  readonly rows: ClientRows
  /** How many statements in a row have left some of its takes undecided. */
  readonly rounds: number
}

/** The bounds. */
interface SelectionLimits {
  /** The most clients in a statement. */
  readonly clients: number
  /** The most clients that are examined for a statement. */
  readonly examined: number
  /** After this many statements that left takes of a client undecided, it has one for itself. */
  readonly rounds: number
}

/** Those in the next statement, and those that go on waiting, both in order. */
interface SelectedQueues<C> {
  readonly chosen: ReadonlyArray<C>
  readonly rest: ReadonlyArray<C>
}

/**
 * Selects the clients in the order of their coming. A client one of whose rows is busy, in a statement
 * that is under way, would wait there for a lock: it waits here, and nobody overtakes it at its rows.
 */
const selectQueues = <C extends QueueCandidate>(
  candidates: ReadonlyArray<C>,
  busy: { readonly has: (id: string) => boolean },
  bounds: SelectionLimits,
): SelectedQueues<C> => {
  const chosen: Array<C> = []
  const skipped: Array<C> = []
  const reserved = new Set<string>()
  let examined = 0

  const isApart = ({ rounds }: C): boolean => rounds >= bounds.rounds
  const isFull = (): boolean => chosen.length === bounds.clients || chosen.slice(0, 1).some(isApart)
  const canJoin = (candidate: C): boolean =>
    (chosen.length === 0 || !isApart(candidate)) &&
    !candidate.rows.some(({ id }) => busy.has(id) || reserved.has(id))

  for (const candidate of candidates) {
    if (isFull() || examined === bounds.examined) break
    examined++
    if (canJoin(candidate)) {
      chosen.push(candidate)
      continue
    }
    skipped.push(candidate)
    for (const { id } of candidate.rows) reserved.add(id)
  }
  return { chosen, rest: [...skipped, ...candidates.slice(examined)] }
}

/**
 * Takes that wait for a statement, in a line for each client. However many takes a client has in a
 * statement, they are one for each of its rows.
 */

/** A take, and who waits for its outcome. */
interface Waiting {
  readonly resume: (take: Exit.Exit<TakeResult, StoreUnavailable>) => void
  /** When it came, in milliseconds. */
  readonly since: number
}

/** The takes of a client that wait. */
interface Line {
  readonly rows: ClientRows
  readonly waiting: Array<Waiting>
  isQueued: boolean
  /** How many statements in a row have left some of its takes undecided. */
  rounds: number
  /** Forgets the line. */
  readonly forget: () => void
}

/** The turn of a client: those of its takes that share a statement. */
export interface QueuedTake extends TakeRequest {
  readonly line: Line
  readonly takes: ReadonlyArray<Waiting>
}

/** The bounds. */
export interface QueueLimits extends SelectionLimits {
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
export interface ClientQueues {
  /**
   * Adds a take, or fails it if too many wait. Returns a function that removes it again, unless it is
   * in a statement by then.
   */
  readonly add: (client: LimitedClient, policies: BucketPolicies, waiting: Waiting) => () => void
  /** Removes and returns the takes for the next statement. `now` is in milliseconds. */
  readonly next: (now: number) => ReadonlyArray<QueuedTake>
  /** Ends a turn. The takes that are undecided go first into the next statement. */
  readonly settle: (turn: QueuedTake, undecided: ReadonlyArray<Waiting>) => void
}

const fail = ({ resume }: Waiting, cause: string): void =>
  resume(Exit.fail(new StoreUnavailable({ cause })))

/** A name that no other client has. */
const nameOf = ({ address, keyId }: LimitedClient): string =>
  keyId === undefined ? `-${address}` : `${address.length}-${address}${keyId}`

/** Makes lines without takes. */
export const makeClientQueues = (bounds: QueueLimits): ClientQueues => {
  const linesByPolicies = new WeakMap<BucketPolicies, Map<string, Line>>()
  let queue: ReadonlyArray<Line> = []
  // The lines that come first, and those that come last.
  let first: Array<Line> = []
  let last: Array<Line> = []
  // For each row, the number of turns in flight.
  const busy = new Map<string, number>()
  let waiting = 0

  const linesOf = (policies: BucketPolicies): Map<string, Line> => {
    const lines = linesByPolicies.get(policies) ?? new Map<string, Line>()
    linesByPolicies.set(policies, lines)
    return lines
  }

  const lineOf = (client: LimitedClient, policies: BucketPolicies): Line => {
    const lines = linesOf(policies)
    const name = nameOf(client)
    const known = lines.get(name)
    if (known !== undefined) return known
    const rows = rowsOf(client, policies)
    const forget = (): void => void lines.delete(name)
    const line: Line = { rows, waiting: [], isQueued: false, rounds: 0, forget }
    lines.set(name, line)
    return line
  }

  const enqueue = (line: Line, into: Array<Line>): void => {
    line.isQueued = true
    into.push(line)
  }

  const count = ({ rows }: Line, change: 1 | -1): void => {
    for (const { id } of rows) {
      const turns = (busy.get(id) ?? 0) + change
      if (turns > 0) busy.set(id, turns)
      else busy.delete(id)
    }
  }

  /** Removes and returns the lines of the next statement. */
  const select = (): ReadonlyArray<Line> => {
    const { chosen, rest } = selectQueues([...first, ...queue, ...last], busy, bounds)
    queue = rest
    first = []
    last = []
    return chosen
  }

  /** Removes takes from a line. Fails those that have waited too long. */
  const turnOf = (line: Line, now: number): QueuedTake => {
    line.isQueued = false
    const takes = line.waiting.splice(0, bounds.takes)
    waiting -= takes.length
    const isLate = ({ since }: Waiting): boolean => now - since > bounds.millis
    for (const take of takes.filter(isLate)) fail(take, "timeout")
    const patient = takes.filter((take) => !isLate(take))
    return { line, takes: patient, rows: line.rows, count: patient.length }
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
  const isCrowded = (client: LimitedClient, policies: BucketPolicies): boolean => {
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
