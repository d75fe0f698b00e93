import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { beforeEach, describe, expect, it } from "@effect/vitest"
import { layer, migrate } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { inject } from "vitest"
import { clientLayer, execute } from "./harness.ts"

const schema = "migrated"
const run = promisify(execFile)

const version = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql.unsafe<{ version: number }>(
    `SELECT version FROM ${schema}.migrations ORDER BY version`,
  )
  return rows.map((row) => row.version)
})

/** Builds the stores and lets them go; gives the error where they cannot be built. */
const building = (options: Parameters<typeof layer>[0]) =>
  Effect.flip(Effect.provide(Effect.void, Layer.fresh(layer({ schema, ...options }))))

beforeEach(() => Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)))

describe("migrations", () => {
  it.live("are applied once, however many processes do so at the same time", () =>
    Effect.gen(function* () {
      const applied = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.provide(migrate({ schema }), clientLayer())),
        { concurrency: "unbounded" },
      )
      expect(applied.flat()).toEqual([1])
      expect(yield* migrate({ schema })).toEqual([])
      expect(yield* version).toEqual([1])
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live("run at the start, if they are not told otherwise", () =>
    Effect.gen(function* () {
      expect(yield* building({ migrate: false })).toMatchObject({
        _tag: "SchemaMismatch",
        message: expect.stringContaining("tenure-migrate"),
      })
      yield* Effect.provide(Effect.void, layer({ schema }))
      expect(yield* version).toEqual([1])
      yield* Effect.provide(Effect.void, Layer.fresh(layer({ schema, migrate: false })))
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live.each([true, false])("refuse tables of a newer version (migrate: %s)", (migrates) =>
    Effect.gen(function* () {
      yield* migrate({ schema })
      yield* execute(`INSERT INTO ${schema}.migrations (version) VALUES (99)`)
      expect(yield* building({ migrate: migrates })).toMatchObject({
        _tag: "SchemaMismatch",
        message: expect.stringContaining("version 99"),
      })
    }).pipe(Effect.provide(clientLayer())),
  )

  it.live("are applied whole or not at all", () =>
    Effect.gen(function* () {
      // Stands in the way of the first migration, in the middle of it.
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

  it.live.each(["", "1st", "a b", 'a"b', "a".repeat(49)])("know no schema %j", (name) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(migrate({ schema: name }))
      expect(error).toMatchObject({ _tag: "InvalidInput", field: "schema" })
    }).pipe(Effect.provide(clientLayer())),
  )
})

describe("tenure-migrate", () => {
  const path = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
  const command = (environment: Readonly<Record<string, string>>) =>
    run(process.execPath, ["-C", "@tenure/source", path, schema], { env: environment })

  it("applies what is missing, and says so", async () => {
    const environment = { DATABASE_URL: inject("databaseUrl") }
    expect((await command(environment)).stdout).toBe("Applied: 1.\n")
    expect((await command(environment)).stdout).toBe("Nothing to do.\n")
  })

  it("says what is wrong, without the password, and ends with code 1", async () => {
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
