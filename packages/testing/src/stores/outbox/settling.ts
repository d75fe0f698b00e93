/** Dispatchers say what became of their claims, and how webhooks are doing then. */

import { expect } from "@effect/vitest"
import { makeEvent } from "@tenure/core/internal"
import {
  type ActivityCell,
  type AttemptResult,
  type DeliveryState,
  EventType,
  type FailingAnnouncement,
  MembershipStore,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, event, makeWebhook, context, p1, p2, u1 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { addWebhook, at, dayMillis, expectFailure, firstOf, hour, idsOf } from "../steps.ts"
import {
  answered,
  attempt,
  attemptAll,
  claim,
  claims,
  delivered,
  deliveriesOf,
  failed,
  failedFor,
  gone,
  hoursToNext,
  leaseMillis,
  prepared,
  preparedWebhook,
  publishMany,
  released,
  replayed,
  retry,
  selected,
  settle,
  settleAll,
  statesOf,
  theClaim,
  timeout,
  twoClaims,
  updateWebhook,
  webhookIdsOf,
} from "./steps.ts"

export const settlingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("settle", () => {
    test("ends a successful delivery", function* () {
      const { webhook } = yield* preparedWebhook
      const [published] = yield* publishMany(1)
      const one = yield* theClaim
      expect(yield* settle(one, delivered)).toBe("Settled")
      expect(yield* settle(one, delivered)).toBe("Lapsed")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* deliveriesOf(webhook)).toMatchObject([
        {
          eventId: published?.id,
          webhookId: webhook.id,
          state: "delivered",
          attempts: [answered(200)],
        },
      ])
    })

    test("delays a retry, and counts attempts", function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(1)
      expect(yield* settle(yield* theClaim, retry(60_000))).toBe("Settled")
      yield* advance(58_000)
      expect(yield* claims()).toEqual([])
      yield* advance(2000)
      const second = yield* theClaim
      expect(second.attemptNumber).toBe(2)
      yield* settle(second, failed)
      yield* advance(100 * leaseMillis)
      expect(yield* claims()).toEqual([])
      expect(yield* deliveriesOf(webhook)).toMatchObject([
        { state: "failed", attempts: [attempt, timeout] },
      ])
    })

    test("makes a released delivery claimable again, without an attempt", function* () {
      const { webhook } = yield* preparedWebhook
      yield* publishMany(1)
      expect(yield* settle(yield* theClaim, released)).toBe("Settled")
      expect((yield* theClaim).attemptNumber).toBe(1)
      expect(yield* deliveriesOf(webhook)).toMatchObject([{ state: "waiting", attempts: [] }])
    })

    test("disables a webhook that is gone, and announces it once: its deliveries fail and stay visible", function* () {
      const { webhooks } = yield* prepared(2)
      const webhook = firstOf(webhooks)
      yield* publishMany(3)
      const claimed = yield* claims({ limit: 4 })
      const own = claimed.filter((one) => one.webhook.webhookId === webhook.id)
      expect(yield* settleAll(own, [gone(), gone()])).toEqual(["WebhookDisabled", "Settled"])
      yield* publishMany(1)
      const rest = yield* claims()
      // The third event, the announcement, and the event after it.
      expect(rest.map((one) => JSON.parse(one.event.body).type)).toEqual([
        "test.happened",
        "webhook.disabled",
        "test.happened",
      ])
      expect(webhookIdsOf(rest)).not.toContain(webhook.id)
      expect(yield* statesOf(webhook)).toEqual(["failed", "failed", "failed"])
      const listed = yield* WebhookStore.use((store) => store.list(p1))
      expect(listed.map(({ disabled }) => disabled !== undefined)).toEqual([true, false])
    })

    test("changes nothing with a claim whose lease has ended", function* () {
      const { webhooks } = yield* prepared(2)
      yield* publishMany(1)
      const [one, other] = yield* twoClaims
      yield* settle(other, delivered)
      yield* advance(leaseMillis)
      for (const late of [gone(), failed, retry(60_000, 60_000)]) {
        expect(yield* settle(one, late)).toBe("Lapsed")
      }
      expect(yield* theClaim).toMatchObject({
        event: one.event,
        webhook: { webhookId: one.webhook.webhookId, failures: 0 },
      })
      expect(yield* WebhookStore.use((store) => store.list(p1))).toMatchObject(webhooks)
    })
  })
}

