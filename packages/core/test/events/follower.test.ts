/** A feed follower, and its subscription to new events. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { ProjectId } from "../../src/base/values.ts"
import { EventId, EventType } from "../../src/events/event.ts"
import { FeedCursor, type FeedEvent, type FeedPage } from "../../src/events/feed-store.ts"
import { Follower } from "../../src/events/follower.ts"
import { Subscription } from "../../src/events/shared-tail.ts"

const projectId = ProjectId("p1")

/** Returns an event with its number as cursor. */
const event = (number: number, type = "a"): FeedEvent => ({
  id: EventId(`00000000-0000-7000-8000-00000000000${number}`),
  projectId,
  type: EventType(type),
  at: 0,
  body: "{}",
  cursor: FeedCursor(String(number)),
})

const page = (events: ReadonlyArray<FeedEvent>, isLast = true): FeedPage => ({
  events,
  cursor: events.at(-1)?.cursor ?? FeedCursor("9"),
  isLast,
})

/** Returns a follower that reads each page once, and whose subscriptions begin at once. */
const following = (pages: Array<FeedPage>, types?: ReadonlyArray<EventType>) => {
  const closing = Latch.makeUnsafe()
  const subscriptions = new Set<Subscription>()
  const asked: Array<string> = []
  const follower = new Follower(
    {
      tail: {
        watch: (id) => {
          const subscription = new Subscription(id, subscriptions)
          subscription.begin()
          return subscription
        },
      },
      read: ({ after }) =>
        Effect.suspend(() => {
          asked.push(after)
          const next = pages.shift()
          return next ? Effect.succeed(next) : Effect.fail(new StoreUnavailable({ cause: "down" }))
        }),
      closing: closing.await,
    },
    { projectId, after: "start", types },
  )
  const offer = (...events: ReadonlyArray<FeedEvent>): void => {
    const cursor = events.at(-1)?.cursor ?? FeedCursor("0")
    for (const subscription of subscriptions) subscription.offer({ events, cursor })
  }
  return { asked, closing, follower, offer, subscriptions }
}

const numbersOf = ({ events }: FeedPage) => events.map(({ cursor }) => Number(cursor))

describe("a follower", () => {
  it.effect("goes from page to page, and then waits for what comes", () =>
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

  it.effect("leaves out what it has read while the subscription began, and other types", () =>
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

  it.effect("reads on from its place when it has lost its subscription", () =>
    Effect.gen(function* () {
      const pages = [page([]), page([]), page([event(2)])]
      const { asked, follower, offer, subscriptions } = following(pages)
      expect(yield* follower.ready()).toBeUndefined()
      offer(event(1))
      expect(numbersOf(yield* follower.page())).toEqual([1])
      for (const subscription of subscriptions) subscription.end()
      expect(numbersOf(yield* follower.page())).toEqual([2])
      expect(asked.at(-1)).toBe("1")
    }),
  )

  it.effect("fails as its reads do, without a subscription, and can go on", () =>
    Effect.gen(function* () {
      const pages = [page([])]
      const { follower, subscriptions } = following(pages)
      expect((yield* Effect.flip(follower.page()))._tag).toBe("StoreUnavailable")
      expect(subscriptions.size).toBe(0)
      pages.push(page([event(1)]))
      expect(numbersOf(yield* follower.page())).toEqual([1])
    }),
  )

  it.effect("has no next page when the feed closes, and no subscription once it is stopped", () =>
    Effect.gen(function* () {
      const { closing, follower, subscriptions } = following([page([]), page([])])
      const fiber = yield* Effect.forkChild(follower.next, { startImmediately: true })
      expect(subscriptions.size).toBe(1)
      yield* closing.open
      expect(Option.isNone(yield* Fiber.join(fiber))).toBe(true)
      follower.stop()
      expect(subscriptions.size).toBe(0)
    }),
  )
})

describe("a subscription", () => {
  const batch = (cursor: string) => ({ events: [], cursor: FeedCursor(cursor) })

  /** Returns a subscription, and counts its calls to waiting functions. */
  const subscribed = () => {
    const all = new Set<Subscription>()
    const subscription = new Subscription(projectId, all)
    const calls = { count: 0 }
    const wait = (): void => subscription.whenReady(() => void calls.count++)
    return { all, calls, subscription, wait }
  }

  it.effect("begins once, and tells those who wait for that", () =>
    Effect.gen(function* () {
      const { subscription } = subscribed()
      const fiber = yield* Effect.forkChild(subscription.begun, { startImmediately: true })
      expect([subscription.hasBegun, fiber.pollUnsafe()]).toEqual([false, undefined])
      subscription.begin()
      yield* Fiber.join(fiber)
      yield* subscription.begun
      expect(subscription.hasBegun).toBe(true)
    }),
  )

  it("hands out batches in order, and calls once whom waits, at once if in vain", () => {
    const { calls, subscription, wait } = subscribed()
    wait()
    subscription.offer(batch("a"))
    expect(calls.count).toBe(1)
    subscription.offer(batch("b"))
    expect(calls.count).toBe(1)
    wait()
    expect(calls.count).toBe(2)
    const taken = [subscription.take(), subscription.take(), subscription.take()]
    expect(taken).toEqual([batch("a"), batch("b"), undefined])
    wait()
    expect(calls.count).toBe(2)
    subscription.stop()
    expect(calls.count).toBe(2)
    wait()
    expect(calls.count).toBe(3)
  })

  it("ends without its batches when more than sixteen wait", () => {
    const { all, calls, subscription, wait } = subscribed()
    for (let count = 0; count < 16; count++) subscription.offer(batch(`a${count}`))
    expect(subscription.hasEnded).toBe(false)
    subscription.offer(batch("b"))
    expect([subscription.hasEnded, subscription.take(), all.size]).toEqual([true, undefined, 0])
    wait()
    expect(calls.count).toBe(1)
    subscription.offer(batch("c"))
    expect(subscription.take()).toBeUndefined()
  })

  it.effect("tells those who wait that it has ended, also before it has begun", () =>
    Effect.gen(function* () {
      const { calls, subscription, wait } = subscribed()
      const fiber = yield* Effect.forkChild(subscription.begun, { startImmediately: true })
      wait()
      subscription.end()
      yield* Fiber.join(fiber)
      expect(calls.count).toBe(1)
    }),
  )
})
