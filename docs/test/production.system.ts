/** The SQL and the backup on the operators' pages, on real tables. */

import { execFile } from "node:child_process"
import { globSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import { nodeTransport } from "@tenure/node-http"
import { migrate, postgres } from "@tenure/postgres"
import { startReceiver } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { blocksIn, read } from "./examples.ts"
import { freshDatabase } from "./programs.ts"

const projectId = "p1"
const userId = "1001"
const endDate = "2099-01-01T00:00:00.000Z"

/** The code in a page's section, in a language. */
const codeOf = (page: string, heading: string, language: "sql" | "sh"): ReadonlyArray<string> => {
  const [, rest = ""] = read(`docs/${page}`).split(`\n## ${heading}\n`)
  return blocksIn(rest.split("\n## ")[0] ?? "", language)
}

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", wal_level: "logical" } })
})
afterAll(() => server.stop())

const on = <A, E>(url: string, work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
  work.pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )

const query = (url: string, statement: string): Promise<ReadonlyArray<object>> =>
  on(
    url,
    PgClient.PgClient.use((sql) => sql.unsafe<object>(statement)),
  )

/** Starts Tenure on a database. */
const start = (url: string) =>
  createTenure({
    stores: postgres({ url }),
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  })

type Started = Awaited<ReturnType<typeof start>>

/** Makes a project, a membership, a webhook and a key. */
const fill = async ({ apiKeys, memberships, webhooks }: Started) => {
  await memberships.createProject(projectId)
  await memberships.grant({ projectId, userId, endDate })
  await webhooks.create({ projectId, url: "https://receiver.invalid/" })
  await apiKeys.issue({ projects: [projectId], expiresAt: endDate })
}

/** The newest PostgreSQL that Debian has installed, with all programs. */
const installation = globSync("/usr/lib/postgresql/*/bin/{pg_dump,initdb}")
  .map((program) => dirname(dirname(program)))
  .toSorted((a, b) => Number(basename(b)) - Number(basename(a)))
  .find((folder, index, all) => all[index + 1] === folder)

describe("a backup", () => {
  it.skipIf(installation === undefined)("is restored with what was to be delivered", async () => {
    const installed = await startPostgres({ settings: { fsync: "off" }, installation })
    onTestFinished(installed.stop)
    const DATABASE_URL = await freshDatabase(installed.url, "saved")
    const NEW_DATABASE_URL = await freshDatabase(installed.url, "restored")
    let isHealthy = false
    const receiver = await startReceiver((response) =>
      response.writeHead(isHealthy ? 204 : 500).end(),
    )
    onTestFinished(receiver.close)

    const before = await start(DATABASE_URL)
    await fill(before)
    await before.webhooks.create({ projectId, url: receiver.url })
    await before.memberships.extend({ projectId, userId, endDate })
    const history = await before.memberships.history({ projectId, userId })
    await receiver.until(1)
    await before.close()

    const cwd = await mkdtemp(join(tmpdir(), "tenure-"))
    onTestFinished(() => rm(cwd, { recursive: true }))
    const [script = ""] = codeOf("deploy.md", "Backup and restore", "sh")
    const env = {
      PATH: `${installation}/bin:${process.env["PATH"]}`,
      DATABASE_URL,
      NEW_DATABASE_URL,
    }
    await promisify(execFile)("sh", ["-ec", script], { cwd, env })

    isHealthy = true
    const after = await start(NEW_DATABASE_URL)
    onTestFinished(after.close)
    expect(await after.memberships.history({ projectId, userId })).toEqual(history)
    const ids = () => receiver.received.map(({ headers }) => headers["webhook-id"])
    await expect.poll(() => ids().slice(1)).toContain(ids()[0])
    await after.memberships.extend({ projectId, userId, endDate: "2099-02-01T00:00:00.000Z" })
    await after.apiKeys.issue({ projects: [projectId] })
  })
})

