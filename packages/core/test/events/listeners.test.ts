import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Feed } from "../../src/events/feed.ts"
import {
  type Listener,
  type ListenerMessage,
  type ListenerRequest,
  Listeners,
  SingleSlotQueue,
} from "../../src/events/listeners.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import {
  otherId,
  passSeconds,
  projectId,
  publish,
  right,
  testsOf,
  unavailable,
  waiting,
} from "./following.ts"

const test = testsOf(Listeners)

const opening = { client: "key", projectId, isAllowed: Effect.succeed(true) }

/** Reduces a message to its event types, or the reason for its end. */
const seen = (message: ListenerMessage) => {
  switch (message._tag) {
    case "Events":
      return message.events.map(({ type }) => type)
    case "Heartbeat":
      return "heartbeat"
    case "End":
      return message.reason
  }
}

const next = (listener: Listener) => Effect.map(listener.next, seen)

const waitingFor = (listener: Listener) => waiting(next(listener))

/** Skips heartbeats, and returns the next message. */
const nextOther = (listener: Listener): Effect.Effect<ReturnType<typeof seen>> =>
  Effect.flatMap(next(listener), (message) =>
    message === "heartbeat" ? nextOther(listener) : Effect.succeed(message),
  )

/** Starts to wait for a message other than a heartbeat. */
const forkOther = (listener: Listener) =>
  Effect.forkChild(nextOther(listener), { startImmediately: true })

