/** Which takes share a statement, and which wait. */

import { describe, expect, it } from "@effect/vitest"
import {
  ApiKeyId,
  type LimitedClient,
  Millis,
  type StoreUnavailable,
  type TakeResult,
  bucketPolicy,
} from "@tenure/core/store"
import type * as Exit from "effect/Exit"
import { type QueueLimits, type QueuedTake, makeClientQueues } from "../src/client-queues.ts"

const policy = bucketPolicy({ limit: 10, window: Millis(60_000) })
const policies = { address: policy, key: policy, burst: policy }

const stranger = (address: string): LimitedClient => ({ address, keyId: undefined })
const holder = (keyId: string, address: string): LimitedClient => ({
  address,
  keyId: ApiKeyId(keyId),
})

const wide: QueueLimits = {
  clients: 100,
  examined: 100,
  takes: 100,
  waiting: 1000,
  waitingOfClient: 1000,
  millis: 1000,
  rounds: 3,
}

/** Lines whose statements show as lists of the addresses of their takes. */
const linesWith = (bounds: Partial<QueueLimits> = {}) => {
  const lines = makeClientQueues({ ...wide, ...bounds })
  const failed: Array<string> = []
  const add = (client: LimitedClient, name = client.address, since = 0) =>
    lines.add(client, policies, {
      since,
      resume: (exit: Exit.Exit<TakeResult, StoreUnavailable>) => {
        if (exit._tag === "Failure") failed.push(name)
      },
    })
  const sizes = (turns: ReadonlyArray<QueuedTake>) =>
    turns.map(({ line, takes }) => `${line.rows[0].id.slice(8)}: ${takes.length}`)
  const settle = (turns: ReadonlyArray<QueuedTake>) => {
    for (const turn of turns) lines.settle(turn, [])
  }
  return { lines, add, failed, sizes, settle, next: (now = 0) => lines.next(now) }
}

const repeat = (count: number, action: () => void): void => {
  for (let done = 0; done < count; done++) action()
}

describe("a statement", () => {
  it("has each client once, with all of its takes", () => {
    const { add, next, sizes } = linesWith()
    for (const address of ["1", "2", "1", "3", "1"]) add(stranger(address))
    expect(sizes(next())).toEqual(["1: 3", "2: 1", "3: 1"])
    expect(next()).toEqual([])
  })

  it("has no more clients than its bound, in the order of their coming", () => {
    const { add, next, settle, sizes } = linesWith({ clients: 2 })
    for (const address of ["1", "2", "3", "4", "5"]) add(stranger(address))
    const one = next()
    expect(sizes(one)).toEqual(["1: 1", "2: 1"])
    add(stranger("1"))
    settle(one)
    expect(sizes(next())).toEqual(["3: 1", "4: 1"])
    expect(sizes(next())).toEqual(["5: 1", "1: 1"])
  })

  it("has no more takes of a client than their bound: its others come after those who wait", () => {
    const { add, next, settle, sizes } = linesWith({ clients: 2, takes: 10 })
    repeat(25, () => add(stranger("flood")))
    for (const address of ["1", "2"]) add(stranger(address))
    const statements = []
    for (let turns = next(); turns.length > 0; turns = next()) {
      statements.push(sizes(turns))
      settle(turns)
    }
    expect(statements).toEqual([["flood: 10", "1: 1"], ["2: 1", "flood: 10"], ["flood: 5"]])
  })

  it("has no bucket that another one under way has", () => {
    const { add, next, settle, sizes } = linesWith()
    add(holder("a", "1"))
    const one = next()
    add(holder("b", "1"))
    add(holder("a", "2"))
    add(holder("c", "3"))
    expect(sizes(next())).toEqual(["3: 1"])
    settle(one)
    expect(sizes(next())).toEqual(["1: 1", "2: 1"])
  })

  it("has nobody who would overtake another at a bucket", () => {
    const { add, next, settle, sizes } = linesWith()
    add(stranger("1"))
    const one = next()
    // The first waits for its address. The second would take the key before it.
    add(holder("a", "1"))
    add(holder("a", "2"))
    expect(next()).toEqual([])
    settle(one)
    expect(sizes(next())).toEqual(["1: 1", "2: 1"])
  })

  it("is found among a bounded number of clients", () => {
    const { add, next, sizes } = linesWith({ examined: 3 })
    add(stranger("1"))
    next()
    for (const key of ["a", "b", "c"]) add(holder(key, "1"))
    add(stranger("2"))
    expect(sizes(next())).toEqual([])
  })
})

