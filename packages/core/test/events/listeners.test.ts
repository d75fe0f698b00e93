import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { FeedStore } from "../../src/events/feed-store.ts"
import { Feed } from "../../src/events/feed.ts"
import {
  type Listener,
  type ListenerMessage,
  type ListenerRequest,
  Listeners,
} from "../../src/events/listeners.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import {
  type Services,
  type StorePorts,
  type TenureOptions,
  tenureLayer,
} from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"

type Store = FeedStore["Service"]

/** Services on stores in memory, of which the feed may be another one. */
const services = (
  change: (right: Store) => Partial<Store> = (right) => right,
  options?: TenureOptions,
) =>
  tenureLayer({ expiry: false, ...options }).pipe(
    Layer.provide(
      Layer.effectContext(
        Effect.map(Effect.context<StorePorts>(), (context) => {
          const right = Context.get(context, FeedStore)
          return Context.add(context, FeedStore, { ...right, ...change(right) })
        }),
      ).pipe(Layer.provide(memory())),
    ),
  )

const projectId = "p1"

const opening = { client: "key", projectId, isAllowed: Effect.succeed(true) }

const prepared = Effect.gen(function* () {
  yield* (yield* Memberships).createProject(projectId)
  return yield* Listeners
})

/** Declares a test with a project. */
const test = <A, E>(
  name: string,
  run: (listeners: Listeners["Service"]) => Effect.Effect<A, E, Services | Scope.Scope>,
  layer = services(),
) => it.effect(name, () => Effect.provide(Effect.scoped(Effect.flatMap(prepared, run)), layer))

const publish = (type: string, data: unknown = {}) =>
  Effect.flatMap(Events, (events) => events.publish({ projectId, type, data }))

/** What a test sees of a message: the types of events, or the reason of an end. */
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

/** Starts to wait for a message, and returns when nothing else happens at this time. */
const waiting = Effect.fnUntraced(function* (listener: Listener) {
  const fiber = yield* Effect.forkChild(next(listener), { startImmediately: true })
  yield* TestClock.adjust(1)
  expect(fiber.pollUnsafe()).toBeUndefined()
  return fiber
})

/** Takes all heartbeats, and returns what comes then. */
const nextOther = (listener: Listener): Effect.Effect<ReturnType<typeof seen>> =>
  Effect.flatMap(next(listener), (message) =>
    message === "heartbeat" ? nextOther(listener) : Effect.succeed(message),
  )

