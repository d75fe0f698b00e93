/** Random sequences of changes, compared with a simple model. */

import { expect } from "@effect/vitest"
import {
  type BulkChange,
  type BulkPreview,
  EndDate,
  type EventId,
  MembershipStore,
  Millis,
  ProjectId,
  type UserId,
  dayOf,
  joinMemberships,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import fc from "fast-check"
import {
  change,
  in2027,
  in2029,
  longAgo,
  occasion,
  p1,
  p2,
  u1,
  u2,
  u3,
} from "../../support/fixtures.ts"
import type { StoreTests } from "../declare.ts"
import { expectEndCounts } from "./counting-ends.ts"

/** A change of one membership, or of all. */
type Entry =
  | { readonly _tag: "Own"; readonly userId: UserId; readonly endDate: EndDate }
  | { readonly _tag: "End"; readonly userId: UserId }
  | { readonly _tag: "Bulk"; readonly id: EventId; readonly change: BulkChange; isUndone: boolean }

/** Everything that has happened in a project. */
type Ledger = Array<Entry>

/** Returns a project's end dates by user id, as if what was undone had never happened. */
const datesOf = (ledger: Ledger): ReadonlyMap<UserId, EndDate> => {
  const dates = new Map<UserId, EndDate>()
  for (const entry of ledger) {
    if (entry._tag === "Own") dates.set(entry.userId, entry.endDate)
    else if (entry._tag === "End") dates.delete(entry.userId)
    else if (!entry.isUndone) {
      for (const [userId, before] of dates) dates.set(userId, bulkDate(before, entry.change))
    }
  }
  return dates
}

const bulkDate = (before: EndDate, bulk: BulkChange): EndDate => {
  switch (bulk.mode) {
    case "set":
      return bulk.endDate
    case "neverShorten":
      return before < bulk.endDate ? bulk.endDate : before
    case "extendBy":
      return EndDate(before + bulk.by)
  }
}

type Store = MembershipStore["Service"]

interface Real {
  readonly run: <A, E>(use: (store: Store) => Effect.Effect<A, E>) => Promise<A>
}

type Command = fc.AsyncCommand<Ledger, Real>

const command = (text: string, run: (ledger: Ledger, real: Real) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text,
})

const tagOf = <A>(effect: Effect.Effect<A, { readonly _tag: string }>) =>
  Effect.match(effect, { onSuccess: () => "done", onFailure: ({ _tag }) => _tag })

const grant = (userId: UserId, endDate: EndDate): Command =>
  command(`grant ${userId} ${endDate}`, async (ledger, { run }) => {
    await run((store) => store.grant({ ...change(p1), userId, endDate }))
    ledger.push({ _tag: "Own", userId, endDate })
  })

const importAll = (dates: ReadonlyMap<UserId, EndDate>): Command =>
  command(`import ${JSON.stringify([...dates])}`, async (ledger, { run }) => {
    const memberships = [...dates].map(([userId, endDate]) => ({ userId, endDate }))
    await run((store) => store.import({ ...change(p1), memberships }))
    for (const [userId, endDate] of dates) ledger.push({ _tag: "Own", userId, endDate })
  })

const extend = (userId: UserId, endDate: EndDate): Command =>
  command(`extend ${userId} ${endDate}`, async (ledger, { run }) => {
    const outcome = await run((store) => tagOf(store.extend({ ...change(p1), userId, endDate })))
    const isMember = datesOf(ledger).has(userId)
    expect(outcome).toBe(isMember ? "done" : "MembershipNotFound")
    if (isMember) ledger.push({ _tag: "Own", userId, endDate })
  })

const extendIf = (userId: UserId, endDate: EndDate, expectedEndDate: EndDate): Command =>
  command(`extend ${userId} ${endDate} if ${expectedEndDate}`, async (ledger, { run }) => {
    const extension = { ...change(p1), userId, endDate, expectedEndDate }
    const outcome = await run((store) => tagOf(store.extend(extension)))
    const current = datesOf(ledger).get(userId)
    if (current === undefined) return expect(outcome).toBe("MembershipNotFound")
    expect(outcome).toBe(current === expectedEndDate ? "done" : "EndDateConflict")
    if (current === expectedEndDate) ledger.push({ _tag: "Own", userId, endDate })
  })

