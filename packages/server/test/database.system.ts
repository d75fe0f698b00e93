/** The server on PostgreSQL: outages, migrations, other processes on the same database. */

import { postgres } from "@tenure/postgres"
import { type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterEach, describe, expect, it, onTestFinished } from "vitest"
import { type Server, endAll, start, startServer } from "./programs.ts"
import {
  type Environment,
  call,
  extend,
  inTransaction,
  project,
  queryOn,
  startDatabase,
  writeJson,
} from "./world.ts"

const { database, environment, folder, query } = await startDatabase(20, {
  WEBHOOK_RETRY_SCHEDULE: "1,1,1,1",
  RATE_LIMIT_BURST: "1000",
})

afterEach(endAll)

const webhooks = `${project}/integrations/webhooks`

const extendOne = (server: Server, userId: string) =>
  call(server, "PATCH", `${project}/memberships/${userId}/extend`, { extend })

const eventsOf = (receiver: Receiver, from = 0): Set<string | undefined> =>
  new Set(receiver.received.slice(from).map(({ headers }) => headers["webhook-id"]))

/** Ends the leases of killed processes now, rather than after their time. */
const expireClaims = () => query("UPDATE tenure.leases SET until = clock_timestamp()")

/** Returns the matching log line for a request. */
const lineOf = async (server: Server, requestId: string, pattern: string): Promise<unknown> => {
  const [line] = await server.line(new RegExp(`^(?=.*${requestId})(?=.*${pattern}).*$`))
  return JSON.parse(line)
}

describe("a server with TENURE_ENCRYPTION_KEY", () => {
  it("shows the secrets of webhooks, and names those of another key", async () => {
    const key = (byte: number) => Buffer.alloc(32, byte).toString("base64")
    const list = async (TENURE_ENCRYPTION_KEY: string, allow: Environment = {}) => {
      const server = await startServer({ ...environment, ...allow, TENURE_ENCRYPTION_KEY })
      return { server, listed: await call(server, "GET", webhooks) }
    }
    const { server } = await list(key(1))
    const created = await call(server, "POST", webhooks, { url: "https://receiver.example/a" })
    const { id, secret, url } = Object(created.body).data
    const rotated = await list(`${key(2)},${key(1)}`)
    expect(rotated.listed).toMatchObject({ status: 200, body: { data: [{ id, secret, url }] } })
    expect(await start("node-server", { PORT: "0", ...environment }).ended).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^TENURE_ENCRYPTION_KEY must have the key "\w+", .* set ENCRYPTION_MISSING=allow\n$/,
      ),
    })
    const { listed } = await list(key(2), { ENCRYPTION_MISSING: "allow" })
    expect(listed).toMatchObject({
      status: 200,
      body: {
        data: [{ id, url, secret: expect.stringMatching(/^unreadable_/) }],
        message: expect.stringContaining(id),
      },
    })
    expect(await call(server, "DELETE", `${webhooks}/${id}`)).toMatchObject({ status: 200 })
  })
})

it("a seed file for a database is applied as a whole or not at all", async () => {
  const settings = async (token: string) => ({
    PORT: "0",
    DATABASE_URL: database.url,
    DATABASE_SCHEMA: "seeded",
    SEED_FILE: await writeJson(folder, {
      projects: [
        {
          id: "p1",
          time_zone: "Europe/Berlin",
          memberships: [{ user_id: "1001", end_date: extend }],
          api_keys: ["of the project"],
        },
      ],
      api_keys: [{ token, role: "admin" }],
    }),
  })
  const stored = () =>
    query(`
      SELECT id || ' in ' || time_zone AS id FROM seeded.projects UNION ALL
      SELECT user_id FROM seeded.memberships UNION ALL
      SELECT role FROM (SELECT role FROM seeded.api_keys ORDER BY role DESC) keys
    `)
  const refused = await start("node-server", await settings("of the project")).ended
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^SEED_FILE: api_keys: 0/),
  })
  expect(await stored()).toEqual([])
  for (let count = 0; count < 2; count++) {
    await startServer(await settings("other"))
    const ids = ["p1 in Europe/Berlin", "1001", "client", "admin"]
    expect(await stored()).toEqual(ids.map((id) => ({ id })))
  }
})

it("a server with a database and without a seed creates no project and no API key, and prints none", async () => {
  const DATABASE_URL = database.url
  const server = await startServer({ DATABASE_URL, DATABASE_SCHEMA: "unseeded" })
  server.kill("SIGINT")
  const { stdout } = await server.ended
  expect(JSON.parse(stdout)).toMatchObject({ message: `Tenure listens on ${server.url}` })
  const rows = "SELECT FROM unseeded.projects UNION ALL SELECT FROM unseeded.api_keys"
  expect(await query(rows)).toEqual([])
})

it("a server that is starting ends on SIGTERM although another process holds the lock of the migrations", async () => {
  await inTransaction(database.url, async (run) => {
    await run("SELECT pg_advisory_xact_lock(7236830184)")
    const server = start("node-server", { ...environment, PORT: "0" })
    const waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    await expect.poll(() => run(waiting)).toHaveLength(1)
    server.kill("SIGTERM")
    expect(await server.ended).toEqual({ code: 0, stdout: "", stderr: "" })
  })
})

