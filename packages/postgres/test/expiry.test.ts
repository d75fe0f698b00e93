/** Announcements of ends while others hold locks. */

import { describe, expect } from "@effect/vitest"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import { EndDate, type Event, MembershipStore, Millis } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type LookRow, lookForChecks } from "../src/expiry.ts"
import { dropped, sql } from "./harness.ts"
import { blockedOn, holding, testsOn } from "./locking.ts"

const schema = "announcing"
const { in2028, p1, p2, u1, u2 } = Fixture

const onStores = testsOn(schema, dropped(schema))

const minute = 60_000
const soon = () => EndDate(Date.now() + minute)

const endsOf = (events: ReadonlyArray<Event>) => events.map(({ projectId }) => projectId)

const expiryOf = Effect.map(MembershipStore, ({ expiry }) => expiry)

/** Sweeps until nothing more can be done at once. */
const drain = (limit = 100) =>
  Effect.gen(function* () {
    const expiry = yield* expiryOf
    if (expiry === undefined) return []
    const leads = reminderLeads([Millis(60 * minute)])
    const since = yield* expiry.watch(leads)
    const all: Array<Event> = []
    for (let isMore = true; isMore;) {
      const swept = yield* expiry.sweep(limit, makeDecideAnnouncement({ leads, since }))
      all.push(...swept.events)
      isMore = swept.isMore
    }
    return all
  })

/** Has all dates set long ago: those that were just set have no late reminders. */
const age = Effect.gen(function* () {
  for (const table of ["memberships", "bulk_extensions"])
    yield* sql(`UPDATE ${schema}.${table} SET date_set_at = '2020-01-01'`)
})

/** Has all members of both projects watched, and ends their memberships soon, those of the first earlier. */
const dueEach = Effect.gen(function* () {
  yield* drain()
  const store = yield* MembershipStore
  for (const projectId of [p1, p2])
    for (const userId of [u1, u2])
      yield* store.grant({ ...Fixture.change(projectId), userId, endDate: soon() })
  yield* age
})

/** Has all members of both projects get a date from a bulk extension, which a pass is to see to. */
const dueTogether = Effect.gen(function* () {
  yield* drain()
  const store = yield* MembershipStore
  for (const projectId of [p1, p2])
    yield* store.extendAll({ ...Fixture.change(projectId), bulk: { endDate: soon(), mode: "set" } })
  yield* age
})

const ways = [
  ["dates of their own", dueEach],
  ["dates of bulk extensions", dueTogether],
] as const

describe.each(ways)("a project whose members have %s", (_, due) => {
  onStores(
    "is announced after a transaction that has locked it, and others meanwhile",
    Effect.gen(function* () {
      yield* due
      const meanwhile = yield* holding(
        `SELECT FROM ${schema}.projects WHERE id = 'p1' FOR NO KEY UPDATE`,
        drain(1),
      )
      expect(endsOf(meanwhile)).toEqual([p2, p2])
      expect(endsOf(yield* drain(1))).toEqual([p1, p1])
    }),
  )

  onStores(
    "is announced except for a member whom a transaction has locked, until that ends",
    Effect.gen(function* () {
      yield* due
      const meanwhile = yield* holding(
        `SELECT FROM ${schema}.memberships WHERE user_id = '${u2}' AND project_number =
           (SELECT number FROM ${schema}.projects WHERE id = 'p1') FOR NO KEY UPDATE`,
        // Each turn of a pass ends where the locked member is, so it takes more than one sweep at once.
        Effect.map(Effect.all([drain(10), drain(10), drain(10)]), (all) => all.flat()),
      )
      expect(endsOf(meanwhile).toSorted()).toEqual([p1, p2, p2])
      expect(endsOf(yield* drain(10))).toEqual([p1])
    }),
  )
})

describe("many projects whose members have dates of bulk extensions", () => {
  onStores(
    "hold up no other while they are locked",
    Effect.gen(function* () {
      yield* dueTogether
      yield* sql(
        `INSERT INTO ${schema}.projects (id, next_check_at) SELECT 'x' || n, '2020-01-01' FROM generate_series(1, 150) n`,
      )
      const meanwhile = yield* holding(
        `SELECT FROM ${schema}.projects WHERE id LIKE 'x%' FOR NO KEY UPDATE`,
        drain(),
      )
      expect(endsOf(meanwhile).toSorted()).toEqual([p1, p1, p2, p2])
    }),
  )
})

describe("a project whose members are to be gone through at once", () => {
  onStores(
    "is found without a difference of infinite times, which PostgreSQL 16 refuses",
    Effect.gen(function* () {
      yield* drain()
      const store = yield* MembershipStore
      yield* store.extendAll({
        ...Fixture.change(p1),
        bulk: { mode: "extendBy", by: Millis(minute) },
      })
      const [look] = yield* sql<LookRow>(lookForChecks(`"${schema}"`))
      expect(look).toMatchObject({ has_pass: true })
      expect(Number.isFinite(look?.next_in ?? 0)).toBe(true)
    }),
  )
})

const gate = 4711

/**
 * Has statements wait at the gate where they compute an effective end date: they have their snapshot, and have not
 * locked anything yet.
 */
const gated = Effect.gen(function* () {
  const types = "timestamptz, bigint, bigint, timestamptz"
  yield* sql(
    `ALTER FUNCTION ${schema}.effective_end_date (${types}) RENAME TO effective_end_date_behind_gate`,
  )
  yield* sql(
    `CREATE FUNCTION ${schema}.effective_end_date (${types}) RETURNS timestamptz LANGUAGE plpgsql AS $$
     BEGIN
       PERFORM pg_advisory_xact_lock_shared(${gate});
       RETURN ${schema}.effective_end_date_behind_gate($1, $2, $3, $4);
     END $$`,
  )
})

describe("a sweep that has read memberships before a bulk extension", () => {
  for (const mode of ["neverShorten", "set"] as const) {
    onStores(
      `announces nothing and leaves them extended, if the mode is ${mode}`,
      Effect.gen(function* () {
        yield* dueEach
        yield* gated
        const store = yield* MembershipStore
        const expiry = yield* expiryOf
        if (expiry === undefined) return
        const judge = makeDecideAnnouncement({
          leads: reminderLeads([Millis(60 * minute)]),
          since: 0,
        })
        const sweeping = yield* holding(
          `SELECT pg_advisory_xact_lock(${gate})`,
          Effect.gen(function* () {
            const waiting = yield* Effect.forkDetach(expiry.sweep(100, judge))
            yield* blockedOn(schema)
            for (const projectId of [p1, p2])
              yield* store.extendAll({
                ...Fixture.change(projectId),
                bulk: { endDate: in2028, mode },
              })
            return waiting
          }),
        )
        expect((yield* Fiber.join(sweeping)).events).toEqual([])
        for (const projectId of [p1, p2])
          for (const userId of [u1, u2])
            expect((yield* store.find(projectId, userId)).endDate).toBe(in2028)
        // Whoever was left out is looked at again, and has nothing to announce any more.
        expect(yield* drain()).toEqual([])
      }),
    )
  }
})
