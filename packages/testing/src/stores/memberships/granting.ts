/** Grants to users without a membership. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  type AlreadyMember,
  EndDate,
  type Granted,
  type GrantIfAbsent,
  MembershipStore,
  Millis,
  type ReplayedResponse,
  TimeZone,
  defaultProjectSettings,
  type UserId,
  alreadyMember,
  formatGrantAnswer,
  isAlreadyMember,
  metadataJson,
  replayedResponse,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { HostTransaction, type StoreTests } from "../declare.ts"
import { dayMillis, expectFailure, times } from "../steps.ts"
import { changeSettings, gold, nowhere, observe, prepared } from "./every-change.ts"

const { change, idempotency, in2027, in2028, in2029, p1, u1, u2, u3 } = Fixture

const past = EndDate(Date.UTC(2001, 0))

const atOnce = { concurrency: "unbounded" } as const

const asked = (userId: UserId, more: Partial<GrantIfAbsent> = {}): GrantIfAbsent => ({
  ...change(p1),
  userId,
  endDate: in2028,
  isFinal: true,
  ...more,
})

/** Returns what a grant did. */
const outcomeOf = (result: Granted | AlreadyMember | ReplayedResponse): string => {
  if (isReplayedResponse(result)) return "replayed"
  return isAlreadyMember(result) ? "left" : "created"
}

const countOf = (outcomes: ReadonlyArray<string>, one: string): number =>
  outcomes.filter((outcome) => outcome === one).length

const membershipsIn = Effect.gen(function* () {
  return (yield* (yield* MembershipStore).findProject(p1)).memberships
})

