import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { ProjectId } from "../../src/base/values.ts"
import { EventId, EventType } from "../../src/events/event.ts"
import { FeedCursor, type FeedEvent, type FeedPage } from "../../src/events/feed-store.ts"
import { Follower, Subscription } from "../../src/events/feed.ts"

const projectId = ProjectId("p1")

/** An event, whose cursor is its number. */
const event = (number: number, type = "a"): FeedEvent => ({
  id: EventId(`00000000-0000-7000-8000-00000000000${number}`),
  projectId,
  type: EventType(type),
  at: 0,
  body: "{}",
  cursor: FeedCursor(String(number)),
})

const page = (events: ReadonlyArray<FeedEvent>, isLast = true, cursor = "9"): FeedPage => ({
  events,
  cursor: events.at(-1)?.cursor ?? FeedCursor(cursor),
  isLast,
})

/** A follower of pages, each of which is read once, and of watches that begin at once. */
const following = (pages: Array<FeedPage>, types?: ReadonlyArray<EventType>) => {
  const closing = Latch.makeUnsafe()
  const watches = new Set<Subscription>()
  const asked: Array<string> = []
  const follower = new Follower(
    {
      tail: {
        watch: (id) => {
          const watch = new Subscription(id, watches)
          watch.begin()
          return watch
        },
      },
      read: ({ from }) =>
        Effect.suspend(() => {
          asked.push(from)
          const next = pages.shift()
          return next ? Effect.succeed(next) : Effect.fail(new StoreUnavailable({ cause: "down" }))
        }),
      closing: closing.await,
    },
    { projectId, from: "start", types },
  )
  const offer = (...events: ReadonlyArray<FeedEvent>): void => {
    const cursor = events.at(-1)?.cursor ?? FeedCursor("0")
    for (const watch of watches) watch.offer({ events, cursor })
  }
  return { asked, closing, follower, offer, watches }
}

const numbersOf = ({ events }: FeedPage) => events.map(({ cursor }) => Number(cursor))

it.effect("goes from page to page, and then watches", () =>
  Effect.gen(function* () {
    const pages = [page([event(1)], false), page([event(2)]), page([]), page([])]
    const { asked, follower, offer } = following(pages)
    expect(numbersOf(yield* follower.stored)).toEqual([1])
    expect(numbersOf(yield* follower.page())).toEqual([2])
    const fiber = yield* Effect.forkChild(follower.page(), { startImmediately: true })
    expect(asked).toEqual(["start", "1", "2", "9"])
    offer(event(3))
    expect(numbersOf(yield* Fiber.join(fiber))).toEqual([3])
    expect(asked).toHaveLength(4)
  }),
)

it.effect("leaves out of a batch what it has read while the watch began, and other types", () =>
  Effect.gen(function* () {
    const types = [EventType("a")]
    const { follower, offer } = following([page([]), page([event(1)])], types)
    expect(numbersOf(yield* follower.page())).toEqual([1])
    offer(event(1), event(2, "b"))
    expect(yield* follower.ready()).toBeUndefined()
    offer(event(3))
    expect(numbersOf(yield* follower.page())).toEqual([3])
  }),
)

it.effect("reads on from its place when it has lost its watch", () =>
  Effect.gen(function* () {
    const pages = [page([]), page([]), page([event(2)])]
    const { asked, follower, offer, watches } = following(pages)
    expect(yield* follower.ready()).toBeUndefined()
    offer(event(1))
    expect(numbersOf(yield* follower.page())).toEqual([1])
    for (const watch of watches) watch.end()
    expect(numbersOf(yield* follower.page())).toEqual([2])
    expect(asked.at(-1)).toBe("1")
  }),
)

it.effect("fails as its reads do, without a watch, and can go on", () =>
  Effect.gen(function* () {
    const pages = [page([])]
    const { follower, watches } = following(pages)
    expect((yield* Effect.flip(follower.page()))._tag).toBe("StoreUnavailable")
    expect(watches.size).toBe(0)
    pages.push(page([event(1)]))
    expect(numbersOf(yield* follower.page())).toEqual([1])
  }),
)

it.effect("has no next page when the feed is closing, and no watch once it is stopped", () =>
  Effect.gen(function* () {
    const { closing, follower, watches } = following([page([]), page([])])
    const fiber = yield* Effect.forkChild(follower.next, { startImmediately: true })
    expect(watches.size).toBe(1)
    yield* closing.open
    expect(Option.isNone(yield* Fiber.join(fiber))).toBe(true)
    follower.stop()
    expect(watches.size).toBe(0)
  }),
)