describe("clients", () => {
  it("have lines of their own, whatever their names are", () => {
    const { add, next, sizes } = linesWith()
    add(stranger("1-ab"))
    add(holder("b", "a"))
    add(holder("a", "b"))
    add(holder("1-ab", "-"))
    add(stranger("ab"))
    add(stranger("-ab"))
    expect(next()).toHaveLength(6)
    expect(sizes(next())).toEqual([])
  })

  it("have a line for each of their policies", () => {
    const { add, lines, next } = linesWith()
    add(stranger("1"))
    const other = { ...policies, address: { ...policy, capacity: 1 } }
    lines.add(stranger("1"), other, { since: 0, resume: () => {} })
    expect(next().map(({ line }) => line.rows[0].policy.capacity)).toEqual([10, 1])
  })
})

describe("undecided takes", () => {
  it("go first into the next statement, in their order", () => {
    const { add, lines, next, sizes } = linesWith({ clients: 3 })
    for (const address of ["1", "2", "3", "4"]) add(stranger(address))
    const turns = next()
    add(stranger("2"))
    for (const turn of turns.slice(1)) lines.settle(turn, turn.takes)
    for (const turn of turns.slice(0, 1)) lines.settle(turn, [])
    expect(sizes(next())).toEqual(["2: 2", "3: 1", "4: 1"])
    expect(next()).toEqual([])
  })

  it("have a statement for themselves after some rounds", () => {
    const { add, lines, next, sizes } = linesWith({ rounds: 2 })
    add(stranger("1"))
    add(stranger("2"))
    const undecide = () => {
      const turns = next()
      for (const turn of turns) lines.settle(turn, turn.takes)
      return sizes(turns)
    }
    expect([undecide(), undecide()]).toEqual([
      ["1: 1", "2: 1"],
      ["1: 1", "2: 1"],
    ])
    add(stranger("3"))
    expect(sizes(next())).toEqual(["1: 1"])
    expect(sizes(next())).toEqual(["2: 1"])
    expect(sizes(next())).toEqual(["3: 1"])
  })
})

describe("a take", () => {
  it("that is removed before its statement leaves the others", () => {
    const { add, next, sizes } = linesWith()
    add(stranger("1"))
    const remove = add(stranger("1"))
    const removeOther = add(stranger("2"))
    remove()
    remove()
    removeOther()
    expect(sizes(next())).toEqual(["1: 1"])
    remove()
    expect(next()).toEqual([])
  })

  it("fails if too many of its client wait, and those of others do not", () => {
    const { add, failed, next, sizes } = linesWith({ waitingOfClient: 3 })
    repeat(5, () => add(stranger("flood")))
    add(stranger("1"))
    expect(failed).toEqual(["flood", "flood"])
    expect(sizes(next())).toEqual(["flood: 3", "1: 1"])
    add(stranger("flood"))
    expect(failed).toHaveLength(2)
  })

  it("fails if too many wait, until some are in a statement or removed", () => {
    const { add, failed, next, sizes } = linesWith({ waiting: 3, clients: 1 })
    const remove = add(stranger("1"))
    for (const address of ["2", "3", "4"]) add(stranger(address))
    expect(failed).toEqual(["4"])
    remove()
    add(stranger("5"))
    expect(failed).toEqual(["4"])
    expect(sizes(next())).toEqual(["2: 1"])
    add(stranger("6"))
    add(stranger("7"))
    expect(failed).toEqual(["4", "7"])
  })

  it("fails if it has waited too long, and the others of its client do not", () => {
    const { add, failed, next, sizes } = linesWith({ millis: 100 })
    add(stranger("1"), "early", 0)
    add(stranger("1"), "late", 50)
    add(stranger("2"), "alone", 0)
    expect(sizes(next(101))).toEqual(["1: 1"])
    expect(failed).toEqual(["early", "alone"])
  })
})