describe("an alert", () => {
  // What makes the query return rows, in the page's order.
  const causes = [
    `INSERT INTO tenure.deliveries (event_id, webhook_id, state, next_attempt_at)
     SELECT gen_random_uuid(), id, 'later', now() - interval '2 minutes' FROM tenure.webhooks`,
    "DELETE FROM tenure.dispatchers",
    "UPDATE tenure.webhooks SET failing_since = now() - interval '2 hours'",
    `INSERT INTO tenure.deliveries (event_id, webhook_id, state, next_attempt_at)
     SELECT gen_random_uuid(), id, 'failed', now() FROM tenure.webhooks`,
    "INSERT INTO tenure.rate_limit_buckets SELECT 'key:k', 1e6 * (extract(epoch FROM now()) + 3600)",
    "UPDATE tenure.api_keys SET expires_at = now() + interval '1 day'",
    `DO $$ BEGIN
       EXECUTE 'DROP TABLE tenure.events' || to_char((now() AT TIME ZONE 'UTC')::date + 1, '_YYYYMMDD');
     END $$`,
  ]

  it("is silent while all is well, and returns rows when something is wrong", async () => {
    const url = await freshDatabase(server.url, "alerting")
    const tenure = await start(url)
    const [grants = "", ...alerts] = codeOf("internals/postgres.md", "Alerts in SQL", "sql")
    for (const statement of grants.split(";\n")) await query(url, statement)
    const monitor = new URL(url)
    monitor.username = "tenure_monitor"
    monitor.password = "change me"
    const rowsOf = (alert: string) => query(monitor.href, alert)

    await fill(tenure)
    await expect.poll(() => query(url, "SELECT FROM tenure.dispatchers")).toHaveLength(1)
    for (const alert of alerts) expect(await rowsOf(alert), alert).toEqual([])
    await tenure.close()

    const ofTransactions = alerts.length - 1
    for (const [index, alert] of alerts.slice(0, ofTransactions).entries()) {
      await query(url, causes[index] ?? "")
      expect(await rowsOf(alert), alert).toHaveLength(1)
    }
    // Every transaction counts as one that has been open for long, its own too.
    const impatient = alerts[ofTransactions]?.replace("'1 minute'", "'-1 minute'")
    expect(await rowsOf(impatient ?? "")).toHaveLength(1)
  })
})

describe("a move by logical replication", () => {
  it("keeps everything, and goes on where the old server has stopped", async () => {
    const old = await freshDatabase(server.url, "old")
    const moved = await freshDatabase(server.url, "moved")
    const [publish = "", subscribe = "", readSequences = ""] = codeOf(
      "internals/postgres.md",
      "Moving to another server by logical replication",
      "sql",
    )
    const before = await start(old)
    await fill(before)
    // Without pg_dump: a new database's tables, and no row.
    await on(moved, migrate())
    for (const filled of ["migrations", "feed_state"]) {
      await query(moved, `DELETE FROM tenure.${filled}`)
    }

    await query(old, publish)
    // Within one server, the slot has to be there before.
    await query(old, "SELECT FROM pg_create_logical_replication_slot('tenure', 'pgoutput')")
    const { port } = new URL(server.url)
    const source = `host=127.0.0.1 port=${port} user=tenure password=tenure dbname=old`
    const connected = subscribe.replace(/'.*'/, `'${source}'`)
    await query(moved, `${connected} WITH (create_slot = false)`)
    const behind = "SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'"
    await expect.poll(() => query(moved, behind)).toEqual([])
    // Changes that are not copied at the beginning, but replicated.
    await before.memberships.extend({ projectId, userId, endDate: "2099-02-01T00:00:00.000Z" })
    await before.apiKeys.issue({ projects: [projectId] })
    const history = await before.memberships.history({ projectId, userId })
    await before.close()

    const sizes =
      "SELECT (SELECT count(*) FROM tenure.audit) + (SELECT count(*) FROM tenure.api_keys) AS n"
    const size = await query(old, sizes)
    await expect.poll(() => query(moved, sizes)).toEqual(size)
    for (const statement of [
      "ALTER SUBSCRIPTION tenure DISABLE",
      "ALTER SUBSCRIPTION tenure SET (slot_name = NONE)",
      "DROP SUBSCRIPTION tenure",
    ]) {
      await query(moved, statement)
    }
    await expect
      .poll(() =>
        query(old, "SELECT FROM pg_drop_replication_slot('tenure')").then(() => true, String),
      )
      .toBe(true)
    for (const row of await query(old, readSequences)) await query(moved, Object(row).format)

    const after = await start(moved)
    expect(await after.memberships.history({ projectId, userId })).toEqual(history)
    await after.memberships.extend({ projectId, userId, endDate: "2099-03-01T00:00:00.000Z" })
    await after.webhooks.create({ projectId, url: "https://receiver.invalid/2" })
    await after.apiKeys.issue({ projects: [projectId] })
    const [newest] = await after.memberships.history({ projectId, userId })
    expect(newest).toMatchObject({ to: Date.parse("2099-03-01T00:00:00.000Z") })
    await after.close()
  })
})
