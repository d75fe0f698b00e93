import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { FeedStore } from "../../src/events/feed-store.ts"
import { feedStream } from "../../src/events/feed-stream.ts"
import { Feed, type Follower } from "../../src/events/feed.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, type StorePorts, createTenure, tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"

type Store = FeedStore["Service"]

/** Services on stores in memory, of which the feed may be another one. */
const services = (change: (right: Store) => Partial<Store> = (right) => right) =>
  tenureLayer({ expiry: false }).pipe(
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

const publish = (type: string, project = projectId) =>
  Effect.flatMap(Events, (events) => events.publish({ projectId: project, type, data: {} }))

const publishAll = (...types: ReadonlyArray<string>) =>
  Effect.forEach(types, (type) => publish(type))

const prepared = Effect.gen(function* () {
  const { createProject } = yield* Memberships
  yield* createProject(projectId)
  yield* createProject("p2")
  return yield* Feed
})

/** Declares a test with two projects. */
const test = <A, E>(
  name: string,
  run: (feed: Feed["Service"]) => Effect.Effect<A, E, Services | Scope.Scope>,
  layer = services(),
) => it.effect(name, () => Effect.provide(Effect.scoped(Effect.flatMap(prepared, run)), layer))

const typesOf = (events: ReadonlyArray<{ readonly type: string }>) => events.map(({ type }) => type)

/** Returns the types of the next events of a follower. */
const next = (follower: Follower) =>
  Effect.map(follower.next, (page) =>
    typesOf(Option.match(page, { onNone: () => [], onSome: ({ events }) => events })),
  )

/** Starts to wait for the next events, and returns when nothing else happens at this time. */
const waiting = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  yield* TestClock.adjust(1)
  expect(fiber.pollUnsafe()).toBeUndefined()
  return fiber
})

describe("read", () => {
  test("returns pages, each from the cursor of the one before", (feed) =>
    Effect.gen(function* () {
      yield* publishAll("a", "b", "c")
      const first = yield* feed.read({ projectId, after: "start", limit: 2 })
      expect(typesOf(first.events)).toEqual(["a", "b"])
      expect(first.isLast).toBe(false)
      const second = yield* feed.read({ projectId, after: first.cursor })
      expect(typesOf(second.events)).toEqual(["c"])
      expect(second.isLast).toBe(true)
    }))

  test("begins now without a cursor", (feed) =>
    Effect.gen(function* () {
      yield* publish("a")
      const now = yield* feed.read({ projectId })
      expect(now.events).toEqual([])
      yield* publish("b")
      expect(typesOf((yield* feed.read({ projectId, after: now.cursor })).events)).toEqual(["b"])
    }))

  test("returns the types that were asked for, up to the limit", (feed) =>
    Effect.gen(function* () {
      yield* publishAll("a", "b", "a", "c", "a", "b")
      const types = ["a", "b"]
      const seen: Array<string> = []
      let after = "start"
      for (let isLast = false; !isLast;) {
        const page = yield* feed.read({ projectId, after, types, limit: 2 })
        expect(page.events.length).toBeLessThanOrEqual(2)
        seen.push(...typesOf(page.events))
        after = page.cursor
        isLast = page.isLast
      }
      expect(seen).toEqual(["a", "b", "a", "a", "b"])
    }))

  test(
    "looks through a bounded number of events for the types that were asked for",
    (feed) =>
      Effect.gen(function* () {
        yield* Effect.forEach(Array.from({ length: 30 }), () => publish("a"))
        yield* publish("b")
        const first = yield* feed.read({ projectId, after: "start", types: ["b"] })
        expect(first).toMatchObject({ events: [], isLast: false })
        let page = first
        for (let count = 0; count < 10 && page.events.length === 0; count++) {
          page = yield* feed.read({ projectId, after: page.cursor, types: ["b"] })
        }
        expect(typesOf(page.events)).toEqual(["b"])
      }),
    services(({ read }) => ({
      read: (projects, from, size) => read(projects, from, { ...size, events: 1 }),
    })),
  )

  const tailReads = Latch.makeUnsafe(true)
  test(
    "returns no event twice to whom begins to wait after others",
    (feed) =>
      Effect.gen(function* () {
        yield* waiting(feed.read({ projectId: "p2", waitMillis: 20_000 }))
        yield* tailReads.close
        yield* TestClock.adjust(250)
        yield* publish("a")
        const { cursor, events } = yield* feed.read({ projectId, after: "start" })
        expect(typesOf(events)).toEqual(["a"])
        const later = yield* waiting(feed.read({ projectId, after: cursor, waitMillis: 5000 }))
        yield* tailReads.open
        yield* TestClock.adjust(1)
        yield* publish("b")
        expect(typesOf((yield* Fiber.join(later)).events)).toEqual(["b"])
      }),
    services(({ read }) => ({
      read: (projects, from, size) =>
        Effect.tap(read(projects, from, size), () =>
          size.events === 500 ? tailReads.await : Effect.void,
        ),
    })),
  )

  test("waits for an event, as long as it is told to", (feed) =>
    Effect.gen(function* () {
      const read = feed.read({ projectId, waitMillis: 5000 })
      const lucky = yield* waiting(read)
      yield* publish("other", "p2")
      yield* publish("a")
      expect(typesOf((yield* Fiber.join(lucky)).events)).toEqual(["a"])
      const unlucky = yield* waiting(read)
      yield* TestClock.adjust(5000)
      const page = yield* Fiber.join(unlucky)
      expect(page.events).toEqual([])
      yield* publish("b")
      expect(typesOf((yield* feed.read({ projectId, after: page.cursor })).events)).toEqual(["b"])
    }))

  test("does not wait once the feed is released", (feed) =>
    Effect.gen(function* () {
      const fiber = yield* waiting(feed.read({ projectId, waitMillis: 20_000 }))
      yield* feed.release
      expect((yield* Fiber.join(fiber)).events).toEqual([])
      expect((yield* feed.read({ projectId, waitMillis: 20_000 })).events).toEqual([])
    }))

  test("refuses what is invalid", (feed) =>
    Effect.gen(function* () {
      const invalid = [
        { after: "" },
        { after: "a b" },
        { limit: 0 },
        { limit: 1001 },
        { waitMillis: -1 },
        { waitMillis: 20_001 },
        { types: [] },
        { types: ["a b"] },
      ]
      for (const query of invalid) {
        const error = yield* Effect.flip(feed.read({ projectId, ...query }))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: Object.keys(query)[0] })
      }
      const gone = yield* Effect.flip(feed.read({ projectId, after: "never-was" }))
      expect(gone._tag).toBe("CursorExpired")
      const missing = yield* Effect.flip(feed.read({ projectId: "nowhere" }))
      expect(missing._tag).toBe("ProjectNotFound")
    }))
})

