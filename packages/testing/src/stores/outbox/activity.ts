/** How webhooks are doing: latest attempts, what waits, counts over time, and who needs attention. */

import { expect } from "@effect/vitest"
import { currentUnixMillis, makeEvent } from "@tenure/core/internal"
import {
  type ActivityCell,
  type AttemptResult,
  type DeliveryState,
  EventId,
  EventType,
  MembershipStore,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, event, occasion, p1, p2, u1, makeWebhook } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  answered,
  attempt,
  claims,
  delivered,
  deliveriesOf,
  failed,
  firstOf,
  gone,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  theClaim,
  timeout,
} from "./steps.ts"

const hour = 3_600_000

/** Six deliveries of one webhook: the last one was not attempted, the others in the order of the indexes 3, 0, 4, 1, 2. */
const attemptedOn = ({ advance }: StoreTests) =>
  Effect.gen(function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const published = yield* publishMany(6)
    const claimed = yield* claims()
    const settlements: ReadonlyArray<readonly [number, AttemptResult]> = [
      [3, delivered],
      [0, retry(hour)],
      [4, failed],
      [1, delivered],
      [2, failed],
      [5, released],
    ]
    for (const [index, settlement] of settlements) {
      yield* settle(yield* firstOf(claimed.slice(index, index + 1)), settlement)
      yield* advance(10)
    }
    const ids = published.map(({ id }) => id)
    const ref = { projectId: p1, webhookId: webhook.id }
    const listed = (page: Partial<Parameters<typeof outbox.attempted>[1]> = {}) =>
      Effect.map(outbox.attempted(ref, { limit: 10, ...page }), (all) =>
        all.map(({ eventId }) => ids.indexOf(eventId)),
      )
    return { outbox, webhook, ids, ref, listed }
  })

const attemptedTests = (on: StoreTests): void => {
  const { advance, test } = on
  const six = attemptedOn(on)

  test("are listed by their latest attempt, unless there was none", function* () {
    const { listed, outbox, ref } = yield* six
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    expect(yield* listed({ limit: 2 })).toEqual([2, 1])
    const [latest] = yield* outbox.attempted(ref, { limit: 1 })
    expect(latest).toMatchObject({ state: "failed", attempts: [timeout] })
    const foreign = { ...ref, projectId: p2 }
    expect(yield* outbox.attempted(foreign, { limit: 10 })).toEqual([])
  })

  test("are listed by their latest attempt in each state", function* () {
    const { listed } = yield* six
    const inState = (state: DeliveryState) => listed({ state })
    expect(yield* inState("failed")).toEqual([2, 4])
    expect(yield* inState("delivered")).toEqual([1, 3])
    expect(yield* inState("waiting")).toEqual([0])
    expect(yield* inState("cancelled")).toEqual([])
  })

  test("are listed by their latest attempt page by page", function* () {
    const { ids, listed, outbox, ref } = yield* six
    const walked: Array<number> = []
    let before: Parameters<typeof outbox.attempted>[1]["before"]
    for (;;) {
      const [one, ...rest] = yield* outbox.attempted(ref, { limit: 1, before })
      if (one?.attemptedAt === undefined) break
      expect(rest).toEqual([])
      walked.push(ids.indexOf(one.eventId))
      before = { attemptedAt: one.attemptedAt, eventId: one.eventId }
    }
    expect(walked).toEqual([2, 1, 4, 0, 3])
    expect(yield* listed({ before })).toEqual([])
  })

  test("come first by their latest attempt after another one", function* () {
    const { ids, listed, outbox, ref } = yield* six
    for (const index of [3, 4]) {
      yield* outbox.replay(ref, ids[index] ?? EventId(""))
    }
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    // A failing webhook gets one delivery at a time.
    for (const expected of [5, 3]) {
      const claim = (yield* claims()).find(({ event: { id } }) => id === ids[expected])
      if (claim === undefined) return yield* Effect.die("no claim")
      yield* settle(claim, delivered)
      yield* advance(10)
    }
    expect(yield* listed()).toEqual([3, 5, 2, 1, 4, 0])
  })

  test("are listed by their latest attempt after their webhook was removed", function* () {
    const { listed, webhook } = yield* six
    yield* (yield* WebhookStore).remove(p1, webhook.id, occasion)
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    expect(yield* listed({ state: "cancelled" })).toEqual([0])
    yield* advance(2 * hour)
    yield* claims()
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    expect(yield* listed({ state: "cancelled" })).toEqual([0])
  })

  test("say when their event happened and of whom it is, until the person is erased", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    const about = (data: object) =>
      makeEvent({ ...event(p1), at: 4567, data: { project_id: p1, ...data } })
    yield* outbox.publish(about({ user_id: u1 }))
    yield* outbox.publish(about({ user_id: 7 }))
    yield* outbox.publish(about({ text: '"user_id":"no"', list: [{ user_id: "in it" }] }))
    yield* outbox.publish(about({ user_id: null }))
    const usersOf = Effect.map(deliveriesOf(webhook), (all) => all.map(({ userId }) => userId))
    expect(yield* usersOf).toEqual([undefined, "in it", "7", u1])
    expect((yield* deliveriesOf(webhook)).every(({ createdAt }) => createdAt === 4567)).toBe(true)
    yield* (yield* MembershipStore).erase({ ...change(p1), userId: u1 })
    expect((yield* usersOf).slice(-4)).toEqual([undefined, "in it", "7", undefined])
  })
}