const lengthen = (userId: UserId, endDate: EndDate): Command =>
  command(`extend ${userId} ${endDate} neverShorten`, async (ledger, { run }) => {
    const extension = { ...change(p1), userId, endDate, mode: "neverShorten" as const }
    const outcome = await run((store) => tagOf(store.extend(extension)))
    const current = datesOf(ledger).get(userId)
    expect(outcome).toBe(current === undefined ? "MembershipNotFound" : "done")
    if (current !== undefined && current <= endDate) ledger.push({ _tag: "Own", userId, endDate })
  })

const extendAll = (bulk: BulkChange): Command =>
  command(`extendAll ${JSON.stringify(bulk)}`, async (ledger, { run }) => {
    const extension = { ...change(p1), bulk }
    const total = datesOf(ledger).size
    const preview = await run((store) => store.previewBulkExtension(p1, bulk))
    const before = datesOf(ledger)
    expect(await run((store) => store.extendAll(extension))).toMatchObject({ total })
    ledger.push({ _tag: "Bulk", id: extension.event.id, change: bulk, isUndone: false })
    expectPreview(preview, before, datesOf(ledger))
  })

const expectPreview = (
  preview: BulkPreview,
  before: ReadonlyMap<UserId, EndDate>,
  after: ReadonlyMap<UserId, EndDate>,
): void => {
  const changed = [...before].flatMap(([userId, endDate]) => {
    const wouldEnd = after.get(userId) ?? endDate
    return wouldEnd === endDate ? [] : [{ userId, endDate, wouldEnd }]
  })
  expect(preview).toMatchObject({
    total: before.size,
    shortened: changed.filter(({ endDate, wouldEnd }) => wouldEnd < endDate).length,
    examples: changed.toSorted((one, other) => (one.userId < other.userId ? -1 : 1)),
  })
}

const undo = (which: number): Command =>
  command(`undo ${which}`, async (ledger, { run }) => {
    const made = ledger.filter((entry) => entry._tag === "Bulk")
    const entry = made[which % Math.max(1, made.length)]
    if (entry === undefined) return
    const target = { bulkExtensionId: entry.id, madeAfter: longAgo }
    const before = datesOf(ledger)
    const preview = await run((store) => Effect.result(store.previewUndo(p1, target)))
    const outcome = await run((store) =>
      tagOf(store.undoBulkExtension({ ...change(p1), ...target })),
    )
    // A store may settle a bulk extension at once.
    expect(["BulkExtensionSettled", entry.isUndone ? "BulkExtensionUndone" : "done"]).toContain(
      outcome,
    )
    if (outcome === "done") entry.isUndone = true
    if (outcome === "done") expectPreview(Result.getOrThrow(preview), before, datesOf(ledger))
    else expect(preview).toMatchObject({ failure: { _tag: outcome } })
  })

const end = (userId: UserId): Command =>
  command(`end ${userId}`, async (ledger, { run }) => {
    const outcome = await run((store) => tagOf(store.end({ ...change(p1), userId })))
    expect(outcome).toBe(datesOf(ledger).has(userId) ? "done" : "MembershipNotFound")
    ledger.push({ _tag: "End", userId })
  })

const move = (userId: UserId, to: UserId): Command =>
  command(`move ${userId} ${to}`, async (ledger, { run }) => {
    const dated = (endDate: EndDate | undefined) => endDate && { endDate, metadata: noMetadata }
    const [from, replaced] = [userId, to].map((one) => dated(datesOf(ledger).get(one)))
    if (userId === to) return
    const expected = { from: from ?? { endDate: in2027, metadata: noMetadata }, to: replaced }
    const joined = joinMemberships(expected.from, expected.to) ?? expected.from
    const moving = { ...change(p1), granted: change(p1).event, userId, to, ...joined, expected }
    expect(await run((store) => tagOf(store.move(moving)))).toBe(from ? "done" : "MoveConflict")
    if (from === undefined) return
    ledger.push({ _tag: "End", userId })
    ledger.push({ _tag: "Own", userId: to, endDate: joined.endDate })
  })

