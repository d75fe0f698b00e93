/** Migrations: which are applied, and which tables are refused. */

import { PgClient } from "@effect/sql-pg"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { migrate, postgresLayer } from "../src/index.ts"
import { runPending } from "../src/ops/upkeep.ts"
import { problemOf } from "../src/schema/migrate.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "migrated"

/** The numbers of all migrations. */
const all = migrations.map((_, index) => index + 1)

const appliedVersions = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql.unsafe<{ version: number }>(
    `SELECT version FROM ${schema}.migrations ORDER BY version`,
  )
  return rows.map((row) => row.version)
})

/** Expects that the stores cannot be built, and returns the error. */
const buildFailure = (options: Parameters<typeof postgresLayer>[0]) =>
  Effect.flip(Effect.provide(Effect.void, Layer.fresh(postgresLayer({ schema, ...options }))))

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

describe("migrations", () => {
  it.live("are applied once if several processes apply them at the same time", () =>
    Effect.gen(function* () {
      const applied = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.provide(migrate({ schema }), clientLayer())),
        { concurrency: "unbounded" },
      )
      expect(applied.flat()).toEqual(all)
      expect(yield* migrate({ schema })).toEqual([])
      expect(yield* appliedVersions).toEqual(all)
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live("run at the start by default, and are checked if `migrate` is false", () =>
    Effect.gen(function* () {
      expect(yield* buildFailure({ migrate: false })).toMatchObject({
        _tag: "SchemaMismatch",
        message: expect.stringContaining("tenure migrate"),
      })
      yield* Effect.provide(Effect.void, postgresLayer({ schema }))
      expect(yield* appliedVersions).toEqual(all)
      yield* Effect.provide(Effect.void, Layer.fresh(postgresLayer({ schema, migrate: false })))
    }).pipe(Effect.provide(clientLayer())),
  )

  const newer = all.length + 1
  const applyNewer = (isBreaking: boolean) =>
    Effect.andThen(
      migrate({ schema }),
      execute(
        `INSERT INTO ${schema}.migrations (version, is_breaking, digest)
         VALUES (${newer}, ${isBreaking}, 'of a later version')`,
      ),
    )

  it.live.each([true, false])("fail if a newer one is breaking (migrate: %s)", (migrates) =>
    Effect.gen(function* () {
      yield* applyNewer(true)
      expect(yield* buildFailure({ migrate: migrates })).toMatchObject({
        _tag: "SchemaMismatch",
        message: expect.stringContaining(`version ${newer}`),
      })
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live.each([true, false])("leave newer ones alone that are not (migrate: %s)", (migrates) =>
    Effect.gen(function* () {
      yield* applyNewer(false)
      yield* Effect.provide(Effect.void, Layer.fresh(postgresLayer({ schema, migrate: migrates })))
      expect(yield* appliedVersions).toEqual([...all, newer])
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live("are all undone if one fails", () =>
    Effect.gen(function* () {
      // This sequence makes the first migration fail half-way.
      yield* execute(`CREATE SCHEMA ${schema}`, `CREATE SEQUENCE ${schema}.leases`)
      yield* Effect.flip(migrate({ schema }))
      const sql = yield* PgClient.PgClient
      const found = yield* sql.unsafe(
        "SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace",
        [schema],
      )
      expect(found).toEqual([{ relname: "leases" }])
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live.each([
    [
      "were made before there were digests",
      `ALTER TABLE ${schema}.migrations DROP COLUMN digest`,
      "tenure projects export",
    ],
    [
      "lack a table and a function",
      `DROP TABLE ${schema}.erasures; DROP FUNCTION ${schema}.extend_once`,
      "lacks erasures, extend_once",
    ],
    ["lack a record of migrations", `DELETE FROM ${schema}.migrations`, "but no record"],
  ] as const)("refuse tables that %s", ([_, change, message]) =>
    Effect.gen(function* () {
      yield* migrate({ schema })
      yield* execute(...change.split("; "))
      const refusal = { _tag: "SchemaMismatch", message: expect.stringContaining(message) }
      expect(yield* Effect.flip(migrate({ schema }))).toMatchObject(refusal)
      expect(yield* Effect.flip(runPending(schema))).toMatchObject(refusal)
      expect(yield* buildFailure({ migrate: false })).toMatchObject(refusal)
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live.each(["", "1st", "a b", 'a"b', "a".repeat(49)])(
    "fail with InvalidInput for the schema %j",
    (name) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(migrate({ schema: name }))
        expect(error).toMatchObject({ _tag: "InvalidInput", field: "schema" })
      }).pipe(Effect.provide(clientLayer())),
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

describe("the tables", () => {
  it.live.each([
    [
      "an action",
      "INSERT INTO audit (project_number, seq, action, at) VALUES (1, 0, 'forgotten', now())",
    ],
    [
      "a state",
      `INSERT INTO deliveries (event_id, webhook_id, next_attempt_at, state)
       VALUES (gen_random_uuid(), gen_random_uuid(), now(), 'lost')`,
    ],
  ] as const)("refuse %s that does not exist", ([_name, statement]) =>
    Effect.gen(function* () {
      yield* migrate({ schema })
      const sql = yield* PgClient.PgClient
      const insert = Effect.andThen(
        sql.unsafe(`SET LOCAL search_path TO ${schema}`),
        sql.unsafe(statement),
      )
      const error = yield* Effect.flip(sql.withTransaction(insert))
      expect(error.reason).toMatchObject({ cause: { code: "23514" } })
    }).pipe(Effect.provide(clientLayer())),
  )
})

it.live("dates have whole milliseconds in the tables, whoever writes them", () =>
  Effect.gen(function* () {
    yield* migrate({ schema })
    const sql = yield* PgClient.PgClient
    const rows = yield* sql.unsafe(
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
       VALUES (1, '1001', '9999-12-31T23:59:59.998992Z', 1)
       RETURNING (extract(epoch FROM end_date) * 1000000)::text AS end_date`,
    )
    expect(rows).toEqual([{ end_date: "253402300799999000.000000" }])
  }).pipe(Effect.provide(clientLayer())),
)