/** Returns how many attempts succeeded, and how many failed. */
const sumOf = (cells: ReadonlyArray<ActivityCell>): ReadonlyArray<number> => [
  cells.reduce((sum, cell) => sum + cell.delivered, 0),
  cells.reduce((sum, cell) => sum + cell.failed, 0),
]

const countingTests = ({ advance, describe, test }: StoreTests): void => {
  /** Settles three attempts in the first project, and returns its webhook. */
  const three = Effect.gen(function* () {
    const { outbox, webhook } = yield* preparedWebhook
    yield* publishMany(3)
    const settlements = [delivered, delivered, retry(hour)]
    for (const [index, claim] of (yield* claims()).entries()) {
      yield* settle(claim, settlements[index] ?? released)
    }
    return { outbox, webhook, ref: { projectId: p1, webhookId: webhook.id } }
  })

  describe("the activity", () => {
    test("counts the attempts for a webhook by the quarter of an hour, for a day", function* () {
      const { outbox, ref } = yield* three
      const { answerTimes, quarters } = yield* outbox.activity(ref)
      expect(quarters).toHaveLength(96)
      expect(sumOf(quarters)).toEqual([2, 1])
      expect(answerTimes.reduce((sum, count) => sum + count, 0)).toBe(3)
      const distances = quarters.slice(1).map(({ at }, index) => at - (quarters[index]?.at ?? 0))
      expect(new Set(distances)).toEqual(new Set([900_000]))
      yield* advance(2 * hour)
      const later = yield* outbox.activity(ref)
      expect(sumOf(later.quarters)).toEqual([2, 1])
      expect(sumOf(later.quarters.slice(-4))).toEqual([0, 0])
      yield* advance(23 * hour)
      const last = yield* outbox.activity(ref)
      expect(sumOf(last.quarters)).toEqual([0, 0])
      expect(last.answerTimes.reduce((sum, count) => sum + count, 0)).toBe(0)
    })

    test("counts no attempt that was interrupted, or whose claim has lapsed", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* publishMany(1)
      yield* settle(yield* theClaim, released)
      const claimed = yield* theClaim
      yield* settle(claimed, delivered)
      yield* settle(claimed, delivered)
      const { quarters } = yield* outbox.activity({ projectId: p1, webhookId: webhook.id })
      expect(sumOf(quarters)).toEqual([1, 0])
    })

    test("counts attempts by the minute, for an hour, of each project and of all", function* () {
      const { outbox } = yield* three
      const minutes = yield* outbox.minutes(p1)
      expect(minutes).toHaveLength(60)
      expect(sumOf(minutes)).toEqual([2, 1])
      expect(sumOf(yield* outbox.minutes(p2))).toEqual([0, 0])
      expect(sumOf(yield* outbox.minutes(undefined))).toEqual([2, 1])
      yield* advance(hour / 2)
      expect(sumOf((yield* outbox.minutes(p1)).slice(0, -20))).toEqual([2, 1])
      yield* advance(hour)
      expect(sumOf(yield* outbox.minutes(p1))).toEqual([0, 0])
      expect(sumOf(yield* outbox.minutes(undefined))).toEqual([0, 0])
    })

    test("is forgotten with the webhook and the project", function* () {
      const { outbox, ref } = yield* three
      yield* outbox.activity(ref)
      yield* (yield* WebhookStore).remove(p1, ref.webhookId, occasion)
      expect((yield* Effect.flip(outbox.activity(ref)))._tag).toBe("WebhookNotFound")
      const memberships = yield* MembershipStore
      yield* memberships.deleteProject(p1, occasion)
      expect((yield* Effect.flip(outbox.minutes(p1)))._tag).toBe("ProjectNotFound")
      yield* memberships.createProject(p1, occasion)
      expect(sumOf(yield* outbox.minutes(p1))).toEqual([0, 0])
    })
  })
}

