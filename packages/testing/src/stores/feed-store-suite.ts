/** Certifies a `FeedStore`. */

import { expect } from "@effect/vitest"
import {
  type Event,
  FeedCursor,
  type FeedPageSize,
  type FeedStart,
  FeedStore,
  MembershipStore,
  Outbox,
  ProjectId,
  type StorePorts,
} from "@tenure/core/store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import { change, event, in2027, p1, p2, u1 } from "../support/fixtures.ts"
import { HostTransaction, type StoreTests, undone } from "./declare.ts"
import { publishMany } from "./outbox/steps.ts"
import { createProjects, expectFailure, firstOf, idsOf } from "./steps.ts"

const large: FeedPageSize = { events: 100, bytes: 1_000_000 }

/** Prepares a feed for two projects. */
const prepared = Effect.gen(function* () {
  yield* createProjects
  return { feed: yield* FeedStore, outbox: yield* Outbox }
})

/** Publishes events with bodies that have a thousand bytes. */
const publishBodies = Effect.fnUntraced(function* (count: number) {
  const outbox = yield* Outbox
  const body = JSON.stringify("x".repeat(998))
  const events = Array.from({ length: count }, () => ({ ...event(p1), body }))
  yield* Effect.forEach(events, (one) => outbox.publish(one))
  return events
})

/** Reads page after page, up to the last one. Returns all events' ids, and the place after them. */
const readAll = Effect.fnUntraced(function* (from: FeedStart, size = large, projectId = p1) {
  const feed = yield* FeedStore
  let page = yield* feed.read([projectId], from, size)
  const events = [...page.events]
  while (!page.isLast) {
    page = yield* feed.read([projectId], page.cursor, size)
    events.push(...page.events)
  }
  return { events, ids: idsOf(events), cursor: page.cursor }
})

/** Runs work in a transaction, held open until released. */
const held = <A, E>(work: Effect.Effect<A, E, StorePorts>) =>
  Effect.gen(function* () {
    const { run } = yield* HostTransaction
    const isDone = yield* Deferred.make<void>()
    const mayEnd = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(
      run(
        work.pipe(
          Effect.andThen(Deferred.succeed(isDone, undefined)),
          Effect.andThen(Deferred.await(mayEnd)),
        ),
      ),
    )
    yield* Effect.raceFirst(Deferred.await(isDone), Fiber.join(fiber))
    return Effect.andThen(Deferred.succeed(mayEnd, undefined), Fiber.join(fiber))
  })

