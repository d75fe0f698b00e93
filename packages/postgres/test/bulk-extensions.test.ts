/** Bulk extensions and the sequences of changes: where rounds end, and where old ones become part of members' own dates. */

import { describe, expect } from "@effect/vitest"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import { type BulkChange, EndDate, type EventId, MembershipStore, Millis } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { settleBulkExtensions } from "../src/retention.ts"
import { round } from "../src/sql/clauses.ts"
import { countRows, during, endingPages, sql, testsOn, valueOf } from "./harness.ts"

const schema = "bulk_extensions"
const { change, in2027, in2028, in2029, p1, u1, u2, u3 } = Fixture
const test = testsOn(schema)

type Store = MembershipStore["Service"]

const ofU1 = () => ({ ...change(p1), userId: u1 })
const u1InP1 = `user_id = '${u1}' AND project_number = (SELECT number FROM ${schema}.projects WHERE id = 'p1')`

const setSequence = (sequence: number) =>
  sql(`UPDATE ${schema}.memberships SET seq = ${sequence} WHERE ${u1InP1}`)

const setAll = (store: Store, endDate: EndDate, mode: "set" | "neverShorten" = "set") =>
  store.extendAll({ ...change(p1), bulk: { endDate, mode } })

/** The last event's sequence, as it is stored. */
const lastSequence = Effect.map(
  valueOf<string>(
    `SELECT body::jsonb #>> '{data,sequence}' FROM ${schema}.events ORDER BY xid DESC LIMIT 1`,
  ),
  BigInt,
)

const announce = Effect.fnUntraced(function* ({ expiry }: Store) {
  const decide = makeDecideAnnouncement({ leads: reminderLeads([Millis(3_600_000)]), since: 0 })
  yield* sql(
    `UPDATE ${schema}.memberships SET next_check_at = now(), end_date = date_trunc('second', now() + interval '1 minute'), date_set_at = '2020-01-01'
     WHERE ${u1InP1}`,
  )
  expect((yield* (expiry ?? expect.fail()).sweep(10, decide)).events).toHaveLength(1)
})

describe("the round of a member comes to its end", () => {
  // The member has the date 2027.
  for (const [name, make] of [
    ["an extension", (store: Store) => store.extend({ ...ofU1(), endDate: in2028 })],
    [
      "an extension that expects a date",
      (store: Store) => store.extend({ ...ofU1(), endDate: in2028, expectedEndDate: in2027 }),
    ],
    ["a grant", (store: Store) => store.grant({ ...ofU1(), endDate: in2028 })],
    ["an announcement", announce],
    [
      "an end and a return",
      (store: Store) =>
        Effect.andThen(store.end(ofU1()), store.grant({ ...ofU1(), endDate: in2028 })),
    ],
  ] as const)
    test(`by ${name}, and a bulk extension applies afterwards`, function* (store) {
      yield* setSequence(round - 1)
      yield* make(store)
      const sequences = [BigInt(round - 1), yield* lastSequence]
      yield* setAll(store, in2029)
      sequences.push(yield* lastSequence)
      expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
      yield* store.extend({ ...ofU1(), endDate: in2028 })
      sequences.push(yield* lastSequence)
      yield* setAll(store, in2029, "neverShorten")
      sequences.push(yield* lastSequence)
      expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
      const sorted = sequences.toSorted((one, other) => Number(one - other))
      expect(sequences).toEqual([...new Set(sorted)])
    })

  for (const before of [1, 2, 30, 59, 60, 61])
    test(`${before} numbers into a shared statement, and a bulk extension applies afterwards`, function* (store) {
      const last = round - before
      yield* setSequence(last)
      const made = yield* Effect.all(
        Array.from({ length: 60 }, () => store.extend({ ...ofU1(), endDate: in2028 })),
        { concurrency: "unbounded" },
      )
      const sequences = made.map((result) => ("body" in result ? Fixture.sequenceOf(result) : NaN))
      // The order in which they were asked for.
      expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other))
      expect(sequences).toHaveLength(60)
      expect(sequences[0]).toBeGreaterThan(last)
      yield* setAll(store, in2029)
      expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
      expect(Number(yield* lastSequence)).toBeGreaterThan(Math.max(...sequences))
    })
})

test("a bulk extension applies to those who came after a round of the project", function* (store) {
  yield* sql(`UPDATE ${schema}.projects SET seq = ${round - 1} WHERE id = 'p1'`)
  yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
  yield* setAll(store, in2029)
  expect((yield* store.find(p1, u3)).endDate).toBe(in2029)
})

test("sequences are safe after ten bulk extensions a second for 250 years", function* (store) {
  const least = 10n * 31_556_952n * 250n * BigInt(round)
  yield* sql(`UPDATE ${schema}.projects SET seq = ${least} WHERE id = 'p1'`)
  const memberships = [{ userId: u1, endDate: in2027 }]
  for (const step of [
    setAll(store, in2028),
    store.extend({ ...ofU1(), endDate: EndDate(in2028 + 1) }),
    store.import({ ...change(p1), memberships }),
    store.extend({ ...ofU1(), endDate: in2028 }),
    setAll(store, in2029, "neverShorten"),
  ]) {
    yield* step
    const sequence = yield* lastSequence
    expect(sequence).toBeGreaterThan(least)
    expect(Number.isSafeInteger(Number(sequence))).toBe(true)
  }
  expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
})

