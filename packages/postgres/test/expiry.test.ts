/** Announcements while others hold locks. */

import { describe, expect } from "@effect/vitest"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import { EndDate, type Event, MembershipStore, Millis } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type ChecksDueRow, findChecksDue } from "../src/expiry-passes.ts"
import { during, duringSteps, sql, testsOn, waitingOn } from "./harness.ts"

const schema = "expiry"
const { change, in2028, p1, p2, u1, u2 } = Fixture
const test = testsOn(schema)

const minute = 60_000
const leads = reminderLeads([Millis(60 * minute)])
const soon = () => EndDate(Date.now() + minute)
const members = [p1, p2].flatMap((projectId) => [u1, u2].map((userId) => ({ projectId, userId })))

const expiryOf = Effect.map(MembershipStore, ({ expiry }) => expiry ?? expect.fail())

/** Sweeps until nothing more can be done at once. Returns the projects whose ends were announced. */
const drain = (limit = 100) =>
  Effect.gen(function* () {
    const expiry = yield* expiryOf
    const since = yield* expiry.watch(leads)
    const all: Array<Event> = []
    for (let isMore = true; isMore;) {
      const swept = yield* expiry.sweep(limit, makeDecideAnnouncement({ leads, since }))
      all.push(...swept.events)
      isMore = swept.isMore
    }
    return all.map(({ projectId }) => projectId)
  })

/** Has all dates set long ago: those that were just set have no late reminders. */
const age = Effect.forEach(["memberships", "bulk_extensions"], (table) =>
  sql(`UPDATE ${schema}.${table} SET date_set_at = '2020-01-01'`),
)

/** Has all members in both projects watched, and ends their memberships soon, the first project's earlier. */
const dueEach = Effect.gen(function* () {
  yield* drain()
  const store = yield* MembershipStore
  for (const { projectId, userId } of members)
    yield* store.grant({ ...change(projectId), userId, endDate: soon() })
  yield* age
})

/** Gives all members in both projects a date by a bulk extension, which a pass is to see to. */
const dueTogether = Effect.gen(function* () {
  yield* drain()
  const store = yield* MembershipStore
  for (const projectId of [p1, p2])
    yield* store.extendAll({ ...change(projectId), bulk: { endDate: soon(), mode: "set" } })
  yield* age
})

const lock = (rows: string) => sql(`SELECT FROM ${schema}.${rows} FOR NO KEY UPDATE`)

describe.each([
  ["dates of their own", dueEach],
  ["dates of bulk extensions", dueTogether],
])("a project whose members have %s", (_, due) => {
  test("is announced after a transaction that has locked it", function* () {
    yield* due
    expect(yield* during(lock("projects WHERE id = 'p1'"), drain(1))).toEqual([p2, p2])
    expect(yield* drain(1)).toEqual([p1, p1])
  })

  test("is announced except for a member who is locked, until that ends", function* () {
    yield* due
    const meanwhile = yield* during(
      lock(`memberships WHERE user_id = '${u2}' AND project_number =
              (SELECT number FROM ${schema}.projects WHERE id = 'p1')`),
      // Each turn ends where the locked member is, so a pass takes more than one sweep at once.
      Effect.replicateEffect(drain(10), 3),
    )
    expect(meanwhile.flat().toSorted()).toEqual([p1, p2, p2])
    expect(yield* drain(10)).toEqual([p1])
  })
})

test("many locked projects with bulk extensions hold up no other", function* () {
  yield* dueTogether
  yield* sql(
    `INSERT INTO ${schema}.projects (id, next_check_at) SELECT 'x' || n, '2020-01-01' FROM generate_series(1, 150) n`,
  )
  const meanwhile = yield* during(lock("projects WHERE id LIKE 'x%'"), drain())
  expect(meanwhile.toSorted()).toEqual([p1, p1, p2, p2])
})

test("a pass that is due at once has a finite time to wait", function* () {
  yield* drain()
  const bulk = { mode: "extendBy", by: Millis(minute) } as const
  yield* (yield* MembershipStore).extendAll({ ...change(p1), bulk })
  const [look] = yield* sql<ChecksDueRow>(findChecksDue(`"${schema}"`))
  expect(look).toMatchObject({ has_pass: true })
  expect(Number.isFinite(look?.next_in ?? 0)).toBe(true)
})

const gate = 4711
const effectiveEndDate = `${schema}.effective_end_date`
const types = "timestamptz, bigint, bigint, timestamptz"

/**
 * Has statements wait at the gate where they compute an effective end date: they have their snapshot, and have not
 * locked anything yet.
 */
const gated = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.all([
      sql(`ALTER FUNCTION ${effectiveEndDate} (${types}) RENAME TO effective_end_date_behind_gate`),
      sql(`
        CREATE FUNCTION ${effectiveEndDate} (${types}) RETURNS timestamptz LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock_shared(${gate});
          RETURN ${effectiveEndDate}_behind_gate($1, $2, $3, $4);
        END $$`),
    ]),
    () => work,
    () =>
      Effect.all([
        sql(`DROP FUNCTION ${effectiveEndDate} (${types})`),
        sql(`ALTER FUNCTION ${effectiveEndDate}_behind_gate RENAME TO effective_end_date`),
      ]),
  )

describe("a sweep that has read memberships before a bulk extension", () => {
  for (const mode of ["neverShorten", "set"] as const)
    test(`announces nothing and leaves them extended, if the mode is ${mode}`, function* () {
      yield* dueEach
      const store = yield* MembershipStore
      const expiry = yield* expiryOf
      const decide = makeDecideAnnouncement({ leads, since: 0 })
      const swept = yield* gated(
        Effect.flatMap(
          duringSteps(sql(`SELECT pg_advisory_xact_lock(${gate})`), function* () {
            const waiting = yield* Effect.forkDetach(expiry.sweep(100, decide))
            yield* waitingOn(schema)
            const bulk = { endDate: in2028, mode }
            for (const projectId of [p1, p2]) yield* store.extendAll({ ...change(projectId), bulk })
            return waiting
          }),
          Fiber.join,
        ),
      )
      expect(swept.events).toEqual([])
      for (const { projectId, userId } of members)
        expect((yield* store.find(projectId, userId)).endDate).toBe(in2028)
      // Whoever was left out is looked at again, and has nothing to announce any more.
      expect(yield* drain()).toEqual([])
    })
})
