/** Which takes share a statement, and which wait. */

import { describe, expect, it } from "@effect/vitest"
import { ApiKeyId, type LimitedClient, Millis, bucketPolicy } from "@tenure/core/store"
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

/** Queues whose statements show as lists with the takes' addresses. */
const queuesWith = (limits: Partial<QueueLimits> = {}) => {
  const queues = makeClientQueues({ ...wide, ...limits })
  const failed: Array<string> = []
  const add = (client: LimitedClient, name = client.address, since = 0, of = policies) =>
    queues.add(client, of, {
      since,
      resume: (exit) => {
        if (exit._tag === "Failure") failed.push(name)
      },
    })
  const next = (now = 0) => {
    const turns = queues.next(now)
    return {
      turns,
      sizes: turns.map(({ queue, takes }) => `${queue.rows[0].id.slice(8)}: ${takes.length}`),
      /** Settles the statement's takes, with those that are undecided. */
      settle: (undecided = (_: QueuedTake): QueuedTake["takes"] => []) => {
        for (const turn of turns) queues.settle(turn, undecided(turn))
      },
    }
  }
  return {
    add,
    failed,
    next,
    addStrangers: (...addresses: ReadonlyArray<string>) =>
      addresses.map((address) => add(stranger(address))),
    /** The next statement's sizes. */
    sizes: (now = 0) => next(now).sizes,
  }
}

const flood = (count: number): ReadonlyArray<string> => Array.from({ length: count }, () => "flood")

describe("a statement", () => {
  it("has each client once, with all of its takes", () => {
    const { addStrangers, sizes } = queuesWith()
    addStrangers("1", "2", "1", "3", "1")
    expect(sizes()).toEqual(["1: 3", "2: 1", "3: 1"])
    expect(sizes()).toEqual([])
  })

  it("has no more clients than its limit, in the order of their coming", () => {
    const { addStrangers, next, sizes } = queuesWith({ clients: 2 })
    addStrangers("1", "2", "3", "4", "5")
    const first = next()
    expect(first.sizes).toEqual(["1: 1", "2: 1"])
    addStrangers("1")
    first.settle()
    expect([sizes(), sizes()]).toEqual([
      ["3: 1", "4: 1"],
      ["5: 1", "1: 1"],
    ])
  })

  it("has no more takes of a client than their limit: its others come after those who wait", () => {
    const { addStrangers, next } = queuesWith({ clients: 2, takes: 10 })
    addStrangers(...flood(25), "1", "2")
    const statements = []
    for (let one = next(); one.turns.length > 0; one = next()) {
      statements.push(one.sizes)
      one.settle()
    }
    expect(statements).toEqual([["flood: 10", "1: 1"], ["2: 1", "flood: 10"], ["flood: 5"]])
  })

  it("has no bucket that another one under way has, and nobody who would overtake another at a bucket", () => {
    const { add, next, sizes } = queuesWith()
    add(holder("a", "1"))
    const first = next()
    add(holder("b", "1"))
    add(holder("a", "2"))
    add(holder("c", "3"))
    // The one before waits for its address. This one would take the key before it.
    add(holder("b", "4"))
    expect(sizes()).toEqual(["3: 1"])
    first.settle()
    expect(sizes()).toEqual(["1: 1", "2: 1", "4: 1"])
  })

  it("is found among a limited number of clients", () => {
    const { add, addStrangers, sizes } = queuesWith({ examined: 3 })
    addStrangers("1")
    sizes()
    for (const key of ["a", "b", "c"]) add(holder(key, "1"))
    addStrangers("2")
    expect(sizes()).toEqual([])
  })
})

describe("clients", () => {
  it("have queues of their own, whatever their names are", () => {
    const { add, addStrangers, sizes } = queuesWith()
    addStrangers("1-ab", "ab", "-ab")
    for (const [key, address] of [
      ["b", "a"],
      ["a", "b"],
      ["1-ab", "-"],
    ] as const)
      add(holder(key, address))
    expect(sizes()).toHaveLength(6)
    expect(sizes()).toEqual([])
  })

  it("have a queue for each of their policies", () => {
    const { add, addStrangers, next } = queuesWith()
    addStrangers("1")
    add(stranger("1"), "1", 0, { ...policies, address: { ...policy, capacity: 1 } })
    expect(next().turns.map(({ queue }) => queue.rows[0].policy.capacity)).toEqual([10, 1])
  })
})

describe("undecided takes", () => {
  it("go first into the next statement, in their order", () => {
    const { addStrangers, next, sizes } = queuesWith({ clients: 3 })
    addStrangers("1", "2", "3", "4")
    const first = next()
    addStrangers("2")
    first.settle((turn) => (turn === first.turns[0] ? [] : turn.takes))
    expect(sizes()).toEqual(["2: 2", "3: 1", "4: 1"])
    expect(sizes()).toEqual([])
  })

  it("have a statement for themselves after some rounds", () => {
    const { addStrangers, next, sizes } = queuesWith({ rounds: 2 })
    addStrangers("1", "2")
    for (let round = 0; round < 2; round++) {
      const one = next()
      expect(one.sizes).toEqual(["1: 1", "2: 1"])
      one.settle(({ takes }) => takes)
    }
    addStrangers("3")
    expect([sizes(), sizes(), sizes()]).toEqual([["1: 1"], ["2: 1"], ["3: 1"]])
  })
})

describe("a take", () => {
  it("that is removed before its statement leaves the others", () => {
    const { addStrangers, sizes } = queuesWith()
    const [, remove, removeOther] = addStrangers("1", "1", "2")
    remove?.()
    remove?.()
    removeOther?.()
    expect(sizes()).toEqual(["1: 1"])
    remove?.()
    expect(sizes()).toEqual([])
  })

  it("fails if too many of its client wait, and those of others do not", () => {
    const { addStrangers, failed, sizes } = queuesWith({ waitingOfClient: 3 })
    addStrangers(...flood(5), "1")
    expect(failed).toEqual(["flood", "flood"])
    expect(sizes()).toEqual(["flood: 3", "1: 1"])
    addStrangers("flood")
    expect(failed).toHaveLength(2)
  })

  it("fails if too many wait, until some are in a statement or removed", () => {
    const { addStrangers, failed, sizes } = queuesWith({ waiting: 3, clients: 1 })
    const [remove] = addStrangers("1", "2", "3", "4")
    expect(failed).toEqual(["4"])
    remove?.()
    addStrangers("5")
    expect(failed).toEqual(["4"])
    expect(sizes()).toEqual(["2: 1"])
    addStrangers("6", "7")
    expect(failed).toEqual(["4", "7"])
  })

  it("is not waiting again when its turn is settled twice, which is a defect", () => {
    const { add, next, sizes } = queuesWith()
    add(stranger("1"))
    const { settle } = next()
    settle()
    expect(() => settle(({ takes }) => takes)).toThrow("a client's turn was settled twice")
    expect(sizes()).toEqual([])
  })

  it("fails if it has waited too long, and the others of its client do not", () => {
    const { add, failed, sizes } = queuesWith({ millis: 100 })
    add(stranger("1"), "early", 0)
    add(stranger("1"), "late", 50)
    add(stranger("2"), "alone", 0)
    expect(sizes(101)).toEqual(["1: 1"])
    expect(failed).toEqual(["early", "alone"])
  })
})