describe("a listener", () => {
  test("gets the place where it starts, what is stored, and what comes", function* (listeners) {
    yield* publish("a")
    const now = yield* listeners.open(opening)
    const all = yield* listeners.open({ ...opening, after: "start" })
    const first = yield* now.next
    expect(first).toMatchObject({ _tag: "Events", events: [] })
    expect(yield* next(all)).toEqual(["a"])
    const fibers = [yield* waitingFor(now), yield* waitingFor(all)]
    yield* publish("b")
    for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toEqual(["b"])
    const after = first._tag === "Events" ? first.cursor : undefined
    const resumed = yield* listeners.open({ ...opening, after })
    expect(yield* next(resumed)).toEqual(["b"])
  })

  test("gets at most 64 KiB at a time, and nothing twice", function* (listeners) {
    const publishLong = (type: string) => publish(type, projectId, "x".repeat(30_000))
    yield* Effect.forEach(["a", "b", "c", "d", "e", "f", "g"], publishLong)
    const listener = yield* listeners.open({ ...opening, after: "start" })
    expect(yield* next(listener)).toEqual(["a", "b", "c"])
    expect(yield* next(listener)).toEqual(["d", "e", "f"])
    expect(yield* next(listener)).toEqual(["g"])
    // Events published while the listener waits are divided, too.
    const fiber = yield* waitingFor(listener)
    const types = ["h", "i", "j", "k", "l", "m", "n"]
    yield* Effect.forEach(types, publishLong, { concurrency: "unbounded" })
    const pages = [yield* Fiber.join(fiber)]
    while (pages.flat().length < types.length) pages.push(yield* next(listener))
    expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(3)
    expect(pages.flat()).toEqual(types)
  })

  test("gets a heartbeat when nothing came for 10 to 15 seconds, and loses nothing", function* (listeners) {
    const listener = yield* listeners.open(opening)
    expect(yield* next(listener)).toEqual([])
    for (const type of ["a", "b"]) {
      const fiber = yield* waitingFor(listener)
      yield* TestClock.adjust(9000)
      expect(fiber.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust(6000)
      expect(yield* Fiber.join(fiber)).toBe("heartbeat")
      yield* publish(type)
      yield* TestClock.adjust(1)
      expect(yield* next(listener)).toEqual([type])
    }
  })

  test("ends after ten minutes, a fifth more or less", function* (listeners) {
    const all = yield* Effect.replicateEffect(listeners.open(opening), 10)
    const lives: Array<number> = []
    for (const listener of all) {
      expect(yield* next(listener)).toEqual([])
      const life = Effect.gen(function* () {
        expect(yield* nextOther(listener)).toBe("over")
        lives.push(yield* Clock.currentTimeMillis)
      })
      yield* Effect.forkChild(life, { startImmediately: true })
    }
    yield* TestClock.adjust(480_000)
    expect(lives).toEqual([])
    for (let step = 0; step < 61; step++) yield* TestClock.adjust(4000)
    expect(lives).toHaveLength(10)
    expect(new Set(lives).size).toBeGreaterThan(3)
  })

  test("shares the answer with others of its grant, and ends with them alone", function* (listeners) {
    let asked = 0
    let isRevoked = false
    const isAllowed = Effect.sync(() => {
      asked++
      return !isRevoked
    })
    const shared = { ...opening, grant: "a", isAllowed }
    const alone = { ...opening, isAllowed }
    const requests = [shared, shared, alone, { ...opening, grant: "b" }, opening]
    const all = yield* Effect.forEach(requests, listeners.open)
    for (const listener of all) yield* next(listener)
    yield* TestClock.adjust(4000)
    expect(asked).toBe(2)
    const fibers = yield* Effect.forEach(all, waitingFor)
    isRevoked = true
    yield* TestClock.adjust(5000)
    const ended = fibers.map((fiber) => fiber.pollUnsafe() !== undefined)
    expect(ended).toEqual([true, true, true, false, false])
    for (const fiber of fibers.slice(0, 3)) expect(yield* Fiber.join(fiber)).toBe("refused")
    for (const listener of all.slice(0, 3)) expect(yield* next(listener)).toBe("refused")
  })

  const unknown: ReadonlyArray<readonly [string, ListenerRequest["isAllowed"]]> = [
    ["a store that does not answer", Effect.undefined],
    ["a host that does not answer", Effect.never],
  ]
  for (const [name, answer] of unknown) {
    test(`ends within ten seconds after it was allowed last, by ${name}`, function* (listeners) {
      let isAllowed: ListenerRequest["isAllowed"] = Effect.succeed(true)
      const listener = yield* listeners.open({
        ...opening,
        isAllowed: Effect.suspend(() => isAllowed),
      })
      const other = yield* listeners.open({ ...opening, client: "other" })
      expect(yield* next(listener)).toEqual([])
      expect(yield* next(other)).toEqual([])
      const ended = yield* forkOther(listener)
      const event = yield* forkOther(other)
      yield* passSeconds(9)
      isAllowed = answer
      let seconds = 0
      while (ended.pollUnsafe() === undefined && seconds < 20) {
        yield* TestClock.adjust(1000)
        seconds++
      }
      // The last check was at most four seconds before, with an answer up to a second old.
      expect(seconds).toBeGreaterThanOrEqual(3)
      expect(seconds).toBeLessThanOrEqual(9)
      expect(yield* Fiber.join(ended)).toBe("unavailable")
      // The listener with a known client goes on.
      yield* passSeconds(30)
      yield* publish("a")
      expect(yield* Fiber.join(event)).toEqual(["a"])
    })
  }

  test("goes on if it is known again in time that it may", function* (listeners) {
    let isAllowed: ListenerRequest["isAllowed"] = Effect.succeed(true)
    const listener = yield* listeners.open({
      ...opening,
      isAllowed: Effect.suspend(() => isAllowed),
    })
    yield* next(listener)
    for (let round = 0; round < 5; round++) {
      isAllowed = Effect.undefined
      yield* passSeconds(3)
      isAllowed = Effect.succeed(true)
      yield* passSeconds(5)
    }
    yield* publish("a")
    expect(yield* nextOther(listener)).toEqual(["a"])
  })

  test("ends when its project is deleted", function* (listeners) {
    const other = yield* listeners.open({ ...opening, projectId: otherId })
    const listener = yield* listeners.open(opening)
    yield* next(other)
    yield* next(listener)
    const fiber = yield* waitingFor(listener)
    const open = yield* waitingFor(other)
    yield* (yield* Memberships).deleteProject(projectId)
    expect(yield* Fiber.join(fiber)).toBe("refused")
    expect(open.pollUnsafe()).toBeUndefined()
  })

  test("ends when the feed is released, and when it is closed", function* (listeners) {
    const one = yield* listeners.open(opening)
    const other = yield* listeners.open(opening)
    yield* next(one)
    yield* next(other)
    const closed = yield* waitingFor(one)
    const released = yield* waitingFor(other)
    yield* one.close
    expect(yield* Fiber.join(closed)).toBe("closed")
    yield* (yield* Feed).release
    expect(yield* Fiber.join(released)).toBe("closing")
    expect(yield* next(one)).toBe("closed")
  })

  test("takes a slot until it is closed, or a minute after it has ended", function* (listeners) {
    const open = listeners.open(opening)
    const [first] = yield* Effect.replicateEffect(open, 10)
    expect(yield* Effect.flip(open)).toMatchObject({ _tag: "NoSlot" })
    yield* first?.close ?? Effect.void
    yield* first?.close ?? Effect.void
    yield* open
    expect(yield* Effect.flip(open)).toMatchObject({ _tag: "NoSlot" })
    // Failing to open takes none.
    const failing = listeners.open({ ...opening, client: "other", after: "never-was" })
    for (let count = 0; count < 11; count++) {
      expect(yield* Effect.flip(failing)).toMatchObject({ _tag: "CursorExpired" })
    }
    for (let step = 0; step < 200; step++) yield* TestClock.adjust(4000)
    yield* open
  })

  test("goes on without a gap when the store answers again", function* (listeners, reads) {
    const listener = yield* listeners.open(opening)
    yield* next(listener)
    reads.by = unavailable
    const fiber = yield* forkOther(listener)
    yield* publish("a")
    yield* passSeconds(20)
    expect(fiber.pollUnsafe()).toBeUndefined()
    reads.by = right
    yield* publish("b")
    yield* passSeconds(2)
    expect(yield* Fiber.join(fiber)).toEqual(["a", "b"])
  })

  const faults: Array<string> = []
  test(
    "goes on without a gap after defects of the store, which are reported once",
    function* (listeners, reads) {
      let isRevoked = false
      const watching = yield* listeners.open(opening)
      const reading = yield* listeners.open(opening)
      const revoked = yield* listeners.open({
        ...opening,
        isAllowed: Effect.sync(() => !isRevoked),
      })
      for (const one of [watching, reading, revoked]) expect(yield* next(one)).toEqual([])
      const watched = yield* waitingFor(watching)
      const refused = yield* waitingFor(revoked)
      reads.by = () => () => Effect.die("dead")
      // This one has no watch yet.
      const read = yield* waitingFor(reading)
      yield* publish("a")
      isRevoked = true
      yield* passSeconds(20)
      const messages = yield* Effect.forEach([refused, watched, read], Fiber.join)
      expect(messages).toEqual(["refused", "heartbeat", "heartbeat"])
      const others = yield* Effect.forEach([watching, reading], forkOther)
      yield* passSeconds(20)
      reads.by = right
      yield* publish("b")
      yield* passSeconds(2)
      for (const fiber of others) expect(yield* Fiber.join(fiber)).toEqual(["a", "b"])
      expect(faults.toSorted()).toEqual([
        "Events cannot be read for listeners",
        "Listeners cannot be checked",
        "New events cannot be read",
      ])
    },
    { onError: ({ message }) => void faults.push(message) },
  )
})

describe("a queue for one message", () => {
  it.effect("hands a message to whom waits, or keeps it until somebody comes", () =>
    Effect.gen(function* () {
      const queue = new SingleSlotQueue<string>()
      queue.put("a")
      expect(queue.isAwaited).toBe(false)
      expect(yield* queue.take).toBe("a")
      const fiber = yield* Effect.forkChild(queue.take, { startImmediately: true })
      expect(queue.isAwaited).toBe(true)
      queue.put("b")
      expect(queue.isAwaited).toBe(false)
      expect(yield* Fiber.join(fiber)).toBe("b")
      const leaving = yield* Effect.forkChild(queue.take, { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      queue.put("c")
      expect(yield* queue.take).toBe("c")
    }),
  )

  it.effect("loses no message: a second one is a defect", () =>
    Effect.gen(function* () {
      const queue = new SingleSlotQueue<string>()
      queue.put("a")
      expect(() => queue.put("b")).toThrow("a message replaced one that nobody has taken")
      expect(yield* queue.take).toBe("a")
    }),
  )

  it.effect("hands the last message again and again, in place of what waits", () =>
    Effect.gen(function* () {
      const queue = new SingleSlotQueue<string>()
      queue.put("a")
      queue.end("last")
      queue.end("later")
      expect(yield* queue.take).toBe("last")
      expect(yield* queue.take).toBe("last")
    }),
  )
})