describe("a server with a database", () => {
  it("logs the cause of a 500 with its request_id, and tells the client no more", async () => {
    const server = await startServer({ ...environment, DATABASE_SCHEMA: "broken" })
    await query("ALTER TABLE broken.audit RENAME TO gone")
    const { body, status, text } = await extendOne(server, "1001")
    const { request_id } = Object(body)
    expect(status).toBe(500)
    expect(text).not.toContain("audit")
    expect(await lineOf(server, request_id, '"message"')).toMatchObject({
      level: "error",
      request_id,
      cause: expect.stringContaining('relation "broken.audit" does not exist'),
    })
    const entry = await lineOf(server, request_id, '"status"')
    expect(entry).toMatchObject({ level: "error", status: 500 })
  })

  it("keeps acknowledged changes when it is killed, and delivers their events after a restart", async () => {
    let isHealthy = false
    const receiver = await startReceiver((response) => {
      if (isHealthy) response.writeHead(204).end()
      else if (receiver.received.length <= 4) response.writeHead(500).end()
    })
    onTestFinished(receiver.close)
    const first = await startServer(environment)
    await call(first, "POST", webhooks, { url: receiver.url })
    const users = Array.from({ length: 20 }, (_, index) => String(1001 + index))
    const answers = await Promise.all(users.map((userId) => extendOne(first, userId)))
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
    // Kills the server after four failed attempts, during the fifth.
    await receiver.until(5)
    first.kill("SIGKILL")
    await first.ended
    await expireClaims()
    const ids = eventsOf(receiver)
    isHealthy = true
    const before = receiver.received.length
    const second = await startServer(environment)
    expect((await extendOne(second, "1001")).status).toBe(200)
    await expect.poll(() => eventsOf(receiver, before).size).toBe(21)
    for (const id of ids) expect(eventsOf(receiver).has(id)).toBe(true)
  })

  it("shares its projects with another process", async () => {
    const [one, other] = await Promise.all([startServer(environment), startServer(environment)])
    const created = await call(one, "POST", webhooks, { url: "https://receiver.example/" })
    const listed = await call(other, "GET", webhooks)
    expect(listed.text).toContain(String(Object(created.body).data.id))
    expect((await extendOne(other, "1002")).status).toBe(200)
  })

  it("is ready only while the database answers", async () => {
    const server = await startServer(environment)
    const readiness = async () => (await fetch(`${server.url}/readyz`)).status
    expect(await readiness()).toBe(200)
    await database.halt()
    // The readiness is cached for a second.
    await expect.poll(readiness).toBe(503)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    const { request_id } = Object((await extendOne(server, "1003")).body)
    const fault = await lineOf(server, request_id, "The store does not answer")
    expect(fault).toMatchObject({ level: "warn", request_id, cause: expect.stringMatching(/\w/) })
    const entry = await lineOf(server, request_id, '"status"')
    expect(entry).toMatchObject({ level: "warn", status: 503 })
    await database.resume()
    await expect.poll(readiness).toBe(200)
  })

  it.each([
    ["does not answer", "postgres://user:hidden@127.0.0.1:1/a", "connect ECONNREFUSED 127.0.0.1:1"],
    [
      "has certificates that cannot be read",
      "postgres://user:hidden@127.0.0.1/a?sslrootcert=/no/such.pem",
      "ENOENT",
    ],
    ["has no such user", database.url.replace(/\/\/.*@/, "//user:hidden@"), 'user "user"'],
  ])(
    "that %s stops with a message that says so, and exit code 1",
    async (_, DATABASE_URL, cause) => {
      const { code, stderr, stdout } = await start("node-server", { PORT: "0", DATABASE_URL }).ended
      expect([code, stdout]).toEqual([1, ""])
      expect(stderr).toMatch(/^DATABASE_URL(: The database at \S+ cannot be used: | has ).*\n$/)
      expect(stderr).toContain(cause)
      expect(stderr).not.toContain("hidden")
    },
  )
})

describe("Tenure on several servers", () => {
  it("keeps each project in its cell", async () => {
    const other = new URL(database.url)
    other.pathname = "another"
    await query("CREATE DATABASE another")
    onTestFinished(async () => void (await query("DROP DATABASE another WITH (FORCE)")))
    const servers = [
      { name: "db1", url: other.href },
      { name: "db2", url: database.url },
    ]
    const schema = "several"
    const made = postgres({ servers, schema, cells: 2 })
    await Effect.runPromise(Effect.scoped(Layer.build(made)))
    const server = await startServer({
      ...environment,
      DATABASE_URL: `servers:${await writeJson(folder, servers)}`,
      DATABASE_SCHEMA: schema,
      DATABASE_MAX_CONNECTIONS: "2",
    })
    expect((await extendOne(server, "1001")).status).toBe(200)
    const found = await queryOn(other.href)(`SELECT id FROM ${schema}_0.projects`)
    expect(found).toEqual([{ id: "p1" }])
  })

  it.each([
    ["{hidden", ".json must be JSON"],
    [[{ name: "db1", url: "hidden" }], ".json[0].url must be a"],
    [[{ name: "d b", url: "postgres://h/d" }], ".json[0].name must be"],
    [[], "servers must have at least one server"],
  ])("says what is wrong with the file: %j", async (entries, message) => {
    const DATABASE_URL = `servers:${await writeJson(folder, entries)}`
    const { code, stderr } = await start("node-server", { DATABASE_URL }).ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^DATABASE_URL: /)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain("hidden")
  })
})