/** Announces that a webhook has been failing for a share of `disableAfter`, with a new event. */
const failingFor = (
  percent: FailingAnnouncement["percent"],
  failingSince: number,
): FailingAnnouncement => ({ percent, failingSince, event: event(p1, `failing.${percent}`) })

export const failingTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a failing webhook", () => {
    test("is announced once for each share of a run of failures, before it is disabled", function* () {
      const { webhooks } = yield* prepared(2)
      const [own, other] = [at(webhooks, 0).id, at(webhooks, 1).id]
      const told: Array<unknown> = []
      // Delivers everything to the other webhook, and settles the failing one's only claim.
      const settleOwn = Effect.fnUntraced(function* (settlement: (since: number) => AttemptResult) {
        const all = yield* claims()
        for (const one of all) {
          if (one.webhook.webhookId !== other) continue
          told.push(JSON.parse(one.event.body).type)
          yield* settle(one, delivered)
        }
        const owned = all.filter(({ webhook }) => webhook.webhookId === own)
        expect(owned.length).toBeLessThan(2)
        return yield* Effect.forEach(owned, (one) =>
          settle(one, settlement(one.webhook.failingSince ?? NaN)),
        )
      })
      const fail = settleOwn(() => retry(0))
      const failFor = (percent: 50 | 90) =>
        settleOwn((since) => retry(0, 0, failingFor(percent, since)))
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* failFor(50)).toEqual(["Settled"])
      expect(yield* settleOwn((since) => gone(failingFor(100, since)))).toEqual(["WebhookDisabled"])
      expect(yield* fail).toEqual([])
      const run = ["failing.50", "failing.90", "failing.100", "webhook.disabled"]
      expect(told).toEqual(["test.happened", ...run])
      yield* WebhookStore.use((store) => store.enable(p1, own, context))
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(90)).toEqual(["WebhookFailing"])
      expect(yield* settleOwn(() => delivered)).toEqual(["Settled"])
      yield* publishMany(1)
      expect(yield* fail).toEqual(["Settled"])
      expect(yield* failFor(50)).toEqual(["WebhookFailing"])
    })

    test("is neither announced nor disabled for a run of failures that is over", function* () {
      const { store, webhook } = yield* preparedWebhook
      yield* publishMany(3)
      const all = yield* claims()
      const since = Effect.map(store.find(p1, webhook.id), ({ failingSince = NaN }) => failingSince)
      yield* settle(at(all, 0), retry(60_000))
      const failingSince = yield* since
      yield* settle(at(all, 1), delivered)
      yield* advance(1000)
      yield* publishMany(1)
      yield* settle(yield* theClaim, retry(60_000))
      expect(yield* since).not.toBe(failingSince)
      expect(yield* settle(at(all, 2), gone(failingFor(100, failingSince)))).toBe("Settled")
      expect((yield* store.find(p1, webhook.id)).disabled).toBeUndefined()
    })

    test.each([
      ["a retry", retry(0, 60_000)],
      ["a failure", failedFor(60_000)],
    ] as const)("is not claimed while %s holds it, and holds up no other", function* ([, holding]) {
      yield* prepared(2)
      yield* publishMany(1)
      const [held, other] = yield* twoClaims
      yield* settleAll([held, other], [holding, delivered])
      yield* publishMany(1)
      const next = yield* theClaim
      expect(next.webhook.webhookId).toBe(other.webhook.webhookId)
      yield* settle(next, delivered)
      const { nextDueMillis } = yield* claim()
      expect(nextDueMillis).toBeGreaterThan(50_000)
      expect(nextDueMillis).toBeLessThanOrEqual(60_000)
      yield* advance(60_000)
      expect((yield* theClaim).webhook.webhookId).toBe(held.webhook.webhookId)
    })

    test("leaves room for others: a claim takes only so many deliveries of failing webhooks", function* () {
      yield* prepared(6)
      yield* publishMany(1)
      yield* settleAll(yield* claims({ limit: 4 }), retry(0))
      const failures = (all: Effect.Success<ReturnType<typeof claims>>) =>
        all.map(({ webhook }) => webhook.failures).toSorted()
      expect(failures(yield* claims({ failing: 0 }))).toEqual([0, 0])
      expect(yield* claims({ failing: 0 })).toEqual([])
      const first = yield* claims({ failing: 3 })
      expect(failures(first)).toEqual([1, 1, 1])
      const rest = yield* claims({ failing: 3 })
      expect(failures(rest)).toEqual([1])
      expect(new Set(webhookIdsOf([...first, ...rest])).size).toBe(4)
      yield* settle(firstOf(first), delivered)
      yield* settle(firstOf(rest), retry(0))
      yield* publishMany(1)
      expect(failures(yield* claims({ failing: 0 }))).toEqual([0, 0, 0])
    })

    test("is tried again in time after it failed while the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* settle(yield* theClaim, retry(5000, 5000))
      yield* advance(-dayMillis)
      yield* advance(5000)
      yield* settle(yield* theClaim, delivered)
      yield* publishMany(1)
      yield* theClaim
    })

    test("is held no longer by a failure from when the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* settle(yield* theClaim, failedFor(5000))
      yield* advance(-dayMillis)
      yield* publishMany(1)
      yield* advance(5000)
      yield* settle(yield* theClaim, failedFor(60_000))
      yield* publishMany(1)
      expect(yield* claims()).toEqual([])
      yield* advance(60_000)
      yield* theClaim
    })

    test("is claimed again in time when a lease ends that began while the clock was ahead", function* () {
      yield* prepared(1)
      yield* publishMany(1)
      yield* advance(dayMillis)
      yield* theClaim
      yield* advance(-dayMillis)
      expect(yield* claims()).toEqual([])
      yield* advance(leaseMillis)
      yield* theClaim
    })

    test("is no longer held after a successful attempt", function* () {
      yield* prepared(1)
      yield* publishMany(2)
      yield* settleAll(yield* twoClaims, [failedFor(60_000), delivered])
      yield* publishMany(1)
      expect(yield* claims()).toHaveLength(1)
    })
  })
}

