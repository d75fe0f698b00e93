import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { feedStream } from "../../src/events/feed-stream.ts"
import { Feed } from "../../src/events/feed.ts"
import type { Follower } from "../../src/events/follower.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"
import {
  otherId,
  projectId,
  publish,
  publishAll,
  right,
  testsOf,
  unavailable,
  waiting,
} from "./following.ts"

const test = testsOf(Feed)

const typesOf = (events: ReadonlyArray<{ readonly type: string }>) => events.map(({ type }) => type)

/** Returns the types in a follower's next page. */
const next = (follower: Follower) =>
  Effect.map(follower.next, (page) =>
    typesOf(Option.match(page, { onNone: () => [], onSome: ({ events }) => events })),
  )

describe("read", () => {
  test("begins now without a cursor", function* (feed) {
    yield* publish("a")
    const now = yield* feed.read({ projectId })
    expect(now.events).toEqual([])
    yield* publish("b")
    expect(typesOf((yield* feed.read({ projectId, after: now.cursor })).events)).toEqual(["b"])
  })

  for (const [name, types, expected] of [
    ["all events", undefined, ["a", "b", "a", "c", "a", "b"]],
    ["the types that were asked for", ["a", "b"], ["a", "b", "a", "a", "b"]],
  ] as const) {
    test(`returns pages of ${name}, each from the cursor of the one before`, function* (feed) {
      yield* publishAll("a", "b", "a", "c", "a", "b")
      const pages: Array<ReadonlyArray<string>> = []
      let after = "start"
      for (let isLast = false; !isLast;) {
        const page = yield* feed.read({ projectId, after, types, limit: 2 })
        pages.push(typesOf(page.events))
        after = page.cursor
        isLast = page.isLast
      }
      expect(Math.max(...pages.map(({ length }) => length))).toBe(2)
      expect(pages.flat()).toEqual(expected)
    })
  }

  test("looks through a bounded number of events for the types", function* (feed, reads) {
    reads.by = (read) => (projects, from, size) => read(projects, from, { ...size, events: 1 })
    yield* Effect.forEach(Array.from({ length: 30 }), () => publish("a"))
    yield* publish("b")
    let page = yield* feed.read({ projectId, after: "start", types: ["b"] })
    expect(page).toMatchObject({ events: [], isLast: false })
    for (let count = 0; count < 10 && page.events.length === 0; count++) {
      page = yield* feed.read({ projectId, after: page.cursor, types: ["b"] })
    }
    expect(typesOf(page.events)).toEqual(["b"])
  })

  test("returns no event twice to whom begins to wait after others", function* (feed, reads) {
    const tailReads = Latch.makeUnsafe(true)
    reads.by = (read) => (projects, from, size) =>
      Effect.tap(read(projects, from, size), () =>
        size.events === 500 ? tailReads.await : Effect.void,
      )
    yield* waiting(feed.read({ projectId: otherId, waitMillis: 20_000 }))
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
  })

  test("waits for an event, as long as it is told to", function* (feed) {
    const read = feed.read({ projectId, waitMillis: 5000 })
    const lucky = yield* waiting(read)
    yield* publish("other", otherId)
    yield* publish("a")
    expect(typesOf((yield* Fiber.join(lucky)).events)).toEqual(["a"])
    const unlucky = yield* waiting(read)
    yield* TestClock.adjust(5000)
    const page = yield* Fiber.join(unlucky)
    expect(page.events).toEqual([])
    yield* publish("b")
    expect(typesOf((yield* feed.read({ projectId, after: page.cursor })).events)).toEqual(["b"])
  })

  test("does not wait once the feed is released", function* (feed) {
    const fiber = yield* waiting(feed.read({ projectId, waitMillis: 20_000 }))
    yield* feed.release
    expect((yield* Fiber.join(fiber)).events).toEqual([])
    expect((yield* feed.read({ projectId, waitMillis: 20_000 })).events).toEqual([])
  })

  test("refuses what is invalid", function* (feed) {
    for (const query of [
      { after: "" },
      { after: "a b" },
      { limit: 0 },
      { limit: 1001 },
      { waitMillis: -1 },
      { waitMillis: 20_001 },
      { types: [] },
      { types: ["a b"] },
    ]) {
      const error = yield* Effect.flip(feed.read({ projectId, ...query }))
      expect(error).toMatchObject({ _tag: "InvalidInput", field: Object.keys(query)[0] })
    }
    const gone = yield* Effect.flip(feed.read({ projectId, after: "never-was" }))
    expect(gone._tag).toBe("CursorExpired")
    const missing = yield* Effect.flip(feed.read({ projectId: "nowhere" }))
    expect(missing._tag).toBe("ProjectNotFound")
  })
})

/** Takes events until there are as many as asked for. */
const take = Effect.fnUntraced(function* (follower: Follower, count: number) {
  const types: Array<string> = []
  while (types.length < count) types.push(...(yield* next(follower)))
  return types
})

