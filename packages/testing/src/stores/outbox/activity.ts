/** How webhooks are doing: their latest attempts, their progress, counts by time, and those that need attention. */

import { expect } from "@effect/vitest"
import { makeEvent } from "@tenure/core/internal"
import {
  type ActivityCell,
  type DeliveryState,
  EventType,
  MembershipStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, event, makeWebhook, context, p1, p2, u1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, expectFailure, firstOf, hour, idsOf } from "../steps.ts"
import {
  answered,
  attempt,
  attemptAll,
  claims,
  delivered,
  deliveriesOf,
  failed,
  gone,
  hoursToNext,
  preparedWebhook,
  publishMany,
  released,
  retry,
  settle,
  settleAll,
  theClaim,
  timeout,
  updateWebhook,
} from "./steps.ts"

/** Six deliveries for one webhook: the last one was not attempted, the others in the order 3, 0, 4, 1, 2. */
const attemptedOn = ({ advance }: StoreTests) =>
  Effect.gen(function* () {
    const { outbox, ref, store, webhook } = yield* preparedWebhook
    const ids = idsOf(yield* publishMany(6))
    const claimed = yield* claims()
    for (const [index, settlement] of [
      [3, delivered],
      [0, retry(hour)],
      [4, failed],
      [1, delivered],
      [2, failed],
      [5, released],
    ] as const) {
      yield* settle(at(claimed, index), settlement)
      yield* advance(10)
    }
    /** Lists deliveries by their events' indexes. */
    const listed = (page: Partial<Parameters<typeof outbox.attempted>[1]> = {}) =>
      Effect.map(outbox.attempted(ref, { limit: 10, ...page }), (all) =>
        all.map(({ eventId }) => ids.indexOf(eventId)),
      )
    return { outbox, store, webhook, ids, ref, listed }
  })

