/** Changes of several memberships in one step. */

import { expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import {
  EndDate,
  type MemberChange,
  MembershipStore,
  Millis,
  type Term,
  type UserId,
  instantForm,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fixture from "../../support/fixtures.ts"
import { inDays } from "../announcing.ts"
import type { StoreTests } from "../declare.ts"
import { createProjects, dayMillis, expectFailure } from "../steps.ts"

const { change, context, draft, idempotency, longAgo, p1, p2, sequenceOf, u1, u2, u3 } = Fixture

type Store = MembershipStore["Service"]

const gold = { plan: "gold" }

/** A store with two members: one in days with a kept day and metadata, and one who is paused. */
const prepared = Effect.gen(function* () {
  yield* createProjects
  const store = yield* MembershipStore
  const endDate = yield* inDays(10)
  const form = { inDays: true, keptDay: 30 }
  yield* store.grant({ ...change(p1), userId: u1, endDate, ...form, metadata: gold })
  yield* store.grant({ ...change(p1), userId: u2, endDate, metadata: gold })
  const pausing = { ...change(p1), userId: u2, until: undefined, expected: { endDate } }
  yield* store.pause({ ...pausing, at: yield* inDays(0) })
  return store
})

/** Returns a user's term, if there is a membership. */
const termOf = (store: Store, userId: UserId) =>
  store.find(p1, userId).pipe(
    Effect.map(({ endDate, inDays: isInDays, keptDay, pause }): Term => {
      return { endDate, inDays: isInDays, keptDay, pause }
    }),
    Effect.catchTag("MembershipNotFound", () => Effect.undefined),
  )

/** Returns a change from what there is. */
const changeOf = Effect.fnUntraced(function* (
  store: Store,
  userId: UserId,
  to: Term | undefined,
): Effect.fn.Return<MemberChange, unknown> {
  return { userId, event: draft(p1), from: yield* termOf(store, userId), to }
})

const changesOf = (changes: ReadonlyArray<MemberChange>) =>
  ({ ...context, projectId: p1, reason: undefined, action: "reverted", changes }) as const

/** Changes all three users. */
const everything = Effect.fnUntraced(function* (store: Store) {
  const endDate = yield* inDays(40)
  const since = yield* inDays(-1)
  const term = { endDate, ...instantForm, pause: undefined }
  const paused = { endDate, inDays: true, keptDay: 31, pause: { since, until: endDate } }
  const terms = { first: paused, second: term, third: term }
  return {
    terms,
    changes: [
      yield* changeOf(store, u1, terms.first),
      yield* changeOf(store, u2, terms.second),
      yield* changeOf(store, u3, terms.third),
    ],
  }
})

export const changingEachTests = (on: StoreTests): void => {
  const { test } = on.testsAfter(prepared)

  on.describe("changes of each", () => {
    test("set dates, forms and pauses, and create and remove memberships", function* (store) {
      const { changes, terms } = yield* everything(store)
      const made = yield* store.changeEach(changesOf(changes))
      const events = isReplayedResponse(made) ? expect.fail("replayed") : made
      expect(events.map(({ id }) => id)).toEqual(changes.map(({ event }) => event.id))
      for (const [index, userId] of [u1, u2, u3].entries()) {
        expect(yield* termOf(store, userId)).toEqual(changes[index]?.to)
      }
      expect((yield* store.find(p1, u1)).metadata).toEqual(gold)
      expect((yield* store.find(p1, u3)).metadata).toEqual(noMetadata)
      expect((yield* store.findProject(p1)).memberships).toBe(3)
      const rows = yield* store.history(p1, { userId: undefined, limit: 3 })
      expect(rows.toReversed()).toMatchObject(
        changes.map(({ from, to, userId }) => ({
          action: "reverted",
          userId,
          from: from?.endDate,
          to: to?.endDate,
        })),
      )

      const ending = [
        { userId: u1, event: draft(p1), from: terms.first, to: undefined },
        { userId: u2, event: draft(p1), from: terms.second, to: undefined },
      ]
      const ended = yield* store.changeEach(changesOf(ending))
      const last = isReplayedResponse(ended) ? expect.fail("replayed") : ended
      expect(yield* termOf(store, u1)).toBeUndefined()
      expect((yield* store.findProject(p1)).memberships).toBe(1)
      for (const [index, one] of last.entries()) {
        const before = events[index] ?? expect.fail("no event")
        expect(sequenceOf(one)).toBeGreaterThan(sequenceOf(before))
      }
      const again = yield* store.grant({ ...change(p1), userId: u1, endDate: terms.first.endDate })
      const granted = isReplayedResponse(again) ? expect.fail("replayed") : again.event
      expect(sequenceOf(granted)).toBeGreaterThan(sequenceOf(last[0] ?? granted))
      expect((yield* store.find(p1, u1)).metadata).toEqual(noMetadata)
    })

    test("fail, and change nobody, unless each is as expected", function* (store) {
      const { changes } = yield* everything(store)
      const [first, second, third] = changes
      const pause = second?.from?.pause
      if (
        first?.from === undefined ||
        second?.from === undefined ||
        third === undefined ||
        pause === undefined
      )
        return expect.fail("not prepared")
      const other = { ...first.from, endDate: EndDate(first.from.endDate + 1) }
      const wrong: ReadonlyArray<ReadonlyArray<MemberChange>> = [
        [{ ...first, from: other }, second, third],
        [{ ...first, from: { ...first.from, inDays: false } }, second, third],
        [{ ...first, from: { ...first.from, keptDay: undefined } }, second, third],
        [{ ...first, from: { ...first.from, pause } }, second, third],
        [{ ...first, from: undefined }, second, third],
        [first, { ...second, from: { ...second.from, pause: undefined } }, third],
        [first, { ...second, from: { ...second.from, pause: { ...pause, until: 1e13 } } }, third],
        [first, second, { ...third, from: first.from }],
      ]
      yield* expectFailure(
        "MemberChangesConflict",
        ...wrong.map((given) => store.changeEach(changesOf(given))),
        store.changeEach({ ...changesOf([first]), projectId: p2 }),
      )
      expect(yield* termOf(store, u1)).toEqual(first.from)
      expect(yield* termOf(store, u2)).toEqual(second.from)
      expect(yield* termOf(store, u3)).toBeUndefined()
    })

    test("give own dates: earlier bulk extensions do not apply, and later ones do", function* (store) {
      const by = Millis(dayMillis)
      const bulk = { mode: "extendBy", by } as const
      const first = change(p1)
      yield* store.extendAll({ ...first, bulk })
      const { changes, terms } = yield* everything(store)
      expect(changes[0]?.from).toMatchObject({ inDays: true, keptDay: undefined })
      yield* store.changeEach(changesOf(changes))
      yield* store.undoBulkExtension({
        ...change(p1),
        bulkExtensionId: first.event.id,
        madeAfter: longAgo,
      })
      expect((yield* store.find(p1, u3)).endDate).toBe(terms.third.endDate)
      yield* store.extendAll({ ...change(p1), bulk })
      expect((yield* store.find(p1, u3)).endDate).toBe(terms.third.endDate + by)
    })

    test("are made once with an idempotency key", function* (store) {
      const { changes } = yield* everything(store)
      const once = { ...idempotency(), answer: "2 next" }
      const made = { ...changesOf(changes), idempotency: once }
      yield* store.changeEach(made)
      expect(yield* store.changeEach(made)).toMatchObject({ _tag: "Replayed", answer: "2 next" })
      const other = { ...made, idempotency: { ...once, fingerprint: "another request" } }
      yield* expectFailure("IdempotencyMismatch", store.changeEach(other))
      expect(yield* store.history(p1, { userId: u3, limit: 10 })).toHaveLength(1)
    })
  })
}
