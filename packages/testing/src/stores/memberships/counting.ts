/** Counts of memberships by their end dates, and dry runs, which tell what a bulk extension would do. */

import { expect } from "@effect/vitest"
import * as Bulk from "@tenure/core/Bulk"
import { EndDate } from "@tenure/core/EndDate"
import { Memberships } from "@tenure/core/Memberships"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import {
  change,
  in2027,
  in2028,
  in2029,
  occasion,
  p1,
  p2,
  u1,
  u2,
  u3,
  webhook as newWebhook,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { nowhere, prepared } from "./steps.ts"

const countTests = ({ test }: StoreTests): void => {
  test("counts the memberships, and those that end after a date", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const counts = (endDate: EndDate) => store.count(p1, endDate)
      expect(yield* counts(EndDate(in2027 - 1))).toEqual({ total: 2, later: 2 })
      expect(yield* counts(in2027)).toEqual({ total: 2, later: 1 })
      expect(yield* counts(in2028)).toEqual({ total: 2, later: 1 })
      expect(yield* counts(in2029)).toEqual({ total: 2, later: 0 })
      expect(yield* counts(EndDate(in2029 - 1))).toEqual({ total: 2, later: 1 })
    }))

  test("counts by the date of a bulk extension, except for later changes", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      yield* store.extendAll({ ...change(p1), endDate: in2028, mode: "set" })
      expect(yield* store.count(p1, in2028)).toEqual({ total: 2, later: 0 })
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2027 })
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2029 })
      yield* store.end({ ...change(p1), userId: u2 })
      expect(yield* store.count(p1, in2028)).toEqual({ total: 2, later: 1 })
    }))

  test("counts nobody in a project without members, and fails if there is no project", () =>
    Effect.gen(function* () {
      const store = yield* prepared
      expect(yield* store.count(p2, in2028)).toEqual({ total: 0, later: 0 })
      expect((yield* Effect.flip(store.count(nowhere, in2028)))._tag).toBe("ProjectNotFound")
    }))
}

/** All that a change writes. */
const everything = Effect.gen(function* () {
  const store = yield* MembershipStore
  const [webhook] = yield* (yield* WebhookStore).list(p1)
  const of = { projectId: p1, webhookId: (webhook ?? newWebhook(p1)).id }
  return {
    members: yield* store.list(p1, { after: undefined, limit: 1000, only: undefined }),
    rows: yield* store.history(p1, { userId: undefined, limit: 1000 }),
    deliveries: yield* (yield* Outbox).deliveries(of, { limit: 1000 }),
  }
})

// Far in the future, so that none of them is in the past of a store with a clock of its own.
const dates = fc.nat({ max: 4 }).map((years) => EndDate(Date.UTC(2800 + years, 0, 1)))
const users = fc.constantFrom(u1, u2, u3)

const situations = fc.record({
  mode: fc.constantFrom(...Bulk.modes),
  granted: fc.array(fc.tuple(users, dates), { maxLength: 5 }),
  extended: fc.array(fc.record({ endDate: dates, mode: fc.constantFrom(...Bulk.modes) }), {
    maxLength: 3,
  }),
  changed: fc.option(fc.tuple(users, dates), { nil: undefined }),
  userId: users,
  endDate: dates,
  expectedEndDate: fc.option(dates, { nil: undefined }),
})

type Situation = typeof situations extends fc.Arbitrary<infer Value> ? Value : never

/** Makes members with dates of their own, and with that of a bulk extension. */
const arrange = Effect.fnUntraced(function* ({ changed, extended, granted }: Situation) {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  yield* (yield* WebhookStore).add(newWebhook(p1), 50, occasion)
  const grant = ([userId, endDate]: readonly [typeof u1, EndDate]) =>
    store.grant({ ...change(p1), userId, endDate })
  yield* Effect.forEach(granted, grant)
  for (const bulk of extended) yield* store.extendAll({ ...change(p1), ...bulk })
  if (changed !== undefined) yield* grant(changed)
})

const dryRunTests = ({ property }: StoreTests): void =>
  property(
    "is told by a dry run, which changes nothing",
    situations,
    Effect.fnUntraced(function* (situation: Situation) {
      yield* arrange(situation)
      const { endDate, expectedEndDate, mode, userId } = situation
      const work = Effect.gen(function* () {
        const memberships = yield* Memberships
        const one = { projectId: p1, userId, endDate, expectedEndDate }
        const all = { projectId: p1, endDate, mode }
        const before = yield* everything
        const dryOne = yield* Effect.result(memberships.extend({ ...one, dryRun: true }))
        const dryAll = yield* memberships.extendAll({ ...all, dryRun: true })
        expect(yield* everything).toEqual(before)
        const isLater = before.members.filter((member) => member.endDate > endDate)
        expect(dryAll.wouldShorten).toBe(mode === "set" ? isLater.length : 0)
        const { wouldShorten: _, ...foreseen } = dryAll
        expect(foreseen).toEqual(yield* memberships.extendAll(all))
        // The bulk extension has changed the date that the extension expects.
        yield* Effect.forEach(before.members, (member) => memberships.grant(member))
        expect(dryOne).toEqual(yield* Effect.result(memberships.extend(one)))
      })
      yield* Effect.provide(work, Memberships.layer())
    }),
  )

/** Declares the tests. */
export const countingTests = (on: StoreTests): void => {
  on.describe("count", () => countTests(on))
  on.describe("what an extension would do", () => dryRunTests(on))
}