describe("settling bulk extensions", () => {
  const dayMillis = 86_400_000
  const members = 2500

  const settle = sql(settleBulkExtensions(`"${schema}"`))
  const settleAll = Effect.repeat(settle, { while: (rows) => rows.length > 0 })
  const openCount = countRows(`${schema}.bulk_extensions WHERE state <> 'settled'`)
  /** Makes a bulk extension. Returns its id. */
  const extendAll = (store: Store, bulk: BulkChange) =>
    Effect.suspend(() => {
      const extension = { ...change(p1), bulk }
      return Effect.as(store.extendAll(extension), extension.event.id)
    })
  const lengthen = (store: Store) => extendAll(store, { mode: "extendBy", by: Millis(dayMillis) })

  const undo = (store: Store, bulkExtensionId: EventId | undefined) =>
    store.undoBulkExtension({
      ...change(p1),
      bulkExtensionId: bulkExtensionId ?? expect.fail(),
      madeAfter: -1,
    })

  /** Makes members who were given dates between 70 bulk extensions, some undone. */
  const furnish = Effect.fnUntraced(function* (store: Store) {
    yield* sql(`DELETE FROM ${schema}.memberships`)
    yield* sql(
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, kept_day, seq)
       SELECT number, n::text, date_trunc('second', now()) + n * interval '1 hour' - interval '20 days', 31, seq
       FROM ${schema}.projects, generate_series(1, ${members}) n WHERE id = 'p1'`,
    )
    // All get places in the ending list.
    yield* endingPages(EndDate(Date.now() + 1000 * dayMillis), 1000)
    for (let count = 0; count < 70; count++) {
      const soon = EndDate(Date.now() + 20 * dayMillis)
      const id = yield* count % 10 === 3
        ? extendAll(store, { mode: "neverShorten", endDate: soon, inDays: count % 20 === 3 })
        : lengthen(store)
      if (count % 7 === 0) yield* undo(store, id)
      const [first] = yield* store.list(p1, { after: undefined, limit: 1, only: undefined })
      const endDate = EndDate(Date.now() + count * dayMillis)
      yield* store.extend({ ...change(p1), userId: first?.userId ?? u1, endDate, keptDay: 30 })
      yield* sql(
        `UPDATE ${schema}.memberships m SET seq = p.seq + 1, ending_generation = p.bulk_seq, ending_lower_bound = m.end_date
         FROM ${schema}.projects p WHERE p.id = 'p1' AND m.user_id = '${100 + count}'`,
      )
    }
  })

  /** What anybody can see: the dates by user with their forms, and the users in the ending list. */
  const seen = Effect.gen(function* () {
    const store = yield* MembershipStore
    const listed = yield* store.list(p1, { after: undefined, limit: 10_000, only: undefined })
    const pages = yield* endingPages(EndDate(Date.now() + 10_000 * dayMillis), 1000)
    return {
      dates: listed.map(({ endDate, userId }) => [userId, endDate]),
      forms: listed.map(({ inDays, keptDay }) => [inDays, keptDay]),
      users: pages.flatMap(({ memberships }) => memberships.map(({ userId }) => userId)).toSorted(),
    }
  })

  test("changes nothing that anybody can see, also with a member locked", function* (store) {
    yield* furnish(store)
    const before = yield* seen
    expect(before.dates).toHaveLength(members)
    expect(before.users.length).toBeGreaterThan(members / 2)
    expect(yield* openCount).toBe(70)
    yield* during(
      sql(`SELECT 1 FROM ${schema}.memberships WHERE user_id = '2' FOR UPDATE`),
      settleAll,
    )
    expect(yield* openCount).toBe(70)
    expect(yield* seen).toEqual(before)
    // Some members have the oldest ones in their own dates now: those are not joined with others.
    yield* Effect.replicateEffect(lengthen(store), 40)
    const after = yield* seen
    expect(after.dates).toEqual(
      before.dates.map(([userId, endDate]) => [userId, Number(endDate) + 40 * dayMillis]),
    )
    yield* settle
    expect(yield* seen).toEqual(after)
    expect(yield* settle).not.toEqual([])
    yield* settleAll
    expect(yield* openCount).toBeLessThanOrEqual(64)
    expect(yield* seen).toEqual(after)
    const all = yield* store.bulkExtensions(p1, { after: undefined, limit: 100 })
    const oldest = all.findLast(({ undone }) => undone === undefined)
    expect(yield* Effect.flip(undo(store, oldest?.id))).toMatchObject({
      _tag: "BulkExtensionSettled",
    })
    yield* undo(store, all[0]?.id)
    expect((yield* seen).dates).toHaveLength(members)
  })

  test("applies none twice to a member who was paused again before anybody saw that the pause was over", function* (store) {
    const pause = Effect.fnUntraced(function* (at: number, until: number) {
      const { endDate } = yield* store.find(p1, u1)
      yield* store.pause({ ...ofU1(), at, until, expected: { endDate } })
    })
    const now = Date.now()
    yield* lengthen(store)
    yield* pause(now - dayMillis, now)
    yield* pause(now, now + dayMillis)
    const { endDate } = yield* store.find(p1, u1)
    yield* Effect.replicateEffect(lengthen(store), 70)
    expect((yield* store.find(p1, u1)).endDate).toBe(endDate + 70 * dayMillis)
  })

  test("keeps with each member whether a change of many has set its date", function* (store) {
    const setWithOthers = countRows(
      `${schema}.memberships WHERE user_id IN ('${u1}', '${u2}') AND set_with_others_at = date_set_at`,
    )
    yield* store.grant({ ...change(p1), userId: u2, endDate: in2029 })
    for (let count = 0; count < 70; count++) {
      yield* store.grant({ ...change(p1), userId: u3, endDate: in2027 })
      yield* setAll(store, in2028, "neverShorten")
    }
    expect(yield* setWithOthers).toBe(0)
    yield* settleAll
    expect((yield* store.find(p1, u1)).endDate).toBe(in2028)
    expect(yield* setWithOthers).toBe(1)
  })
})
