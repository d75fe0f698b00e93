/** Sequences where their rounds end, and after more bulk extensions than a project ever has. */

import type { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import { EndDate, MembershipStore, Millis } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { round } from "../src/sql/clauses.ts"
import { sql } from "./harness.ts"
import { testsOn } from "./locking.ts"

const schema = "sequences"
const { in2027, in2028, in2029, p1, u1, u3 } = Fixture

const onStores = testsOn(schema)

const numberOfP1 = `(SELECT number FROM ${schema}.projects WHERE id = 'p1')`

type Store = MembershipStore["Service"]

const sequencesChange = () => Fixture.change(p1)
const ofU1 = () => ({ ...sequencesChange(), userId: u1 })

/** The sequence of the last event, as it is stored. */
const lastSequence = Effect.map(
  sql<{ readonly sequence: string }>(
    `SELECT body::jsonb #>> '{data,sequence}' AS sequence FROM ${schema}.events ORDER BY xid DESC LIMIT 1`,
  ),
  ([row]) => BigInt(row?.sequence ?? 0),
)

const hour = 3_600_000
const announce = Effect.fnUntraced(function* ({ expiry }: Store) {
  const leads = reminderLeads([Millis(hour)])
  const judge = makeDecideAnnouncement({ leads, since: 0 })
  yield* sql(
    `UPDATE ${schema}.memberships SET next_check_at = now(), end_date = date_trunc('second', now() + interval '1 minute'), date_set_at = '2020-01-01'
     WHERE user_id = '${u1}' AND project_number = ${numberOfP1}`,
  )
  expect((yield* expiry?.sweep(10, judge) ?? Effect.succeed({ events: [] })).events).toHaveLength(1)
})

/** Changes of one member, who has the date 2027. */
const changes: ReadonlyArray<
  readonly [string, (store: Store) => Effect.Effect<unknown, unknown, PgClient.PgClient>]
> = [
  ["an extension", (store) => store.extend({ ...ofU1(), endDate: in2028 })],
  [
    "an extension that expects a date",
    (store) => store.extend({ ...ofU1(), endDate: in2028, expectedEndDate: in2027 }),
  ],
  ["a grant", (store) => store.grant({ ...ofU1(), endDate: in2028 })],
  ["an announcement", announce],
  [
    "an end and a return",
    (store) => Effect.andThen(store.end(ofU1()), store.grant({ ...ofU1(), endDate: in2028 })),
  ],
]

describe("the round of a member comes to its end", () => {
  for (const [name, make] of changes) {
    onStores(
      `by ${name}, and a bulk extension applies afterwards`,
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* sql(
          `UPDATE ${schema}.memberships SET seq = ${round - 1} WHERE user_id = '${u1}' AND project_number = ${numberOfP1}`,
        )
        yield* make(store)
        const sequences = [BigInt(round - 1), yield* lastSequence]
        for (const step of [
          store.extendAll({ ...sequencesChange(), bulk: { endDate: in2029, mode: "set" } }),
          store.extend({ ...ofU1(), endDate: in2028 }),
          store.extendAll({
            ...sequencesChange(),
            bulk: { endDate: in2029, mode: "neverShorten" },
          }),
        ]) {
          yield* step
          sequences.push(yield* lastSequence)
          if (sequences.length !== 4) expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
        }
        const sorted = sequences.toSorted((one, other) => Number(one - other))
        expect(sequences).toEqual([...new Set(sorted)])
      }),
    )
  }
})

describe("the round of a member comes to its end among extensions that share a statement", () => {
  for (const before of [1, 2, 30, 59, 60, 61]) {
    onStores(
      `${before} numbers before, and a bulk extension applies afterwards`,
      Effect.gen(function* () {
        const store = yield* MembershipStore
        const last = round - before
        yield* sql(
          `UPDATE ${schema}.memberships SET seq = ${last} WHERE user_id = '${u1}' AND project_number = ${numberOfP1}`,
        )
        const extensions = Array.from({ length: 60 }, () => ({ ...ofU1(), endDate: in2028 }))
        const made = yield* Effect.all(
          extensions.map((extension) => store.extend(extension)),
          { concurrency: "unbounded" },
        )
        const sequences = made.map((result) =>
          "body" in result ? Fixture.sequenceOf(result) : NaN,
        )
        // The order in which they were asked for.
        expect(sequences).toEqual(sequences.toSorted((one, other) => one - other))
        expect(new Set(sequences).size).toBe(60)
        expect(sequences[0]).toBeGreaterThan(last)
        yield* store.extendAll({ ...sequencesChange(), bulk: { endDate: in2029, mode: "set" } })
        expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
        expect(Number(yield* lastSequence)).toBeGreaterThan(Math.max(...sequences))
      }),
    )
  }
})

describe("the round of a project comes to its end", () => {
  onStores(
    "by ends, and a bulk extension applies to those who have come since",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* sql(`UPDATE ${schema}.projects SET seq = ${round - 1} WHERE id = 'p1'`)
      yield* store.grant({ ...sequencesChange(), userId: u3, endDate: in2027 })
      yield* store.extendAll({ ...sequencesChange(), bulk: { endDate: in2029, mode: "set" } })
      expect((yield* store.find(p1, u3)).endDate).toBe(in2029)
    }),
  )
})

describe("sequences", () => {
  onStores(
    "are safe integers after ten bulk extensions a second for 250 years",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      const rounds = 10n * 31_556_952n * 250n
      yield* sql(`UPDATE ${schema}.projects SET seq = ${rounds * BigInt(round)} WHERE id = 'p1'`)
      const memberships = [{ userId: u1, endDate: in2027 }]
      for (const step of [
        store.extendAll({ ...sequencesChange(), bulk: { endDate: in2028, mode: "set" } }),
        store.extend({ ...ofU1(), endDate: EndDate(in2028 + 1) }),
        store.import({ ...sequencesChange(), memberships }),
        store.extend({ ...ofU1(), endDate: in2028 }),
        store.extendAll({ ...sequencesChange(), bulk: { endDate: in2029, mode: "neverShorten" } }),
      ]) {
        yield* Effect.asVoid<unknown, unknown, never>(step)
        const sequence = yield* lastSequence
        expect(sequence).toBeGreaterThan(rounds * BigInt(round))
        expect(Number.isSafeInteger(Number(sequence))).toBe(true)
      }
      expect((yield* store.find(p1, u1)).endDate).toBe(in2029)
    }),
  )
})
