/** Connections through PgBouncer. */

import { PgClient } from "@effect/sql-pg"
import type { PgClientConfig } from "@effect/sql-pg/PgClient"
import { createTenure } from "@tenure/core"
import { startReceiver } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { failOnLockTimeouts, makeConnections } from "../src/connection/pool.ts"
import { postgres } from "../src/index.ts"
import { type Pooler, pgbouncer, startPooler } from "./pgbouncer.ts"

const isMissing = typeof pgbouncer === "string"
const title = `through PgBouncer in %s mode${isMissing ? `, skipped because ${pgbouncer}` : ""}`

const projectId = "p1"
const endDate = "2099-01-01T00:00:00.000Z"
const userIds = Array.from({ length: 40 }, (_, index) => String(index))

let database: PostgresServer
beforeAll(async () => {
  if (isMissing) return
  // Another isolation level than the one that the statements need.
  database = await startPostgres({
    settings: { fsync: "off", default_transaction_isolation: "serializable" },
  })
}, 30_000)
afterAll(() => database?.stop())

/** The number of connections that listen in a schema. */
const listening = (schema: string) =>
  PgClient.PgClient.use(
    (sql) => sql`SELECT 1 FROM pg_stat_activity WHERE query LIKE ${`LISTEN """${schema}%`}`,
  ).pipe(
    Effect.map((rows) => rows.length),
    Effect.provide(PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })),
    Effect.runPromise,
  )

/** The number of dispatchers of a schema whose session tells that they live. */
const withSession = (schema: string) =>
  PgClient.PgClient.use((sql) =>
    sql.unsafe(`SELECT FROM ${schema}.dispatchers WHERE session IS NOT NULL`),
  ).pipe(
    Effect.map((rows) => rows.length),
    Effect.provide(PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })),
    Effect.runPromise,
  )

const modes = [
  // Whether the pooler gives a session to several clients, nobody can tell from outside.
  ["session", () => undefined, 0],
  ["transaction", () => database.url, 1],
] as const

describe.skipIf(isMissing).each(modes)(title, (mode, listenUrl, listeners) => {
  let pooler: Pooler
  beforeAll(async () => {
    if (typeof pgbouncer === "string") return
    pooler = await startPooler(pgbouncer, mode, new URL(database.url))
  })
  afterAll(() => pooler?.stop())

  it("everything works: tables, changes, deliveries, readiness", async () => {
    const receiver = await startReceiver()
    const tenure = await createTenure({
      stores: postgres({ url: pooler.url, schema: mode, listenUrl: listenUrl() }),
      webhooks: { allowedNetworks: ["127.0.0.0/8"] },
    })
    try {
      await tenure.memberships.createProject(projectId)
      await tenure.webhooks.create({ projectId, url: receiver.url })
      const grant = (userId: string) => tenure.memberships.grant({ projectId, userId, endDate })
      await Promise.all(userIds.map(grant))
      const extend = (userId: string) => tenure.memberships.extend({ projectId, userId, endDate })
      await Promise.all([...userIds, ...userIds].map(extend))
      const { total } = await tenure.memberships.extendAll({ projectId, endDate })
      expect(total).toBe(userIds.length)
      await expect.poll(tenure.isReady).toBe(true)
      await receiver.until(1)
      await expect.poll(() => listening(mode)).toBe(listeners)
      await expect.poll(() => withSession(mode)).toBe(listeners)
    } finally {
      await tenure.close()
      receiver.close()
    }
  })

  it("statements have their terms, which they leave to nobody", async () => {
    const config: PgClientConfig = { url: Redacted.make(pooler.url) }
    const connections = makeConnections(config, false)
    const asked = `
        SELECT current_setting('transaction_isolation') AS isolation,
               current_setting('lock_timeout') AS lock_timeout`
    const terms = await Effect.runPromise(
      Effect.flatMap(connections.open(failOnLockTimeouts, 10_000), (connection) =>
        connection.run(asked, []),
      ),
    )
    expect(terms).toEqual([{ isolation: "read committed", lock_timeout: "200ms" }])
    const others = await Effect.runPromise(
      Effect.flatMap(connections.open(failOnLockTimeouts, 10_000), ({ session }) =>
        session.query(asked),
      ),
    )
    expect(others.rows).toEqual([{ isolation: "serializable", lock_timeout: "0" }])
    connections.close()
  })

  it("no statement stays in a session that others get", async () => {
    const connections = makeConnections({ url: Redacted.make(pooler.url) }, false)
    const asked = "SELECT statement FROM pg_prepared_statements"
    const rows = await Effect.runPromise(
      Effect.flatMap(connections.open(failOnLockTimeouts, 10_000), ({ run }) =>
        Effect.andThen(run(asked, []), run(asked, [])),
      ),
    )
    expect(rows).toEqual([])
    connections.close()
  })
})