const attemptedTests = (on: StoreTests): void => {
  const { advance } = on
  const { test } = on.testsAfter(attemptedOn(on))

  test("are listed by their latest attempt, unless there was none", function* (world) {
    const { listed, outbox, ref } = world
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    expect(yield* listed({ limit: 2 })).toEqual([2, 1])
    const latest = yield* outbox.attempted(ref, { limit: 1 })
    expect(latest).toMatchObject([{ state: "failed", attempts: [timeout] }])
    expect(yield* outbox.attempted({ ...ref, projectId: p2 }, { limit: 10 })).toEqual([])
  })

  test("are listed by their latest attempt in each state", function* ({ listed }) {
    const expected: ReadonlyArray<readonly [DeliveryState, ReadonlyArray<number>]> = [
      ["failed", [2, 4]],
      ["delivered", [1, 3]],
      ["waiting", [0]],
      ["cancelled", []],
    ]
    for (const [state, found] of expected) expect(yield* listed({ state })).toEqual(found)
  })

  test("are listed by their latest attempt page by page", function* ({ ids, listed, outbox, ref }) {
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

  test("come first by their latest attempt after another one", function* (world) {
    const { ids, listed, outbox, ref } = world
    for (const index of [3, 4]) yield* outbox.replay(ref, at(ids, index))
    expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
    // A failing webhook gets one delivery at a time.
    for (const expected of [5, 3]) {
      const own = (yield* claims()).filter((one) => one.event.id === ids[expected])
      expect(yield* settleAll(own, delivered)).toEqual(["Settled"])
      yield* advance(10)
    }
    expect(yield* listed()).toEqual([3, 5, 2, 1, 4, 0])
  })

  test("are listed by their latest attempt after their webhook was removed", function* (world) {
    const { listed, store, webhook } = world
    yield* store.remove(p1, webhook.id, context)
    for (const _ of ["at once", "when a retry would be due"]) {
      expect(yield* listed()).toEqual([2, 1, 4, 0, 3])
      expect(yield* listed({ state: "cancelled" })).toEqual([0])
      yield* advance(2 * hour)
      yield* claims()
    }
  })

  test("say when their event happened and of whom it is, until the person is erased", function* () {
    const { outbox, webhook } = yield* preparedWebhook
    for (const data of [
      { user_id: u1 },
      { user_id: 7 },
      { text: '"user_id":"no"', list: [{ user_id: "in it" }] },
      { user_id: null },
    ]) {
      yield* outbox.publish(
        makeEvent({ ...event(p1), at: 4567, data: { project_id: p1, ...data } }),
      )
    }
    const usersOf = Effect.map(deliveriesOf(webhook), (all) => all.map(({ userId }) => userId))
    expect(yield* usersOf).toEqual([undefined, "in it", "7", u1])
    expect((yield* deliveriesOf(webhook)).every(({ createdAt }) => createdAt === 4567)).toBe(true)
    yield* MembershipStore.use((store) => store.erase({ ...change(p1), userId: u1 }))
    expect((yield* usersOf).slice(-4)).toEqual([undefined, "in it", "7", undefined])
  })
}

/** Returns how many attempts succeeded, and how many failed. */
const sumOf = (cells: ReadonlyArray<ActivityCell>): ReadonlyArray<number> => [
  cells.reduce((sum, cell) => sum + cell.delivered, 0),
  cells.reduce((sum, cell) => sum + cell.failed, 0),
]

const countingTests = ({ advance, describe, test }: StoreTests): void => {
  /** Settles three attempts for a webhook in the first project. */
  const three = Effect.gen(function* () {
    const world = yield* preparedWebhook
    yield* publishMany(3)
    yield* settleAll(yield* claims(), [delivered, delivered, retry(hour)])
    return world
  })

  describe("the activity", () => {
    test("counts the attempts for a webhook by the quarter of an hour, for a day", function* () {
      const { outbox, ref } = yield* three
      const counts = Effect.map(outbox.activity(ref), ({ answerTimes, quarters }) => ({
        quarters,
        sums: [...sumOf(quarters), answerTimes.reduce((sum, count) => sum + count, 0)],
      }))
      const { quarters, sums } = yield* counts
      expect([quarters.length, sums]).toEqual([96, [2, 1, 3]])
      const distances = quarters.slice(1).map((cell, index) => cell.at - at(quarters, index).at)
      expect(new Set(distances)).toEqual(new Set([900_000]))
      yield* advance(2 * hour)
      const later = yield* counts
      expect([later.sums, sumOf(later.quarters.slice(-4))]).toEqual([
        [2, 1, 3],
        [0, 0],
      ])
      yield* advance(23 * hour)
      expect((yield* counts).sums).toEqual([0, 0, 0])
    })

    test("counts no attempt that was interrupted, or whose claim has lapsed", function* () {
      const { outbox, ref } = yield* preparedWebhook
      yield* publishMany(1)
      yield* settle(yield* theClaim, released)
      const claimed = yield* theClaim
      yield* settleAll([claimed, claimed], delivered)
      expect(sumOf((yield* outbox.activity(ref)).quarters)).toEqual([1, 0])
    })

    test("counts attempts by the minute, for an hour, of each project and of all", function* () {
      const { outbox } = yield* three
      const minutes = yield* outbox.minutes(p1)
      expect([minutes.length, sumOf(minutes)]).toEqual([60, [2, 1]])
      expect(sumOf(yield* outbox.minutes(p2))).toEqual([0, 0])
      expect(sumOf(yield* outbox.minutes(undefined))).toEqual([2, 1])
      yield* advance(hour / 2)
      expect(sumOf((yield* outbox.minutes(p1)).slice(0, -20))).toEqual([2, 1])
      yield* advance(hour)
      for (const project of [p1, undefined])
        expect(sumOf(yield* outbox.minutes(project))).toEqual([0, 0])
    })

    test("is forgotten with the webhook and the project", function* () {
      const { outbox, ref, store } = yield* three
      yield* outbox.activity(ref)
      yield* store.remove(p1, ref.webhookId, context)
      yield* expectFailure("WebhookNotFound", outbox.activity(ref))
      const memberships = yield* MembershipStore
      yield* memberships.deleteProject(p1, context)
      yield* expectFailure("ProjectNotFound", outbox.minutes(p1))
      yield* memberships.createProject(p1, context)
      expect(sumOf(yield* outbox.minutes(p1))).toEqual([0, 0])
    })
  })
}

const troubleTests = ({ advance, testsAfter, describe }: StoreTests): void => {
  const { test } = testsAfter(preparedWebhook)
  describe("webhooks that need attention", () => {
    test("are failing ones, the longest failing first, and then disabled ones, the latest first", function* (world) {
      const { outbox, store } = world
      // No announcements.
      const eventTypes = [EventType("never.published")]
      const added = []
      for (const [index, projectId] of [p2, p1, p2, p1].entries()) {
        const description = index === 0 ? "first" : undefined
        const one = yield* addWebhook(projectId, { eventTypes, description })
        added.push(one)
        yield* outbox.publishTo(event(projectId), one.id)
        const own = (yield* claims()).filter(({ webhook }) => webhook.webhookId === one.id)
        yield* settleAll(own, index < 2 ? retry(hour) : gone())
        yield* advance(20)
      }
      const latestAttempt = (status: number) => ({ result: { status } })
      expect(yield* outbox.troubled(10)).toMatchObject([
        {
          trouble: "failing",
          webhookId: added[0]?.id,
          projectId: p2,
          url: added[0]?.url,
          description: "first",
        },
        {
          trouble: "failing",
          webhookId: added[1]?.id,
          description: undefined,
          latestAttempt: latestAttempt(500),
        },
        { trouble: "disabled", webhookId: added[3]?.id, latestAttempt: latestAttempt(410) },
        { trouble: "disabled", webhookId: added[2]?.id },
      ])
      expect(yield* outbox.troubled(3)).toHaveLength(3)
      yield* store.enable(p1, at(added, 3).id, context)
      expect(yield* outbox.troubled(10)).toHaveLength(3)
    })

    test("are ordered by id if they were disabled in the same millisecond", function* ({ outbox }) {
      const ids = []
      for (let count = 0; count < 4; count++) {
        const one = yield* addWebhook()
        yield* updateWebhook(one, {}, { disabled: { at: 1000, by: "failures" } })
        ids.push(one.id)
      }
      const found = (most: number) =>
        Effect.map(outbox.troubled(most), (all) => all.map(({ webhookId }) => webhookId))
      expect(yield* found(10)).toEqual(ids.toSorted())
      expect(yield* found(2)).toEqual(ids.toSorted().slice(0, 2))
    })

    test("are none in projects that were deleted", function* ({ outbox }) {
      yield* publishMany(1)
      yield* attemptAll(failed)
      expect(yield* outbox.troubled(10)).toHaveLength(1)
      yield* MembershipStore.use((store) => store.deleteProject(p1, context))
      expect(yield* outbox.troubled(10)).toEqual([])
    })
  })
}

export const activityTests = (on: StoreTests): void => {
  const { advance, describe, test } = on

  on.describe("attempted deliveries", () => attemptedTests(on))

  /** A webhook, and how it is doing. */
  const progressing = Effect.map(preparedWebhook, ({ outbox, webhook, ...rest }) => {
    const progress = Effect.map(outbox.progress(p1, [webhook.id]), (all) => all.get(webhook.id))
    return { ...rest, outbox, webhook, progress }
  })

  describe("the progress", () => {
    test("has nothing of a webhook without deliveries, nor of one that is missing", function* () {
      const { outbox, webhook } = yield* progressing
      const found = yield* outbox.progress(p1, [webhook.id, makeWebhook(p1).id])
      expect([...found]).toEqual([
        [webhook.id, { latestAttempt: undefined, waiting: 0, nextAttemptAt: undefined }],
      ])
      expect((yield* outbox.progress(p2, [webhook.id])).size).toBe(0)
    })

    test("has the latest attempt as soon as it is settled", function* () {
      const { progress } = yield* progressing
      const published = yield* publishMany(3)
      const claimed = yield* claims()
      for (const [index, { made, settlement }] of [
        { settlement: delivered, made: answered(200) },
        { settlement: retry(hour), made: attempt },
        { settlement: failed, made: timeout },
      ].entries()) {
        yield* settle(at(claimed, index), settlement)
        yield* advance(10)
        const { result } = made
        expect((yield* progress)?.latestAttempt).toEqual({
          ...made,
          result: result._tag === "Answered" ? { ...result, body: "" } : result,
          eventId: published[index]?.id,
        })
      }
    })

    test("says how many deliveries wait, and when the next attempt is due", function* () {
      const { progress, webhook } = yield* progressing
      yield* publishMany(3)
      expect((yield* progress)?.waiting).toBe(3)
      expect(yield* hoursToNext(webhook)).toBeCloseTo(0, 1)
      const claimed = yield* claims()
      expect(yield* progress).toMatchObject({ waiting: 3, nextAttemptAt: undefined })
      yield* settleAll(claimed.slice(0, 2), [delivered, retry(2 * hour)])
      expect((yield* progress)?.waiting).toBe(2)
      expect(yield* hoursToNext(webhook)).toBeCloseTo(2, 1)
      yield* settle(at(claimed, 2), retry(hour, 3 * hour))
      expect(yield* hoursToNext(webhook)).toBeCloseTo(3, 1)
    })

    test("says that the next attempt was due when a hold ended, until it is made", function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(2)
      yield* settle(firstOf(yield* claims({ limit: 1 })), retry(2 * hour, hour))
      expect(yield* hoursToNext(webhook)).toBeCloseTo(1, 1)
      yield* advance(1.5 * hour)
      expect(yield* hoursToNext(webhook)).toBeCloseTo(-0.5, 1)
    })

    test("has no next attempt for a webhook that is disabled", function* () {
      const { progress } = yield* progressing
      yield* publishMany(2)
      yield* settle(firstOf(yield* claims({ limit: 1 })), gone())
      expect(yield* progress).toMatchObject({
        latestAttempt: { result: { status: 410 } },
        nextAttemptAt: undefined,
      })
    })
  })

  countingTests(on)
  troubleTests(on)
}