describe("a listener", () => {
  test("gets the place where it starts, what is stored, and what comes", (listeners) =>
    Effect.gen(function* () {
      yield* publish("a")
      const now = yield* listeners.open(opening)
      const all = yield* listeners.open({ ...opening, after: "start" })
      const [first] = [yield* now.next]
      expect(first).toMatchObject({ _tag: "Events", events: [] })
      expect(yield* next(all)).toEqual(["a"])
      const fibers = [yield* waiting(now), yield* waiting(all)]
      yield* publish("b")
      for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toEqual(["b"])
      const after = first._tag === "Events" ? first.cursor : undefined
      const resumed = yield* listeners.open({ ...opening, after })
      expect(yield* next(resumed)).toEqual(["b"])
    }))

  test("gets at most 64 KiB at a time, and nothing twice", (listeners) =>
    Effect.gen(function* () {
      const data = "x".repeat(30_000)
      for (const type of ["a", "b", "c", "d", "e", "f", "g"]) yield* publish(type, data)
      const listener = yield* listeners.open({ ...opening, after: "start" })
      expect(yield* next(listener)).toEqual(["a", "b", "c"])
      expect(yield* next(listener)).toEqual(["d", "e", "f"])
      expect(yield* next(listener)).toEqual(["g"])
      // What comes while the listener waits is cut, too.
      const fiber = yield* waiting(listener)
      const types = ["h", "i", "j", "k", "l", "m", "n"]
      yield* Effect.forEach(types, (type) => publish(type, data), { concurrency: "unbounded" })
      const live: Array<string> = []
      for (let page = yield* Fiber.join(fiber); live.length < types.length;) {
        expect(page.length).toBeLessThanOrEqual(3)
        live.push(...page)
        if (live.length < types.length) page = yield* next(listener)
      }
      expect(live).toEqual(types)
    }))

  test("gets a heartbeat when nothing came for 10 to 15 seconds, and loses nothing by it", (listeners) =>
    Effect.gen(function* () {
      const listener = yield* listeners.open(opening)
      expect(yield* next(listener)).toEqual([])
      for (const type of ["a", "b"]) {
        const fiber = yield* waiting(listener)
        yield* TestClock.adjust(9000)
        expect(fiber.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust(6000)
        expect(yield* Fiber.join(fiber)).toBe("heartbeat")
        yield* publish(type)
        yield* TestClock.adjust(1)
        expect(yield* next(listener)).toEqual([type])
      }
    }))

  test("ends after ten minutes, a fifth more or less", (listeners) =>
    Effect.gen(function* () {
      const all = yield* Effect.replicateEffect(listeners.open(opening), 10)
      for (const listener of all) expect(yield* next(listener)).toEqual([])
      const lives: Array<number> = []
      for (const [index, listener] of all.entries()) {
        yield* Effect.forkChild(
          Effect.tap(nextOther(listener), (reason) =>
            Effect.clockWith((clock) =>
              Effect.sync(() => {
                expect(reason).toBe("over")
                lives[index] = clock.currentTimeMillisUnsafe()
              }),
            ),
          ),
          { startImmediately: true },
        )
      }
      yield* TestClock.adjust(480_000)
      expect(lives).toEqual([])
      for (let step = 0; step < 61; step++) yield* TestClock.adjust(4000)
      expect(lives.filter(Number.isFinite)).toHaveLength(10)
      expect(new Set(lives).size).toBeGreaterThan(3)
    }))

  let isAllowed = true
  test("ends within ten seconds when it is not allowed any more", (listeners) =>
    Effect.gen(function* () {
      const listener = yield* listeners.open({
        ...opening,
        isAllowed: Effect.sync(() => isAllowed),
      })
      yield* next(listener)
      const fiber = yield* waiting(listener)
      yield* TestClock.adjust(4000)
      expect(fiber.pollUnsafe()).toBeUndefined()
      isAllowed = false
      yield* TestClock.adjust(5000)
      expect(yield* Fiber.join(fiber)).toBe("refused")
      expect(yield* next(listener)).toBe("refused")
    }))

  test("shares the answer with others of its grant, and ends with them alone", (listeners) =>
    Effect.gen(function* () {
      let asked = 0
      let isRevoked = false
      const answer = Effect.sync(() => {
        asked++
        return !isRevoked
      })
      const shared = { ...opening, grant: "a", isAllowed: answer }
      const all = [
        yield* listeners.open(shared),
        yield* listeners.open(shared),
        yield* listeners.open({ ...opening, grant: "b" }),
        yield* listeners.open(opening),
      ]
      for (const listener of all) yield* next(listener)
      yield* TestClock.adjust(4000)
      expect(asked).toBe(1)
      const fibers = yield* Effect.forEach(all, waiting)
      isRevoked = true
      yield* TestClock.adjust(5000)
      const ended = fibers.map((fiber) => fiber.pollUnsafe() !== undefined)
      expect(ended).toEqual([true, true, false, false])
      for (const fiber of fibers.slice(0, 2)) expect(yield* Fiber.join(fiber)).toBe("refused")
    }))

  const unknown: ReadonlyArray<readonly [string, Effect.Effect<boolean | undefined>]> = [
    ["a store that does not answer", Effect.undefined],
    ["a host that does not answer", Effect.never],
  ]
  for (const [name, answer] of unknown) {
    let now: ListenerRequest["isAllowed"] = Effect.succeed(true)
    test(`ends within ten seconds after it was allowed last, by ${name}`, (listeners) =>
      Effect.gen(function* () {
        const others = { ...opening, client: "other" }
        const [listener, other] = [
          yield* listeners.open({ ...opening, isAllowed: Effect.suspend(() => now) }),
          yield* listeners.open(others),
        ]
        expect(yield* next(listener)).toEqual([])
        expect(yield* next(other)).toEqual([])
        const ended = yield* Effect.forkChild(nextOther(listener), { startImmediately: true })
        const event = yield* Effect.forkChild(nextOther(other), { startImmediately: true })
        for (let second = 0; second < 9; second++) yield* TestClock.adjust(1000)
        now = answer
        let seconds = 0
        while (ended.pollUnsafe() === undefined && seconds < 20) {
          yield* TestClock.adjust(1000)
          seconds++
        }
        // It was asked four seconds before at the earliest, for what was known a second earlier.
        expect(seconds).toBeGreaterThanOrEqual(3)
        expect(seconds).toBeLessThanOrEqual(9)
        expect(yield* Fiber.join(ended)).toBe("unavailable")
        // Whose client is known goes on.
        for (let second = 0; second < 30; second++) yield* TestClock.adjust(1000)
        yield* publish("a")
        expect(yield* Fiber.join(event)).toEqual(["a"])
      }))
  }

  let interruption: ListenerRequest["isAllowed"] = Effect.succeed(true)
  test("goes on if it is known again in time that it may", (listeners) =>
    Effect.gen(function* () {
      const listener = yield* listeners.open({
        ...opening,
        isAllowed: Effect.suspend(() => interruption),
      })
      yield* next(listener)
      for (let round = 0; round < 5; round++) {
        interruption = Effect.undefined
        for (let second = 0; second < 3; second++) yield* TestClock.adjust(1000)
        interruption = Effect.succeed(true)
        for (let second = 0; second < 5; second++) yield* TestClock.adjust(1000)
      }
      yield* publish("a")
      expect(yield* nextOther(listener)).toEqual(["a"])
    }))

  test("ends when its project is deleted", (listeners) =>
    Effect.gen(function* () {
      yield* (yield* Memberships).createProject("p2")
      const other = yield* listeners.open({ ...opening, projectId: "p2" })
      const listener = yield* listeners.open(opening)
      yield* next(other)
      yield* next(listener)
      const fiber = yield* waiting(listener)
      const open = yield* waiting(other)
      yield* (yield* Memberships).deleteProject(projectId)
      expect(yield* Fiber.join(fiber)).toBe("refused")
      expect(open.pollUnsafe()).toBeUndefined()
    }))

  test("ends when the feed is released, and when it is closed", (listeners) =>
    Effect.gen(function* () {
      const one = yield* listeners.open(opening)
      const other = yield* listeners.open(opening)
      yield* next(one)
      yield* next(other)
      const fibers = [yield* waiting(one), yield* waiting(other)]
      yield* one.close
      expect(yield* Effect.forEach(fibers.slice(0, 1), Fiber.join)).toEqual(["closed"])
      yield* (yield* Feed).release
      expect(yield* Effect.forEach(fibers.slice(1), Fiber.join)).toEqual(["closing"])
      expect(yield* next(one)).toBe("closed")
    }))

  test("takes a slot until it is closed, or a minute after it has ended", (listeners) =>
    Effect.gen(function* () {
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
    }))

  let isDown = false
  test(
    "goes on without a gap when the store answers again",
    (listeners) =>
      Effect.gen(function* () {
        const listener = yield* listeners.open(opening)
        yield* next(listener)
        isDown = true
        const fiber = yield* Effect.forkChild(nextOther(listener), { startImmediately: true })
        yield* publish("a")
        for (let step = 0; step < 20; step++) yield* TestClock.adjust(1000)
        expect(fiber.pollUnsafe()).toBeUndefined()
        isDown = false
        yield* publish("b")
        for (let step = 0; step < 2; step++) yield* TestClock.adjust(1000)
        expect(yield* Fiber.join(fiber)).toEqual(["a", "b"])
      }),
    services(({ read }) => ({
      read: (projects, from, size) =>
        Effect.suspend(() =>
          isDown
            ? Effect.fail(new StoreUnavailable({ cause: "down" }))
            : read(projects, from, size),
        ),
    })),
  )

  let isDead = false
  let isRevoked = false
  const faults: Array<string> = []
  test(
    "goes on without a gap after defects of the store, which are reported once",
    (listeners) =>
      Effect.gen(function* () {
        const advance = Effect.replicateEffect(TestClock.adjust(1000), 20)
        const watching = yield* listeners.open(opening)
        const reading = yield* listeners.open(opening)
        const revoked = yield* listeners.open({
          ...opening,
          isAllowed: Effect.sync(() => !isRevoked),
        })
        for (const one of [watching, reading, revoked]) expect(yield* next(one)).toEqual([])
        const fibers = [yield* waiting(watching), yield* waiting(revoked)]
        isDead = true
        // This one has no watch yet.
        fibers.push(yield* waiting(reading))
        yield* publish("a")
        isRevoked = true
        yield* advance
        expect(yield* Effect.forEach(fibers.splice(1, 1), Fiber.join)).toEqual(["refused"])
        expect(yield* Effect.forEach(fibers, Fiber.join)).toEqual(["heartbeat", "heartbeat"])
        const later = [watching, reading].map((one) => Effect.forkChild(nextOther(one)))
        const others = yield* Effect.all(later)
        yield* advance
        isDead = false
        yield* publish("b")
        for (let step = 0; step < 2; step++) yield* TestClock.adjust(1000)
        for (const fiber of others) expect(yield* Fiber.join(fiber)).toEqual(["a", "b"])
        expect(faults.toSorted()).toEqual([
          "Events cannot be read for listeners",
          "Listeners cannot be checked",
          "New events cannot be read",
        ])
      }),
    services(
      ({ read }) => ({
        read: (projects, from, size) =>
          Effect.suspend(() => (isDead ? Effect.die("dead") : read(projects, from, size))),
      }),
      { onError: ({ message }) => void faults.push(message) },
    ),
  )
})
