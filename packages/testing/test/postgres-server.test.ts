/** A PostgreSQL server starts, is used, and is gone when it is stopped. */

import { existsSync } from "node:fs"
import { dirname } from "node:path"
import { PgClient } from "@effect/sql-pg"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, it } from "vitest"
import { accepts } from "../src/support/http.ts"
import { startPostgres } from "../src/support/postgres-server.ts"

it("starts a server, which answers until it is stopped", async () => {
  const server = await startPostgres({ settings: { fsync: "off" } })
  const folder = dirname(server.dataDirectory)
  expect(existsSync(folder)).toBe(true)
  const rows = await Effect.runPromise(
    PgClient.PgClient.use((sql) => sql`SELECT current_setting('fsync') AS fsync`).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(server.url) })),
      Effect.ensuring(Effect.promise(() => server.stop())),
    ),
  )
  expect(rows).toEqual([{ fsync: "off" }])
  expect(existsSync(folder)).toBe(false)
  expect(await accepts(Number(new URL(server.url).port))).toBe(false)
})
