/** Old bulk extensions become part of the members' own dates, which nobody can see. */

import { expect } from "@effect/vitest"
import {
  EndDate,
  type EndingCursor,
  type EndingPage,
  MembershipStore,
  Millis,
  type UserId,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { settleBulkExtensions } from "../src/retention.ts"
import { sql } from "./harness.ts"
import { holding, testsOn } from "./locking.ts"

const schema = "settling"
const { change, p1 } = Fixture
const onStores = testsOn(schema)

const dayMillis = 86_400_000
const members = 2500

const settle = sql(settleBulkExtensions(`"${schema}"`))

const settleAll = Effect.gen(function* () {
  let steps = 0
  while ((yield* settle).length > 0) steps++
  return steps
})

const openCount = Effect.map(
  sql<{ readonly open: number }>(
    `SELECT count(*) FILTER (WHERE state <> 'settled')::integer AS open FROM ${schema}.bulk_extensions`,
  ),
  ([row]) => row?.open,
)

/** Members who were given dates between 70 bulk extensions, of which some are undone. */
const furnished = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* sql(`DELETE FROM ${schema}.bulk_extensions`)
  yield* sql(`DELETE FROM ${schema}.memberships`)
  yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, date_trunc('second', now()) + n * interval '1 hour' - interval '20 days', seq
     FROM ${schema}.projects, generate_series(1, ${members}) n WHERE id = 'p1'`,
  )
  const before = EndDate(Date.now() + 1000 * dayMillis)
  // All get places in the list of ends.
  for (let page = 0; page < 3; page++) {
    yield* store.listEnding(p1, { before, after: undefined, limit: 10 })
  }
  for (let count = 0; count < 70; count++) {
    const extension = {
      ...change(p1),
      bulk:
        count % 10 === 3
          ? ({ mode: "neverShorten", endDate: EndDate(Date.now() + 20 * dayMillis) } as const)
          : ({ mode: "extendBy", by: Millis(dayMillis) } as const),
    }
    yield* store.extendAll(extension)
    if (count % 7 === 0) {
      const target = { bulkExtensionId: extension.event.id, madeAfter: -1 }
      yield* store.undoBulkExtension({ ...change(p1), ...target })
    }
    const users = yield* store.list(p1, { after: undefined, limit: 1, only: undefined })
    const endDate = EndDate(Date.now() + count * dayMillis)
    for (const { userId } of users) yield* store.extend({ ...change(p1), userId, endDate })
    yield* sql(
      `UPDATE ${schema}.memberships m SET seq = p.seq + 1, ending_generation = p.bulk_seq, ending_lower_bound = m.end_date
       FROM ${schema}.projects p WHERE p.id = 'p1' AND m.user_id = '${100 + count}'`,
    )
  }
  return store
})

/** What anybody can see of the members: the dates by user, and those in the list by end dates. */
const seen = Effect.gen(function* () {
  const store = yield* MembershipStore
  const listed = yield* store.list(p1, { after: undefined, limit: 10_000, only: undefined })
  const before = EndDate(Date.now() + 10_000 * dayMillis)
  const users: Array<UserId> = []
  let after: EndingCursor | undefined
  do {
    const page: EndingPage = yield* store.listEnding(p1, { before, after, limit: 1000 })
    users.push(...page.memberships.map(({ userId }) => userId))
    after = page.next
  } while (after !== undefined)
  return { dates: listed.map(({ endDate, userId }) => [userId, endDate]), users: users.toSorted() }
})

onStores(
  "settling changes nothing that anybody can see, in steps, also with one member locked",
  Effect.gen(function* () {
    const store = yield* furnished
    const before = yield* seen
    expect(before.dates).toHaveLength(members)
    expect(before.users.length).toBeGreaterThan(members / 2)
    expect(yield* openCount).toBe(70)
    const locked = `SELECT 1 FROM ${schema}.memberships WHERE user_id = '2' FOR UPDATE`
    yield* holding(locked, settleAll)
    expect(yield* openCount).toBe(70)
    expect(yield* seen).toEqual(before)
    // Some members have the oldest ones in their own dates now: those are not joined with others.
    for (let count = 0; count < 40; count++) {
      yield* store.extendAll({ ...change(p1), bulk: { mode: "extendBy", by: Millis(dayMillis) } })
    }
    const later = before.dates.map(([userId, endDate]) => [
      userId,
      Number(endDate) + 40 * dayMillis,
    ])
    expect((yield* seen).dates).toEqual(later)
    const after = yield* seen
    yield* settle
    expect(yield* seen).toEqual(after)
    expect(yield* settleAll).toBeGreaterThan(0)
    expect(yield* openCount).toBeLessThanOrEqual(64)
    expect(yield* seen).toEqual(after)
    const [newest] = yield* store.bulkExtensions(p1, { after: undefined, limit: 1 })
    const all = yield* store.bulkExtensions(p1, { after: undefined, limit: 100 })
    const oldest = all.findLast(({ undone }) => undone === undefined)
    const undoing = (one: typeof newest) =>
      Effect.result(
        store.undoBulkExtension({
          ...change(p1),
          bulkExtensionId: one?.id ?? change(p1).event.id,
          madeAfter: -1,
        }),
      )
    expect(yield* undoing(oldest)).toMatchObject({ failure: { _tag: "BulkExtensionSettled" } })
    expect((yield* undoing(newest))._tag).toBe("Success")
    expect((yield* seen).dates).toHaveLength(members)
  }),
)