/** Takes events until there are as many as asked for. */
const take = Effect.fnUntraced(function* (follower: Follower, count: number) {
  const types: Array<string> = []
  while (types.length < count) types.push(...(yield* next(follower)))
  return types
})

/** Counts the reads of a feed, which wait while the gate is closed. */
const gated = () => {
  const gate = Latch.makeUnsafe(true)
  const reads: Array<ReadonlyArray<string>> = []
  const layer = services(({ read }) => ({
    read: (projects, from, size) =>
      Effect.suspend(() => {
        reads.push(projects)
        return gate.whenOpen(read(projects, from, size))
      }),
  }))
  return { gate, layer, reads }
}

describe("follow", () => {
  test("returns what is stored, and then what comes", (feed) =>
    Effect.gen(function* () {
      yield* publishAll("a", "b")
      const follower = yield* feed.follow({ projectId, after: "start" })
      expect(yield* next(follower)).toEqual(["a", "b"])
      const fiber = yield* waiting(take(follower, 3))
      yield* publish("other", "p2")
      yield* publish("c")
      yield* publishAll("d", "e")
      expect(yield* Fiber.join(fiber)).toEqual(["c", "d", "e"])
    }))

  test("goes on from the cursor of any event", (feed) =>
    Effect.gen(function* () {
      const follower = yield* feed.follow({ projectId })
      const fiber = yield* waiting(follower.next)
      yield* publish("a")
      const page = Option.getOrThrow(yield* Fiber.join(fiber))
      yield* publishAll("b", "c")
      for (const after of [page.cursor, page.events[0]?.cursor]) {
        const again = yield* feed.follow({ projectId, after })
        expect(yield* take(again, 2)).toEqual(["b", "c"])
      }
    }))

  const crowd = gated()
  test(
    "reads once for all who follow",
    (feed) =>
      Effect.gen(function* () {
        const followers = yield* Effect.all(
          Array.from({ length: 50 }, () => feed.follow({ projectId })),
        )
        const fibers = yield* Effect.forEach(followers, (one) => waiting(next(one)))
        crowd.reads.length = 0
        yield* publish("a")
        for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toEqual(["a"])
        expect(crowd.reads.length).toBeLessThan(5)
      }),
    crowd.layer,
  )

  const idle = gated()
  test(
    "does not read while nobody waits",
    (feed) =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const follower = yield* Scope.provide(feed.follow({ projectId }), scope)
        const fiber = yield* waiting(next(follower))
        yield* publish("a")
        yield* Fiber.join(fiber)
        yield* Scope.close(scope, Effect.runSync(Effect.exit(Effect.void)))
        yield* TestClock.adjust(1000)
        idle.reads.length = 0
        yield* publish("b")
        yield* TestClock.adjust(60_000)
        expect(idle.reads).toEqual([])
      }),
    idle.layer,
  )

  const slow = gated()
  test(
    "returns everything to one that is slower than the events, and to one that joins meanwhile",
    (feed) =>
      Effect.gen(function* () {
        const follower = yield* feed.follow({ projectId })
        const fiber = yield* waiting(next(follower))
        yield* publish("0")
        expect(yield* Fiber.join(fiber)).toEqual(["0"])
        const types = Array.from({ length: 100 }, (_, index) => String(index + 1))
        for (const type of types) {
          yield* publish(type)
          yield* TestClock.adjust(1000)
        }
        expect(yield* take(follower, types.length)).toEqual(types)
        // A read of all others is under way while another one joins.
        slow.gate.closeUnsafe()
        yield* publish("during")
        yield* TestClock.adjust(1000)
        const joining = yield* Effect.forkChild(
          Effect.flatMap(feed.follow({ projectId, after: "start" }), (other) => take(other, 102)),
          { startImmediately: true },
        )
        slow.gate.openUnsafe()
        expect(yield* Fiber.join(joining)).toEqual(["0", ...types, "during"])
        expect(yield* next(follower)).toEqual(["during"])
      }),
    slow.layer,
  )

  let isDown = false
  test(
    "goes on when the store answers again",
    (feed) =>
      Effect.gen(function* () {
        const follower = yield* feed.follow({ projectId })
        const fiber = yield* waiting(next(follower))
        isDown = true
        yield* publish("a")
        yield* TestClock.adjust(10_000)
        expect(fiber.pollUnsafe()).toBeUndefined()
        isDown = false
        yield* TestClock.adjust(1000)
        expect(yield* Fiber.join(fiber)).toEqual(["a"])
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
})

describe("a stream", () => {
  test("of Effect has the events that are stored, and those that come", (feed) =>
    Effect.gen(function* () {
      yield* publishAll("a", "b")
      const types = feedStream({ projectId, after: "start" }).pipe(
        Stream.map(({ type }) => type),
        Stream.runCollect,
      )
      const fiber = yield* waiting(types)
      yield* publish("c")
      yield* TestClock.adjust(1)
      yield* feed.release
      expect(yield* Fiber.join(fiber)).toEqual(["a", "b", "c"])
    }))

  it("can be iterated, and ends when the signal aborts", async () => {
    const tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject(projectId)
    const send = (type: string) => tenure.events.publish({ projectId, type, data: {} })
    await send("a")
    const ending = new AbortController()
    const types: Array<string> = []
    const query = { projectId, after: "start", signal: ending.signal }
    for await (const event of tenure.events.stream(query)) {
      types.push(event.type)
      if (event.type === "a") await send("b")
      else setImmediate(() => ending.abort())
    }
    expect(types).toEqual(["a", "b"])
    await tenure.close()
  })

  it("ends when Tenure is closed", async () => {
    const tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject(projectId)
    const [first] = [tenure.events.stream({ projectId })[Symbol.asyncIterator]().next()]
    await new Promise((resolve) => setImmediate(resolve))
    await tenure.close()
    expect(await first).toMatchObject({ done: true })
  })

  it("throws why it cannot go on", async () => {
    const tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject(projectId)
    const stream = tenure.events.stream({ projectId, after: "never-was" })
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      _tag: "CursorExpired",
    })
    await tenure.close()
  })
})