export const feedStoreSuite = (on: StoreTests): void => {
  const { describe } = on
  const { test, transactional, concurrent } = on.testsAfter(prepared)

  describe("read", () => {
    test("returns the events of a project, oldest first, as they were published", function* () {
      const events = yield* publishMany(3)
      yield* publishMany(2, p2)
      const page = yield* readAll("start")
      expect(page.events.map(({ cursor: _, ...one }) => one)).toEqual(events)
    })

    test("returns the events of changes", function* () {
      const granted = { ...change(p1, "membership.granted"), userId: u1, endDate: in2027 }
      yield* (yield* MembershipStore).grant(granted)
      expect((yield* readAll("start")).ids).toEqual([granted.event.id])
    })

    test("returns only what comes later from now on", function* ({ feed }) {
      yield* publishMany(2)
      const now = yield* feed.read([p1], "now", large)
      expect(now).toMatchObject({ events: [], isLast: true })
      const later = yield* publishMany(2)
      expect((yield* readAll(now.cursor)).ids).toEqual(idsOf(later))
    })

    test("goes on from the place of every event, and of every page", function* ({ feed }) {
      const ids = idsOf(yield* publishMany(5))
      const { cursor, events } = yield* readAll("start")
      for (const [index, one] of events.entries()) {
        expect((yield* readAll(one.cursor)).ids).toEqual(ids.slice(index + 1))
      }
      expect(yield* feed.read([p1], cursor, large)).toMatchObject({ events: [], isLast: true })
    })

    test("returns no more events than asked for, and none that is already in another page", function* (world) {
      const { feed } = world
      const ids = idsOf(yield* publishMany(7))
      for (const events of [1, 2, 3, 7, 8]) {
        const page = yield* feed.read([p1], "start", { ...large, events })
        expect(page.events).toHaveLength(Math.min(events, 7))
        expect((yield* readAll("start", { ...large, events })).ids).toEqual(ids)
      }
    })

    test("returns about as many bytes as asked for, and always an event", function* ({ feed }) {
      const events = yield* publishBodies(5)
      const page = yield* feed.read([p1], "start", { ...large, bytes: 2500 })
      expect(page.events).toHaveLength(3)
      expect((yield* readAll("start", { ...large, bytes: 1 })).ids).toEqual(idsOf(events))
    })

    test("fills a page with what is published after the one before", function* ({ feed }) {
      const early = yield* publishMany(4)
      const { cursor } = yield* feed.read([p1], "start", { ...large, events: 2 })
      const ids = idsOf([...early, ...(yield* publishMany(4))])
      const page = yield* feed.read([p1], cursor, { ...large, events: 5 })
      expect([idsOf(page.events), page.isLast]).toEqual([ids.slice(2, 7), false])
      expect(yield* feed.read([p1], cursor, large)).toMatchObject({ isLast: true })
      expect((yield* readAll(cursor, { ...large, events: 2 })).ids).toEqual(ids.slice(2))
      for (const [index, one] of page.events.entries()) {
        expect((yield* readAll(one.cursor)).ids).toEqual(ids.slice(3 + index))
      }
    })

    test("fills a page with no more bytes than asked for", function* ({ feed }) {
      yield* publishBodies(4)
      const { cursor } = yield* feed.read([p1], "start", { ...large, events: 2 })
      yield* publishBodies(4)
      const page = yield* feed.read([p1], cursor, { ...large, bytes: 2500 })
      expect([page.events.length, page.isLast]).toEqual([3, false])
    })

    test("returns the events of several projects in one order, in pages too", function* ({ feed }) {
      const events: Array<Event> = []
      for (const projectId of [p1, p2, p2, p1, p2]) {
        events.push(...(yield* publishMany(1, projectId)))
      }
      const first = yield* feed.read([p1, p2], "start", { ...large, events: 3 })
      const second = yield* feed.read([p1, p2], first.cursor, large)
      expect(idsOf([...first.events, ...second.events])).toEqual(idsOf(events))
      // A place is the same for all projects.
      expect((yield* readAll(first.cursor, large, p2)).ids).toEqual(idsOf(events.slice(4)))
    })

    test("fails for projects that do not exist", function* ({ feed }) {
      const nowhere = ProjectId("nowhere")
      const error = yield* Effect.flip(feed.read([nowhere], "start", large))
      expect(error).toMatchObject({ _tag: "ProjectNotFound", projectId: "nowhere" })
      yield* publishMany(1)
      expect((yield* feed.read([nowhere, p1], "start", large)).events).toHaveLength(1)
      // Also from an invalid cursor.
      yield* expectFailure("ProjectNotFound", feed.read([nowhere], FeedCursor("none"), large))
    })
  })

  describe("latest", () => {
    test("returns the latest events of a project, newest first, page after page", function* (world) {
      const { feed } = world
      const events = (yield* publishMany(5)).toReversed()
      yield* publishMany(2, p2)
      for (const [from, count] of [
        [0, 2],
        [2, 3],
        [5, 100],
      ] as const) {
        const page = yield* feed.latest(p1, events[from - 1]?.id, { ...large, events: count })
        expect(page).toEqual({ events: events.slice(from, from + count), isLast: from > 0 })
      }
    })

    test("returns about as many bytes as asked for, and always an event of the latest", function* (world) {
      const { feed } = world
      const events = (yield* publishMany(3)).toReversed()
      const { length } = firstOf(events).body
      for (const [bytes, count] of [
        [1, 1],
        [length + 1, 2],
      ] as const) {
        const page = yield* feed.latest(p1, undefined, { ...large, bytes })
        expect(page).toEqual({ events: events.slice(0, count), isLast: false })
      }
    })

    test("returns none before an event that is not kept, or of another project", function* (world) {
      const { feed } = world
      yield* publishMany(2)
      const other = firstOf(yield* publishMany(1, p2))
      for (const before of [event(p1).id, other.id]) {
        expect(yield* feed.latest(p1, before, large)).toEqual({ events: [], isLast: true })
      }
    })

    test("fails for a project that does not exist, and has none at first", function* ({ feed }) {
      expect(yield* feed.latest(p1, undefined, large)).toEqual({ events: [], isLast: true })
      const error = yield* Effect.flip(feed.latest(ProjectId("nowhere"), undefined, large))
      expect(error).toMatchObject({ _tag: "ProjectNotFound", projectId: "nowhere" })
    })
  })

  describe("a cursor of another history", () => {
    test("has expired", function* ({ feed }) {
      const { cursor } = yield* feed.read([p1], "now", large)
      // The text begins with the history's id.
      const other = FeedCursor(`${cursor.startsWith("0") ? "1" : "0"}${cursor.slice(1)}`)
      yield* expectFailure("CursorExpired", feed.read([p1], other, large))
    })

    test("or none at all is refused, or is a place", function* ({ feed }) {
      yield* publishMany(2)
      const page = yield* feed.read([p1], "start", { ...large, events: 1 })
      const changes = fc.tuple(
        fc.string({ unit: fc.constantFrom(..."0z1a-._~") }),
        fc.nat(page.cursor.length),
        fc.nat(3),
      )
      for (const [text, at, length] of fc.sample(changes, 200)) {
        const changed = page.cursor.slice(0, at) + text + page.cursor.slice(at + length)
        if (!FeedCursor.is(changed)) continue
        const read = feed.read([p1], changed, large)
        yield* Effect.catchTag(read, "CursorExpired", () => Effect.void)
      }
    })
  })

  concurrent(
    "an event of a transaction that commits late is not skipped",
    function* ({ feed, outbox }) {
      const late = event(p1)
      const commit = yield* held(outbox.publish(late))
      const early = yield* publishMany(3)
      const first = yield* feed.read([p1], "start", { ...large, events: 2 })
      yield* commit
      const later = yield* publishMany(1)
      const rest = yield* readAll(first.cursor, { ...large, events: 2 })
      const ids = [...idsOf(first.events), ...rest.ids]
      expect(ids.toSorted()).toEqual(idsOf([...early, late, ...later]).toSorted())
      expect(ids.slice(0, 2)).toEqual(idsOf(early.slice(0, 2)))
    },
  )

  transactional(
    "an event of a transaction that fails is never there",
    function* ({ feed, outbox }) {
      const { cursor } = yield* feed.read([p1], "start", large)
      yield* undone(outbox.publish(event(p1)))
      const published = yield* publishMany(1)
      expect((yield* readAll(cursor)).ids).toEqual(idsOf(published))
    },
  )
}
