import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inject } from "vitest"
import { migrate, postgresLayer } from "../src/index.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { clientLayer, execute } from "./harness.ts"

const schema = "migrated"
const run = promisify(execFile)

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
        `INSERT INTO ${schema}.migrations (version, is_breaking) VALUES (${newer}, ${isBreaking})`,
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
      // This table makes the first migration fail half-way.
      yield* execute(`CREATE SCHEMA ${schema}`, `CREATE TABLE ${schema}.webhooks (id integer)`)
      yield* Effect.flip(migrate({ schema }))
      const sql = yield* PgClient.PgClient
      const tables = yield* sql.unsafe(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = $1",
        [schema],
      )
      expect(tables).toEqual([{ table_name: "webhooks" }])
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

describe("tenure-migrate", () => {
  const path = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
  const command = (environment: Readonly<Record<string, string>>) =>
    run(process.execPath, ["-C", "@tenure/source", path, schema], { env: environment })

  it("applies pending migrations, and prints their numbers", async () => {
    const environment = { DATABASE_URL: inject("databaseUrl") }
    expect((await command(environment)).stdout).toBe(`Applied: ${all.join(", ")}.\n`)
    expect((await command(environment)).stdout).toBe("Nothing to do.\n")
  })

  it("prints what is wrong, without the password, and exits with code 1", async () => {
    await expect(command({})).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("DATABASE_URL"),
    })
    const failed = command({ DATABASE_URL: "postgres://someone:hidden@127.0.0.1:1/nothing" })
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.not.stringContaining("hidden"),
    })
  })
})