describe("the reader that all share", () => {
  const asked: Array<ReadonlyArray<string>> = []
  test(
    "asks for the projects alone that somebody follows, however many came and went",
    (feed) =>
      Effect.gen(function* () {
        const follower = yield* feed.follow({ projectId })
        yield* waiting(next(follower))
        for (let count = 0; count < 100; count++) {
          const other = yield* feed.follower({ projectId: "p2" })
          yield* waiting(next(other))
          other.stop()
        }
        asked.length = 0
        yield* TestClock.adjust(1000)
        expect(asked.length).toBeGreaterThan(0)
        expect(new Set(asked.flat())).toEqual(new Set([projectId]))
      }),
    services(({ read }) => ({
      read: (projects, from, size) => {
        asked.push(projects)
        return read(projects, from, size)
      },
    })),
  )

  let found = 0
  let reads = 0
  test(
    "reads at most 125 times a second while few events come, and 40 while many do",
    (feed) =>
      Effect.gen(function* () {
        yield* publish("a")
        const follower = yield* feed.follow({ projectId })
        yield* Effect.forkChild(Effect.forever(follower.next), { startImmediately: true })
        yield* TestClock.adjust(1000)
        for (const [events, most] of [
          [1, 125],
          [100, 40],
        ] as const) {
          found = events
          yield* TestClock.adjust(1000)
          reads = 0
          yield* TestClock.adjust(1000)
          expect(reads).toBeGreaterThan(0)
          expect(reads).toBeLessThanOrEqual(most)
        }
      }),
    services(({ read }) => ({
      read: (projects, from, size) => {
        reads++
        return Effect.flatMap(read(projects, from, size), (page) =>
          found === 0
            ? Effect.succeed(page)
            : Effect.map(read(projects, "start", size), ({ events }) => ({
                ...page,
                events: Array.from({ length: found }, () => events).flat(),
              })),
        )
      },
    })),
  )
})