export const absentTests = ({ describe, testsAfter }: StoreTests): void => {
  const { test, transactional } = testsAfter(prepared)

  describe("a grant to somebody absent", () => {
    test("creates a membership with all that a grant sets", function* (store) {
      const written = yield* observe()
      const form = { inDays: true, keptDay: 30 }
      const granted = asked(u3, { ...form, metadata: gold, reason: undefined })
      expect(outcomeOf(yield* store.grantIfAbsent(granted))).toBe("created")
      expect(yield* store.find(p1, u3)).toMatchObject({ endDate: in2028, metadata: gold, ...form })
      expect(yield* membershipsIn).toBe(3)
      const { deliveries, rows } = yield* written
      expect(rows).toMatchObject([{ action: "granted", from: undefined, to: in2028, userId: u3 }])
      expect(deliveries).toHaveLength(1)
      yield* expectFailure(
        "ProjectNotFound",
        store.grantIfAbsent({ ...granted, ...change(nowhere) }),
      )
    })

    test("leaves a membership as it is, even an expired one, and returns it", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: past, keptDay: 31, metadata: gold })
      const written = yield* observe()
      const before = yield* written
      for (const userId of [u1, u2]) {
        const found = yield* store.find(p1, userId)
        const left = asked(userId, { metadata: { plan: "silver" } })
        expect(yield* store.grantIfAbsent(left)).toEqual(alreadyMember(found))
      }
      expect(yield* written).toEqual(before)
      expect(yield* membershipsIn).toBe(2)
    })

    test("returns the date that holds after bulk extensions, and its form", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: in2027, inDays: true, keptDay: 30 })
      const bulk = { mode: "extendBy", by: Millis(3 * dayMillis) } as const
      yield* store.extendAll({ ...change(p1), bulk })
      const found = yield* store.find(p1, u1)
      expect(found).toMatchObject({ endDate: in2027 + 3 * dayMillis, keptDay: undefined })
      expect(yield* store.grantIfAbsent(asked(u1))).toEqual(alreadyMember(found))
    })

    test("is granted once, if many ask at the same time, with or without keys", function* (store) {
      for (const isKeyed of [false, true]) {
        const written = yield* observe()
        const results = yield* times(12, (index) =>
          store.grantIfAbsent(
            asked(u3, {
              endDate: EndDate(in2028 + index),
              idempotency: isKeyed ? idempotency() : undefined,
            }),
          ),
        )
        expect(countOf(results.map(outcomeOf), "created")).toBe(1)
        const found = yield* store.find(p1, u3)
        const left = results.filter((one) => isAlreadyMember(one))
        expect(left).toEqual(Array.from({ length: 11 }, () => alreadyMember(found)))
        const { deliveries, rows } = yield* written
        expect([rows.length, deliveries.length]).toEqual([1, 1])
        expect(yield* membershipsIn).toBe(3)
        yield* store.end({ ...change(p1), userId: u3 })
      }
    })

    test("gives way to a grant, and comes back after an end, at the same time", function* (store) {
      for (let round = 0; round < 10; round++) {
        const granted = store.grant({ ...change(p1), userId: u3, endDate: in2029 })
        yield* Effect.all([granted, store.grantIfAbsent(asked(u3))], atOnce)
        // If the grant comes last, it sets the date.
        expect((yield* store.find(p1, u3)).endDate).toBe(in2029)
        const ended = store.end({ ...change(p1), userId: u3 })
        const [, again] = yield* Effect.all([ended, store.grantIfAbsent(asked(u3))], atOnce)
        const isCreated = outcomeOf(again) === "created"
        expect(yield* membershipsIn).toBe(isCreated ? 3 : 2)
        if (isCreated) yield* store.end({ ...change(p1), userId: u3 })
      }
    })

    test("keeps its key with the first response, also if it has left the membership", function* (store) {
      yield* store.grant({ ...change(p1), userId: u1, endDate: past, inDays: true, metadata: gold })
      const found = yield* store.find(p1, u1)
      for (const userId of [u1, u3]) {
        const zone = TimeZone("Asia/Kathmandu")
        const given = { idempotency: idempotency(), at: 7, timeZone: zone, keptDay: 30 }
        const once = asked(userId, given)
        const isLeft = outcomeOf(yield* store.grantIfAbsent(once)) === "left"
        expect(isLeft).toBe(userId === u1)
        const answer = isLeft
          ? formatGrantAnswer({ ...found, at: 7, metadata: metadataJson(gold), isLeft })
          : formatGrantAnswer({ ...once, metadata: "{}", isLeft })
        yield* store.grant({ ...change(p1), userId, endDate: in2029 })
        yield* userId === u1
          ? changeSettings(store, change(p1), { timeZone: zone })
          : changeSettings(store, change(p1), defaultProjectSettings, {
              ...defaultProjectSettings,
              timeZone: zone,
            })
        const again = asked(userId, { ...given, at: 8 })
        expect(yield* store.grantIfAbsent(again)).toEqual(replayedResponse(answer))
        const other = { ...given, idempotency: { ...given.idempotency, fingerprint: "another" } }
        yield* expectFailure("IdempotencyMismatch", store.grantIfAbsent(asked(userId, other)))
        yield* store.end({ ...change(p1), userId })
        expect(yield* store.grantIfAbsent(again)).toEqual(replayedResponse(answer))
      }
    })

    test("keeps no key for a membership that it has left, unless it is final", function* (store) {
      const key = idempotency()
      const first = { ...asked(u1, { isFinal: false }), idempotency: key }
      expect(outcomeOf(yield* store.grantIfAbsent(first))).toBe("left")
      expect(yield* store.recall(key, p1)).toBeUndefined()
      yield* store.extend({ ...change(p1), userId: u1, endDate: in2029, idempotency: key })
      expect(yield* store.recall(key, p1)).toEqual(replayedResponse())
      const created = { ...asked(u3, { isFinal: false }), idempotency: idempotency() }
      expect(outcomeOf(yield* store.grantIfAbsent(created))).toBe("created")
      expect(yield* store.recall(created.idempotency, p1)).toBeDefined()
    })

    test("is made once if many repeat it with its key at the same time", function* (store) {
      for (const [userId, first] of [
        [u1, "left"],
        [u3, "created"],
      ] as const) {
        const key = { ...idempotency(), answer: "an answer" }
        const results = yield* times(12, () =>
          store.grantIfAbsent(asked(userId, { idempotency: key })),
        )
        const outcomes = results.map(outcomeOf)
        expect([countOf(outcomes, first), countOf(outcomes, "replayed")]).toEqual([1, 11])
        expect(yield* store.recall(key, p1)).toEqual(replayedResponse("an answer"))
      }
    })

    transactional("reads what the host's transaction has written", function* (store) {
      const both = Effect.gen(function* () {
        yield* store.grantIfAbsent(asked(u3))
        return outcomeOf(yield* store.grantIfAbsent(asked(u3)))
      })
      const { run } = yield* HostTransaction
      expect(yield* run(both)).toBe("left")
    })
  })
}
