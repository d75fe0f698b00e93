/** Random changes, compared with a simple model. */

import { expect } from "@effect/vitest"
import {
  type BulkChange,
  type BulkPreview,
  EndDate,
  MembershipStore,
  type UserId,
  dayOf,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import fc from "fast-check"
import { asInstant, change, in2027, context, p1, p2, u1, u2, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import {
  type EndDates,
  type Ledger,
  type MembershipChange,
  applyChange,
  bulkDate,
  datesOf,
  drawChanges,
  makeChange,
  undoOf,
} from "./changes.ts"
import { expectEndCounts } from "./reading.ts"

/** A question for several memberships. */
type Question =
  | { readonly _tag: "List"; readonly after: UserId | undefined; readonly limit: number }
  | {
      readonly _tag: "CountEnds"
      readonly endDate: EndDate
      readonly length: number
      readonly change: BulkChange | undefined
    }

const users = fc.constantFrom(u1, u2, u3)
const dates = fc.nat({ max: 3 }).map((years) => EndDate(in2027 + years * 31_536_000_000))
const { bulk, find: _, ...changes } = drawChanges(users, dates)

const step: fc.Arbitrary<MembershipChange | Question> = fc.oneof(
  ...Object.values(changes),
  fc.record({
    _tag: fc.constant("List" as const),
    after: fc.option(users, { nil: undefined }),
    limit: fc.integer({ min: 1, max: 3 }),
  }),
  fc.record({
    _tag: fc.constant("CountEnds" as const),
    endDate: dates,
    length: fc.nat({ max: 399 }),
    change: fc.option(bulk, { nil: undefined }),
  }),
)

const byUserId = ([one]: readonly [UserId, unknown], [other]: readonly [UserId, unknown]): number =>
  one < other ? -1 : 1

const expectPreview = (preview: BulkPreview, before: EndDates, after: EndDates): void => {
  const changed = [...before].toSorted(byUserId).flatMap(([userId, endDate]) => {
    const wouldEnd = after.get(userId) ?? endDate
    return wouldEnd === endDate ? [] : [{ userId, endDate, wouldEnd }]
  })
  expect(preview).toMatchObject({
    total: before.size,
    shortened: changed.filter(({ endDate, wouldEnd }) => wouldEnd < endDate).length,
    examples: changed,
  })
}

/** Asks the store, and compares with the model. */
const answerLike = Effect.fnUntraced(function* (ledger: Ledger, question: Question) {
  const store = yield* MembershipStore
  const endDates = [...datesOf(ledger)].toSorted(byUserId)
  switch (question._tag) {
    case "List": {
      const { after, limit } = question
      const page = yield* store.list(p1, { after, limit })
      expect(page.map(({ endDate, userId }) => [userId, endDate])).toEqual(
        endDates.filter(([userId]) => after === undefined || userId > after).slice(0, limit),
      )
      return
    }
    case "CountEnds": {
      const first = dayOf(question.endDate) - 1
      const days = { first, last: first + question.length }
      expectEndCounts(
        yield* store.countEnds(p1, { days, change: question.change }),
        endDates.map(([, before]) =>
          question.change === undefined ? before : bulkDate(before, question.change),
        ),
      )
    }
  }
})

/** Returns the store's preview of a change, if there is one. */
const previewed = Effect.fnUntraced(function* (ledger: Ledger, asked: MembershipChange) {
  const store = yield* MembershipStore
  if (asked._tag === "ExtendAll")
    return yield* Effect.result(store.previewBulkExtension(p1, asked.bulk))
  return asked._tag === "Undo"
    ? yield* Effect.result(store.previewUndo(p1, undoOf(ledger, asked.which)))
    : undefined
})

/** Makes a change in the store and in the model, and compares. Returns what has happened then. */
const changeLike = Effect.fnUntraced(function* (ledger: Ledger, asked: MembershipChange) {
  const preview = yield* previewed(ledger, asked)
  const { answer, event } = yield* makeChange(asked, ledger)
  const isDone = answer[0] === "Done"
  // A store may settle a bulk extension at once.
  const isSettled = answer[0] === "BulkExtensionSettled"
  const [next, expected] = isSettled ? [ledger, answer] : applyChange(ledger, asked, event?.id)
  expect(answer).toEqual(expected)
  if (preview !== undefined && isDone)
    expectPreview(Result.getOrThrow(preview), datesOf(ledger), datesOf(next))
  else if (preview !== undefined) expect(preview).toMatchObject({ failure: { _tag: answer[0] } })
  return next
})

export const modelTests = ({ property }: StoreTests): void =>
  property(
    "behaves like a map from user ids to end dates, for any sequence of changes",
    fc.array(step, { maxLength: 60, size: "+1" }),
    Effect.fnUntraced(function* (steps) {
      const store = yield* MembershipStore
      yield* store.createProject(p1, context)
      yield* store.createProject(p2, context)
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      let ledger: Ledger = []
      for (const one of steps) {
        if (one._tag === "List" || one._tag === "CountEnds") yield* answerLike(ledger, one)
        else ledger = yield* changeLike(ledger, one)
      }
      for (const userId of [u1, u2, u3]) yield* changeLike(ledger, { _tag: "Find", userId })
      expect(yield* store.list(p2, { after: undefined, limit: 10 })).toEqual([
        { projectId: p2, userId: u1, endDate: in2027, ...asInstant, metadata: {} },
      ])
    }),
  )