describe("follow", () => {
  test("goes on from the cursor of any event", function* (feed) {
    const follower = yield* feed.follow({ projectId })
    const fiber = yield* waiting(follower.next)
    yield* publish("a")
    const page = Option.getOrThrow(yield* Fiber.join(fiber))
    yield* publishAll("b", "c")
    for (const after of [page.cursor, page.events[0]?.cursor]) {
      const again = yield* feed.follow({ projectId, after })
      expect(yield* take(again, 2)).toEqual(["b", "c"])
    }
  })

  test("reads once for all who follow", function* (feed, reads) {
    const followers = yield* Effect.replicateEffect(feed.follow({ projectId }), 50)
    const fibers = yield* Effect.forEach(followers, (one) => waiting(next(one)))
    reads.asked.length = 0
    yield* publish("a")
    for (const fiber of fibers) expect(yield* Fiber.join(fiber)).toEqual(["a"])
    expect(reads.asked.length).toBeLessThan(5)
  })

  test("does not read while nobody waits", function* (feed, reads) {
    const scope = yield* Scope.make()
    const follower = yield* Scope.provide(feed.follow({ projectId }), scope)
    const fiber = yield* waiting(next(follower))
    yield* publish("a")
    yield* Fiber.join(fiber)
    yield* Scope.close(scope, Exit.void)
    yield* TestClock.adjust(1000)
    reads.asked.length = 0
    yield* publish("b")
    yield* TestClock.adjust(60_000)
    expect(reads.asked).toEqual([])
  })

  test("returns everything to one that is slower than the events, or joins meanwhile", function* (feed, reads) {
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
    // The other followers' read is under way while another follower joins.
    const gate = Latch.makeUnsafe()
    reads.by =
      (read) =>
      (...query) =>
        gate.whenOpen(read(...query))
    yield* publish("during")
    yield* TestClock.adjust(1000)
    const joining = yield* Effect.forkChild(
      Effect.flatMap(feed.follow({ projectId, after: "start" }), (other) => take(other, 102)),
      { startImmediately: true },
    )
    gate.openUnsafe()
    expect(yield* Fiber.join(joining)).toEqual(["0", ...types, "during"])
    expect(yield* next(follower)).toEqual(["during"])
  })

  test("goes on when the store answers again", function* (feed, reads) {
    const follower = yield* feed.follow({ projectId })
    const fiber = yield* waiting(next(follower))
    reads.by = unavailable
    yield* publish("a")
    yield* TestClock.adjust(10_000)
    expect(fiber.pollUnsafe()).toBeUndefined()
    reads.by = right
    yield* TestClock.adjust(1000)
    expect(yield* Fiber.join(fiber)).toEqual(["a"])
  })
})

describe("the reader that all share", () => {
  test("asks for the projects alone that somebody follows", function* (feed, reads) {
    const follower = yield* feed.follow({ projectId })
    yield* waiting(next(follower))
    for (let count = 0; count < 100; count++) {
      const other = yield* feed.follower({ projectId: otherId })
      yield* waiting(next(other))
      other.stop()
    }
    reads.asked.length = 0
    yield* TestClock.adjust(1000)
    expect(reads.asked.length).toBeGreaterThan(0)
    expect(new Set(reads.asked.flat())).toEqual(new Set([projectId]))
  })

  test("reads at most 125 times a second while few events come, and 40 while many do", function* (feed, reads) {
    yield* publish("a")
    const follower = yield* feed.follow({ projectId })
    yield* Effect.forkChild(Effect.forever(follower.next), { startImmediately: true })
    yield* TestClock.adjust(1000)
    for (const [found, most] of [
      [1, 125],
      [100, 40],
    ] as const) {
      reads.by = (read) => (projects, from, size) =>
        Effect.zipWith(
          read(projects, from, size),
          read(projects, "start", size),
          (page, { events }) => ({
            ...page,
            events: Array.from({ length: found }, () => events).flat(),
          }),
        )
      yield* TestClock.adjust(1000)
      reads.asked.length = 0
      yield* TestClock.adjust(1000)
      expect(reads.asked.length).toBeGreaterThan(0)
      expect(reads.asked.length).toBeLessThanOrEqual(most)
    }
  })
})

describe("a stream", () => {
  test("of Effect has the events that are stored, and those that come", function* (feed) {
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
  })

  const withTenure = (name: string, run: (tenure: Tenure) => Promise<void>): void =>
    it(name, async () => {
      const tenure = await createTenure({ stores: memory() })
      await tenure.memberships.createProject(projectId)
      await run(tenure)
      await tenure.close()
    })

  withTenure("can be iterated, and ends when the signal aborts", async ({ events }) => {
    const send = (type: string) => events.publish({ projectId, type, data: {} })
    await send("a")
    const ending = new AbortController()
    const types: Array<string> = []
    const query = { projectId, after: "start", signal: ending.signal }
    for await (const event of events.stream(query)) {
      types.push(event.type)
      if (event.type === "a") await send("b")
      else setImmediate(() => ending.abort())
    }
    expect(types).toEqual(["a", "b"])
  })

  withTenure("ends when Tenure is closed", async (tenure) => {
    const first = tenure.events.stream({ projectId })[Symbol.asyncIterator]().next()
    await new Promise((resolve) => setImmediate(resolve))
    await tenure.close()
    expect(await first).toMatchObject({ done: true })
  })

  withTenure("throws why it cannot go on", async ({ events }) => {
    const stream = events.stream({ projectId, after: "never-was" })
    const first = stream[Symbol.asyncIterator]().next()
    await expect(first).rejects.toMatchObject({ _tag: "CursorExpired" })
  })
})