/** Disables a webhook while another of its deliveries is claimed. */
const disabled = Effect.gen(function* () {
  const world = yield* preparedWebhook
  yield* publishMany(2)
  const [one, other] = yield* twoClaims
  yield* settle(one, gone())
  return { ...world, other }
})

export const disabledTests = ({ advance, describe, test }: StoreTests): void => {
  describe("a disabled webhook", () => {
    test.each([
      ["delivered", delivered],
      ["failed", retry(1000)],
      ["failed", released],
      ["failed when its lease ends", undefined],
    ] as const)("ends an earlier claim as %s", function* ([name, settlement]) {
      const { other, webhook } = yield* disabled
      if (settlement !== undefined) expect(yield* settle(other, settlement)).toBe("Settled")
      yield* advance(10 * leaseMillis)
      expect(yield* claims()).toEqual([])
      const state = name === "delivered" ? name : "failed"
      expect(yield* statesOf(webhook)).toEqual([state, "failed"])
    })

    test("accepts no events by publishTo, and no replays, until it is enabled", function* () {
      const { outbox, ref, store, webhook } = yield* disabled
      const refused: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        outbox.publishTo(event(p1), webhook.id),
        outbox.replayMany(ref, selected()),
      ]
      for (const one of refused) {
        const error = yield* Effect.flip(one)
        expect(error).toMatchObject({ _tag: "WebhookDisabled", webhookId: webhook.id })
      }
      yield* advance(leaseMillis)
      yield* claims()
      yield* expectFailure("WebhookNotFound", store.enable(p2, webhook.id, context))
      yield* store.enable(p1, webhook.id, context)
      expect((yield* store.find(p1, webhook.id)).disabled).toBeUndefined()
      expect(yield* replayed(ref)).toBe(2)
      yield* publishMany(1)
      expect(yield* attemptAll(retry(60_000))).toEqual(["Settled", "Settled", "Settled"])
      expect(yield* statesOf(webhook)).toEqual(["waiting", "waiting", "waiting"])
    })
  })
}

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
