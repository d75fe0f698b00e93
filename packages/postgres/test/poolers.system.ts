/** Connections through PgBouncer. */

import { createTenure } from "@tenure/core"
import { startReceiver } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { failOnLockTimeouts } from "../src/connection/connection.ts"
import { makeConnections } from "../src/connection/connections.ts"
import { postgres } from "../src/index.ts"
import { type Pooler, pgbouncer, queryAt, startPooler } from "./servers.ts"

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
      for (const having of [
        `pg_stat_activity WHERE query LIKE 'LISTEN """${mode}%'`,
        `${mode}.dispatchers WHERE session IS NOT NULL`,
      ])
        await expect
          .poll(() => queryAt(database.url, `SELECT FROM ${having}`))
          .toHaveLength(listeners)
    } finally {
      await tenure.close()
      receiver.close()
    }
  })

  it("statements have their terms, which they leave to nobody, and do not stay in a session that others get", async () => {
    const connections = makeConnections({ url: Redacted.make(pooler.url) }, false)
    const terms = `
      SELECT current_setting('transaction_isolation') AS isolation,
             current_setting('lock_timeout') AS lock_timeout`
    const prepared = "SELECT statement FROM pg_prepared_statements"
    const found = await Effect.runPromise(
      Effect.gen(function* () {
        const { run } = yield* connections.open(failOnLockTimeouts, 10_000)
        const { session } = yield* connections.open(failOnLockTimeouts, 10_000)
        return {
          own: yield* run(terms, []),
          others: (yield* session.query(terms)).rows,
          prepared: yield* Effect.andThen(run(prepared, []), run(prepared, [])),
        }
      }),
    )
    expect(found).toEqual({
      own: [{ isolation: "read committed", lock_timeout: "200ms" }],
      others: [{ isolation: "serializable", lock_timeout: "0" }],
      prepared: [],
    })
    connections.close()
  })
})