/** Declares the tests. */
export const activityTests = (on: StoreTests): void => {
  const { advance, describe, test } = on

  on.describe("attempted deliveries", () => attemptedTests(on))

  describe("the progress", () => {
    test("has nothing of a webhook without deliveries, nor of one that is missing", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const unknown = makeWebhook(p1)
      const found = yield* outbox.progress(p1, [webhook.id, unknown.id])
      expect([...found]).toEqual([
        [webhook.id, { latestAttempt: undefined, waiting: 0, nextAttemptAt: undefined }],
      ])
      expect((yield* outbox.progress(p2, [webhook.id])).size).toBe(0)
    })

    test("has the latest attempt as soon as it is settled", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const published = yield* publishMany(3)
      const progress = Effect.map(outbox.progress(p1, [webhook.id]), (all) => all.get(webhook.id))
      const settlements = [delivered, retry(hour), failed]
      const attempts = [answered(200), attempt, timeout]
      for (const [index, claim] of (yield* claims()).entries()) {
        yield* settle(claim, settlements[index] ?? released)
        yield* advance(10)
        const { result, ...made } = attempts[index] ?? attempt
        expect((yield* progress)?.latestAttempt).toEqual({
          ...made,
          result: result._tag === "Answered" ? { ...result, body: "" } : result,
          eventId: published[index]?.id,
        })
      }
    })

    test("says how many deliveries wait, and when the next attempt is due", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const progress = Effect.map(outbox.progress(p1, [webhook.id]), (all) => all.get(webhook.id))
      yield* publishMany(3)
      const due = yield* progress
      expect(due).toMatchObject({ waiting: 3, nextAttemptAt: expect.any(Number) })
      const now = due?.nextAttemptAt ?? NaN
      const [one, other, third] = yield* claims()
      if (one === undefined || other === undefined || third === undefined)
        return yield* Effect.die("fewer than three claims")
      expect(yield* progress).toMatchObject({ waiting: 3, nextAttemptAt: undefined })
      yield* settle(one, delivered)
      yield* settle(other, retry(2 * hour))
      const later = yield* progress
      expect(later?.waiting).toBe(2)
      expect(((later?.nextAttemptAt ?? NaN) - now) / hour).toBeCloseTo(2, 1)
      yield* settle(third, retry(hour, 3 * hour))
      const held = yield* progress
      expect(((held?.nextAttemptAt ?? NaN) - now) / hour).toBeCloseTo(3, 1)
    })

    test("says that the next attempt was due when a hold ended, until it is made", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* publishMany(2)
      yield* settle(yield* firstOf(yield* claims(1)), retry(2 * hour, hour))
      const hoursToNext = Effect.gen(function* () {
        const progress = (yield* outbox.progress(p1, [webhook.id])).get(webhook.id)
        return ((progress?.nextAttemptAt ?? NaN) - (yield* currentUnixMillis)) / hour
      })
      expect(yield* hoursToNext).toBeCloseTo(1, 1)
      yield* advance(1.5 * hour)
      expect(yield* hoursToNext).toBeCloseTo(-0.5, 1)
    })

    test("has no next attempt for a webhook that is disabled", function* () {
      const { outbox, webhook } = yield* preparedWebhook
      yield* publishMany(2)
      yield* settle(yield* firstOf(yield* claims(1)), gone())
      const found = (yield* outbox.progress(p1, [webhook.id])).get(webhook.id)
      expect(found).toMatchObject({
        latestAttempt: { result: { status: 410 } },
        nextAttemptAt: undefined,
      })
    })
  })

  countingTests(on)

  describe("webhooks that need attention", () => {
    test("are failing ones, the longest failing first, and then disabled ones, the latest first", function* () {
      const { outbox, webhook: healthy } = yield* preparedWebhook
      const store = yield* WebhookStore
      // No announcements.
      const eventTypes = [EventType("never.published")]
      const others = [p2, p1, p2, p1].map((id, index) => ({
        ...makeWebhook(id),
        eventTypes,
        description: index === 0 ? "first" : undefined,
      }))
      for (const [index, one] of others.entries()) {
        yield* store.add(one, 100, occasion)
        yield* outbox.publishTo(event(one.projectId), one.id)
        const claim = (yield* claims()).find(({ webhook }) => webhook.webhookId === one.id)
        if (claim === undefined) return yield* Effect.die("no claim")
        yield* settle(claim, index < 2 ? retry(hour) : gone())
        yield* advance(20)
      }
      const troubled = yield* outbox.troubled(10)
      expect(troubled.map(({ webhookId }) => webhookId)).not.toContain(healthy.id)
      expect(troubled.map(({ trouble }) => trouble)).toEqual([
        "failing",
        "failing",
        "disabled",
        "disabled",
      ])
      expect(troubled).toMatchObject([
        { webhookId: others[0]?.id, projectId: p2, url: others[0]?.url, description: "first" },
        {
          webhookId: others[1]?.id,
          description: undefined,
          latestAttempt: { result: { status: 500 } },
        },
        { webhookId: others[3]?.id, latestAttempt: { result: { status: 410 } } },
        { webhookId: others[2]?.id },
      ])
      expect(yield* outbox.troubled(3)).toHaveLength(3)
      yield* store.enable(p1, others[3]?.id ?? healthy.id, occasion)
      expect(yield* outbox.troubled(10)).toHaveLength(3)
    })

    test("are ordered by id if they were disabled in the same millisecond", function* () {
      const { outbox } = yield* preparedWebhook
      const store = yield* WebhookStore
      const disabled = { at: 1000, by: "failures" } as const
      const alike = [1, 2, 3, 4].map(() => makeWebhook(p1))
      for (const one of alike) {
        yield* store.add(one, 100, occasion)
        const update = { expected: one, settings: { ...one, disabled }, changes: [] }
        yield* store.update({ projectId: p1, webhookId: one.id }, update, occasion)
      }
      const sorted = alike.map(({ id }) => id).toSorted()
      const idsOf = Effect.fnUntraced(function* (most: number) {
        return (yield* outbox.troubled(most)).map(({ webhookId }) => webhookId)
      })
      expect(yield* idsOf(10)).toEqual(sorted)
      expect(yield* idsOf(2)).toEqual(sorted.slice(0, 2))
    })

    test("are none in projects that were deleted", function* () {
      const { outbox } = yield* preparedWebhook
      yield* publishMany(1)
      yield* settle(yield* theClaim, failed)
      expect(yield* outbox.troubled(10)).toHaveLength(1)
      yield* (yield* MembershipStore).deleteProject(p1, occasion)
      expect(yield* outbox.troubled(10)).toEqual([])
    })
  })
}