const list = (after: UserId | undefined, limit: number): Command =>
  command(`list after ${after} limit ${limit}`, async (ledger, { run }) => {
    const page = await run((store) => store.list(p1, { after, limit }))
    const expected = [...datesOf(ledger)]
      .filter(([userId]) => after === undefined || userId > after)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .slice(0, limit)
    expect(page.map(({ endDate, userId }) => [userId, endDate])).toEqual(expected)
  })

const countEnds = (endDate: EndDate, length: number, further: BulkChange | undefined): Command =>
  command(`countEnds ${endDate} ${length} ${JSON.stringify(further)}`, async (ledger, { run }) => {
    const first = dayOf(endDate) - 1
    const days = { first, last: first + length }
    const counts = await run((store) => store.countEnds(p1, { days, change: further }))
    const endDates = [...datesOf(ledger).values()]
    expectEndCounts(
      counts,
      further === undefined ? endDates : endDates.map((before) => bulkDate(before, further)),
    )
  })

const users = fc.constantFrom(u1, u2, u3)
const dates = fc.nat({ max: 3 }).map((years) => EndDate(in2027 + years * 31_536_000_000))

const bulkChanges: fc.Arbitrary<BulkChange> = fc.oneof(
  fc.record({ mode: fc.constantFrom("set" as const, "neverShorten" as const), endDate: dates }),
  fc.record({
    mode: fc.constant("extendBy" as const),
    by: fc.integer({ min: 1, max: 2 }).map((years) => Millis(years * 31_536_000_000)),
  }),
)

const commands = fc.commands(
  [
    fc.tuple(users, dates).map((args) => grant(...args)),
    fc.array(fc.tuple(users, dates)).map((entries) => importAll(new Map(entries))),
    fc.tuple(users, dates).map((args) => extend(...args)),
    fc.tuple(users, dates, dates).map((args) => extendIf(...args)),
    fc.tuple(users, dates).map((args) => lengthen(...args)),
    bulkChanges.map(extendAll),
    fc.nat().map(undo),
    users.map(end),
    fc.tuple(users, users).map((args) => move(...args)),
    fc
      .tuple(dates, fc.nat({ max: 399 }), fc.option(bulkChanges, { nil: undefined }))
      .map((args) => countEnds(...args)),
    fc
      .tuple(fc.option(users, { nil: undefined }), fc.integer({ min: 1, max: 3 }))
      .map((args) => list(...args)),
  ],
  { maxCommands: 60, size: "+1" },
)

/** Declares the tests. */
export const modelTests = ({ property }: StoreTests): void =>
  property(
    "behaves like a map from user ids to end dates, for any sequence of changes",
    commands,
    Effect.fnUntraced(function* (sequence: Iterable<Command>) {
      const store = yield* MembershipStore
      yield* store.createProject(p1, occasion)
      yield* store.createProject(p2, occasion)
      yield* store.grant({ ...change(p2), userId: u1, endDate: in2027 })
      const run = Effect.runPromiseWith(yield* Effect.context())
      const real: Real = { run: (use) => run(use(store)) }
      const model: Ledger = []
      yield* Effect.promise(() => fc.asyncModelRun(() => ({ model, real }), sequence))
      for (const userId of [u1, u2, u3]) {
        const found = yield* Effect.option(store.find(p1, userId))
        expect(Option.getOrUndefined(found)?.endDate).toBe(datesOf(model).get(userId))
      }
      expect(yield* store.list(p2, { after: undefined, limit: 10 })).toEqual([
        { projectId: p2, userId: u1, endDate: in2027, metadata: {} },
      ])
    }),
  )

/** A missing project. */
export const nowhere = ProjectId("nowhere")

/** A store with two projects. The first has two members. */
export const prepared = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* store.createProject(p1, occasion)
  yield* store.createProject(p2, occasion)
  yield* store.grant({ ...change(p1), userId: u1, endDate: in2027 })
  yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
  return store
})

/** Returns a member's end date. */
export const endDateOf = Effect.fnUntraced(function* (userId: UserId, projectId = p1) {
  const store = yield* MembershipStore
  return (yield* store.find(projectId, userId)).endDate
})
