/** Readiness: a database that refuses changes is not ready. */

import { rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { type Tenure, createTenure } from "@tenure/core"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, expect, it } from "vitest"
import { postgres } from "../src/index.ts"

let database: PostgresServer
let tenure: Tenure
beforeAll(async () => {
  database = await startPostgres()
  tenure = await createTenure({ stores: postgres({ url: database.url }) })
})
afterAll(async () => {
  await tenure.close()
  await database.stop()
})

/** Runs a statement on a new connection. */
const execute = (statement: string): Promise<unknown> =>
  PgClient.PgClient.use((sql) => sql.unsafe(statement)).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })),
    Effect.runPromise,
  )

/** Whether reads succeed. They find no project. */
const isRead = (): Promise<boolean> =>
  tenure.webhooks.list({ projectId: "p1" }).then(
    () => false,
    ({ _tag }) => _tag === "ProjectNotFound",
  )

const becomes = (isReady: boolean) => expect.poll(tenure.isReady).toBe(isReady)

it("a database is not ready while its transactions are read-only", async () => {
  await becomes(true)
  await execute("ALTER SYSTEM SET default_transaction_read_only = on")
  await execute("SELECT pg_reload_conf()")
  await becomes(false)
  expect(await isRead()).toBe(true)
  await execute("ALTER SYSTEM RESET default_transaction_read_only")
  await execute("SELECT pg_reload_conf()")
  await becomes(true)
})

it("a database is not ready while its disk is full, once a change has failed for that", async () => {
  await execute(`
    CREATE FUNCTION tenure.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END $$
  `)
  const tables = ["projects", "idempotency_keys"]
  for (const table of tables)
    await execute(
      `CREATE TRIGGER fails BEFORE INSERT ON tenure.${table} EXECUTE FUNCTION tenure.fail()`,
    )
  expect(await tenure.isReady()).toBe(true)
  await expect(tenure.memberships.createProject("p2")).rejects.toMatchObject({
    _tag: "StoreUnavailable",
  })
  expect(await Promise.all(Array.from({ length: 20 }, () => tenure.isReady()))).not.toContain(true)
  expect(await isRead()).toBe(true)
  for (const table of tables) await execute(`DROP TRIGGER fails ON tenure.${table}`)
  await becomes(true)
  await tenure.memberships.createProject("p2")
  await execute("DROP FUNCTION tenure.fail")
})

it("a standby is not ready until it becomes the primary", async () => {
  const signal = join(database.dataDirectory, "standby.signal")
  await database.halt()
  await writeFile(signal, "")
  await database.resume()
  await expect.poll(isRead).toBe(true)
  expect(await tenure.isReady()).toBe(false)
  await database.halt()
  await rm(signal)
  await database.resume()
  await becomes(true)
})
