/** Migrations: which are applied, and which tables are refused. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { beforeEach } from "vitest"
import { migrate, postgresLayer } from "../src/index.ts"
import { runPending } from "../src/ops/upkeep.ts"
import { problemOf } from "../src/schema/migrate.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { type Steps, clientLayer, dropped, shared, sql, valuesOf } from "./harness.ts"

const schema = "migrated"

const all = migrations.map((_, index) => index + 1)

const applied = valuesOf<number>(`SELECT version FROM ${schema}.migrations ORDER BY version`)

/** Builds the stores. */
const build = (isMigrating: boolean) =>
  Effect.provide(Effect.void, Layer.fresh(postgresLayer({ schema, migrate: isMigrating })))

const failureOf = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<unknown, unknown, R> =>
  Effect.flip(work)

const mismatch = (problem: string) => ({
  _tag: "SchemaMismatch",
  message: expect.stringContaining(problem),
})

const client = shared(clientLayer())
const test = (name: string, steps: Steps<Layer.Success<typeof client>>) =>
  it.live(name, () => Effect.provide(Effect.gen(steps), client))

describe("migrations", () => {
  beforeEach(() => Effect.runPromise(dropped(schema)))

  test("are applied once if several processes apply them at the same time", function* () {
    const process = Effect.provide(migrate({ schema }), clientLayer())
    const each = yield* Effect.replicateEffect(process, 8, { concurrency: "unbounded" })
    expect(each.flat()).toEqual(all)
    expect(yield* migrate({ schema })).toEqual([])
    expect(yield* applied).toEqual(all)
  })

  test("run at the start by default, and are checked if `migrate` is false", function* () {
    expect(yield* Effect.flip(build(false))).toMatchObject(mismatch("tenure migrate"))
    yield* Effect.provide(Effect.void, Layer.fresh(postgresLayer({ schema })))
    expect(yield* applied).toEqual(all)
    yield* build(false)
  })

  test("leave newer ones alone, unless these are breaking", function* () {
    yield* migrate({ schema })
    const newer = all.length + 1
    yield* sql(
      `INSERT INTO ${schema}.migrations (version, is_breaking, digest)
       VALUES (${newer}, false, 'of a later version')`,
    )
    for (const isMigrating of [true, false]) yield* build(isMigrating)
    expect(yield* applied).toEqual([...all, newer])
    yield* sql(`UPDATE ${schema}.migrations SET is_breaking = true WHERE version = ${newer}`)
    for (const isMigrating of [true, false])
      expect(yield* Effect.flip(build(isMigrating))).toMatchObject(mismatch(`version ${newer}`))
  })

  test("are all undone if one fails", function* () {
    // This sequence makes the first migration fail half-way.
    yield* sql(`CREATE SCHEMA ${schema}`)
    yield* sql(`CREATE SEQUENCE ${schema}.leases`)
    yield* Effect.flip(migrate({ schema }))
    const found = sql(`SELECT relname FROM pg_class WHERE relnamespace = '${schema}'::regnamespace`)
    expect(yield* found).toEqual([{ relname: "leases" }])
  })

  test("refuse tables that are incomplete, were made before there were digests, or lack a record", function* () {
    yield* migrate({ schema })
    for (const [change, problem] of [
      [`DROP TABLE ${schema}.erasures`, "lacks erasures"],
      [`DROP FUNCTION ${schema}.extend_once`, "lacks erasures, extend_once"],
      [`ALTER TABLE ${schema}.migrations RENAME digest TO hidden`, "tenure projects export"],
      [`ALTER TABLE ${schema}.migrations RENAME hidden TO digest`, "lacks erasures"],
      [`DELETE FROM ${schema}.migrations`, "but no record"],
    ] as const) {
      yield* sql(change)
      for (const failure of [
        failureOf(migrate({ schema })),
        failureOf(runPending(schema)),
        failureOf(build(false)),
      ])
        expect(yield* failure).toMatchObject(mismatch(problem))
    }
  })

  it.live.each(["", "1st", "a b", 'a"b', "a".repeat(49)])(
    "fail with InvalidInput for the schema %j",
    (name) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(migrate({ schema: name }))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "schema" })
      }).pipe(Effect.provide(client)),
  )
})

describe("the migrations of tables", () => {
  const row = (version: number, digest: string | null, isBreaking = false) => ({
    version: String(version),
    digest,
    is_breaking: isBreaking,
  })

  it.each([
    ["none", []],
    ["the first", [row(1, "a", true)]],
    ["all", [row(1, "a", true), row(2, "b")]],
    ["a later one that changes nothing for this version", [row(1, "a"), row(2, "b"), row(3, "c")]],
  ])("may be %s", (_, rows) => {
    expect(problemOf("tenure", rows, ["a", "b"])).toBeUndefined()
  })

  it.each([
    ["another with the same number", [row(1, "a"), row(2, "c")], "its migration 2 was not"],
    ["one without a digest", [row(1, null)], "its migration 1 was not"],
    ["one without the one before", [row(2, "b")], "its migration 1 was not"],
    ["a later one without the one before", [row(1, "a"), row(3, "c")], "its migration 2 was not"],
    ["one of another program", [{ ...row(1, null), version: null }], "its migration 1 was not"],
    ["a later one that breaks this version", [row(1, "a"), row(3, "c", true)], "at version 3"],
  ])("may not be %s", (_, rows, problem) => {
    expect(problemOf("tenure", rows, ["a", "b"])).toContain(problem)
  })
})

test("tables refuse an action or a state that does not exist, and have dates of whole milliseconds, whoever writes them", function* () {
  yield* migrate({ schema })
  for (const insert of [
    `audit (project_number, seq, action, at) VALUES (1, 0, 'forgotten', now())`,
    `deliveries (event_id, webhook_id, next_attempt_at, state)
     VALUES (gen_random_uuid(), gen_random_uuid(), now(), 'lost')`,
  ]) {
    const error = yield* Effect.flip(sql(`INSERT INTO ${schema}.${insert}`))
    expect(error.reason).toMatchObject({ cause: { code: "23514" } })
  }
  const rows = yield* sql(
    `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
     VALUES (1, '1001', '9999-12-31T23:59:59.998992Z', 1)
     RETURNING (extract(epoch FROM end_date) * 1000000)::text AS end_date`,
  )
  expect(rows).toEqual([{ end_date: "253402300799999000.000000" }])
})
