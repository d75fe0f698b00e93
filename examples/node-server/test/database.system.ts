/** The server as a process on PostgreSQL, which is stopped, broken, migrated, and shared with other processes. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { postgres } from "@tenure/postgres"
import { type Receiver, send, startReceiver } from "@tenure/testing/conformance"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type Server, endAll, start, startServer } from "./programs.ts"

const extend = "2099-01-01T00:00:00.000Z"
const project = "/v2/projects/p1"

let database: PostgresServer
let environment: Readonly<Record<string, string>>
let folder: string

beforeAll(async () => {
  database = await startPostgres()
  folder = await mkdtemp(join(tmpdir(), "tenure-"))
  const members = Array.from({ length: 20 }, (_, index) => ({
    user_id: String(1001 + index),
    end_date: "2027-01-01T00:00:00.000Z",
  }))
  const seed = { projects: [{ id: "p1", memberships: members, api_keys: ["a-token"] }] }
  await writeFile(join(folder, "seed.json"), JSON.stringify(seed))
  environment = {
    DATABASE_URL: database.url,
    SEED_FILE: join(folder, "seed.json"),
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    WEBHOOK_RETRY_SCHEDULE: "1,1,1,1",
    RATE_LIMIT_BURST: "1000",
  }
})

afterEach(endAll)
afterAll(async () => {
  await database.stop()
  await rm(folder, { recursive: true })
})

const call = ({ url }: Server, method: string, path: string, body?: object) =>
  send(url, {
    method,
    path,
    headers: { authorization: "Bearer a-token", "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

const extendOne = (server: Server, userId: string) =>
  call(server, "PATCH", `${project}/memberships/${userId}/extend`, { extend })

const eventsOf = (receiver: Receiver, from = 0): Set<string | undefined> =>
  new Set(receiver.received.slice(from).map(({ headers }) => headers["webhook-id"]))

/** Lets the claims of processes that have ended expire, as they do with time. */
const expireClaims = () =>
  PgClient.PgClient.use((sql) =>
    sql.unsafe(
      "UPDATE tenure.deliveries SET next_attempt_at = clock_timestamp() WHERE state = 'leased'",
    ),
  ).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })),
    Effect.runPromise,
  )

/** Makes another database, which is dropped at the end of its scope. */
const anotherDatabase = async () => {
  const query = (url: string, statement: string) =>
    PgClient.PgClient.use((sql) => sql.unsafe<object>(statement)).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
      Effect.runPromise,
    )
  const url = new URL(database.url)
  url.pathname = "another"
  await query(database.url, "CREATE DATABASE another")
  return {
    url: url.href,
    query: (statement: string) => query(url.href, statement),
    [Symbol.asyncDispose]: async () => {
      await query(database.url, "DROP DATABASE another WITH (FORCE)")
    },
  }
}

describe("a server with TENURE_ENCRYPTION_KEY", () => {
  it("shows the secrets of webhooks, and names those of another key", async () => {
    const key = (byte: number) => Buffer.alloc(32, byte).toString("base64")
    const path = `${project}/integrations/webhooks`
    const list = async (keys: string, allow = {}) => {
      const server = await startServer({
        ...environment,
        ...allow,
        TENURE_ENCRYPTION_KEY: keys,
      })
      return { server, listed: await call(server, "GET", path) }
    }
    const { server } = await list(key(1))
    const created = await call(server, "POST", path, { url: "https://receiver.example/a" })
    const { id, secret, url } = Object(created.body).data
    const rotated = await list(`${key(2)},${key(1)}`)
    expect(rotated.listed).toMatchObject({ status: 200, body: { data: [{ id, secret, url }] } })
    const refused = await start("node-server", { PORT: "0", ...environment }).ended
    expect(refused).toMatchObject({ code: 1 })
    expect(refused.stderr).toMatch(
      /^TENURE_ENCRYPTION_KEY must have the key "\w+", .* set ENCRYPTION_MISSING=allow\n$/,
    )
    const { listed } = await list(key(2), { ENCRYPTION_MISSING: "allow" })
    expect(listed).toMatchObject({ status: 200, body: { data: [{ id, url }] } })
    expect(Object(listed.body).data[0].secret).toMatch(/^unreadable_/)
    expect(Object(listed.body).message).toContain(id)
    expect((await call(server, "DELETE", `${path}/${id}`)).status).toBe(200)
  })
})

/** Runs statements on the database of the tests, in a transaction with other work. */
const withSql = <A>(
  work: (query: (statement: string) => Promise<ReadonlyArray<object>>) => Promise<A>,
): Promise<A> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const run = Effect.runPromiseWith(yield* Effect.context())
    return yield* sql.withTransaction(
      Effect.flatMap(Effect.context(), (transaction) =>
        Effect.promise(() =>
          work((statement) => run(Effect.provide(sql.unsafe<object>(statement), transaction))),
        ),
      ),
    )
  }).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })),
    Effect.runPromise,
  )

describe("a seed file for a database", () => {
  const rows = `
    SELECT id FROM seeded.projects UNION ALL
    SELECT user_id FROM seeded.memberships UNION ALL
    SELECT role FROM (SELECT role FROM seeded.api_keys ORDER BY role DESC) keys
  `
  const settings = async (seed: object) => {
    await writeFile(join(folder, "whole.json"), JSON.stringify(seed))
    return {
      PORT: "0",
      DATABASE_URL: database.url,
      DATABASE_SCHEMA: "seeded",
      SEED_FILE: join(folder, "whole.json"),
    }
  }
  const valid = {
    projects: [
      {
        id: "p1",
        memberships: [{ user_id: "1001", end_date: extend }],
        api_keys: ["of the project"],
      },
    ],
  }

  it("is applied as a whole or not at all", async () => {
    const api_keys = [{ token: "of the project", role: "admin" }]
    const refused = await start("node-server", await settings({ ...valid, api_keys })).ended
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/^SEED_FILE: api_keys: 0/),
    ])
    expect(await withSql((query) => query(rows))).toEqual([])
    for (let count = 0; count < 2; count++) {
      await startServer(await settings({ ...valid, api_keys: [{ token: "other", role: "admin" }] }))
      expect((await withSql((query) => query(rows))).map((row) => Object(row).id)).toEqual([
        "p1",
        "1001",
        "client",
        "admin",
      ])
    }
  })
})

describe("a server with a database and without a seed", () => {
  it("creates no project and no API key, and prints none", async () => {
    const DATABASE_URL = database.url
    const server = await startServer({ DATABASE_URL, DATABASE_SCHEMA: "unseeded" })
    server.kill("SIGINT")
    const { stdout } = await server.ended
    expect(JSON.parse(stdout)).toMatchObject({ message: `Tenure listens on ${server.url}` })
    const rows = "SELECT FROM unseeded.projects UNION ALL SELECT FROM unseeded.api_keys"
    expect(await withSql((query) => query(rows))).toEqual([])
  })
})

describe("a server that is starting", () => {
  it("ends on SIGTERM although another process holds the lock of the migrations", async () => {
    await withSql(async (query) => {
      await query("SELECT pg_advisory_xact_lock(7236830184)")
      const server = start("node-server", { ...environment, PORT: "0" })
      const waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
      await expect.poll(() => query(waiting)).toHaveLength(1)
      server.kill("SIGTERM")
      expect(await server.ended).toEqual({ code: 0, stdout: "", stderr: "" })
    })
  })
})

/** The entry of a request in the log. */
const entryOf = async (server: Server, requestId: string): Promise<unknown> => {
  const [line] = await server.line(new RegExp(`.*${requestId}.*"status".*`))
  return JSON.parse(line)
}

describe("a server with a database", () => {
  it("logs the cause of a 500 with its request_id, and tells the client no more", async () => {
    const server = await startServer({ ...environment, DATABASE_SCHEMA: "broken" })
    await withSql((query) => query("ALTER TABLE broken.audit RENAME TO gone"))
    const { body, status, text } = await extendOne(server, "1001")
    const { request_id } = Object(body)
    expect(status).toBe(500)
    expect(text).not.toContain("audit")
    const [defect] = await server.line(new RegExp(`.*"message".*${request_id}.*`))
    expect(JSON.parse(defect)).toMatchObject({
      level: "error",
      request_id,
      cause: expect.stringContaining('relation "broken.audit" does not exist'),
    })
    expect(await entryOf(server, request_id)).toMatchObject({ level: "error", status: 500 })
  })

  it("keeps acknowledged changes when it is killed, and delivers their events after a restart", async () => {
    let isHealthy = false
    const receiver = await startReceiver((response) => {
      if (isHealthy) response.writeHead(204).end()
      else if (receiver.received.length <= 4) response.writeHead(500).end()
    })
    const first = await startServer(environment)
    await call(first, "POST", `${project}/integrations/webhooks`, { url: receiver.url })
    const users = Array.from({ length: 20 }, (_, index) => String(1001 + index))
    const answers = await Promise.all(users.map((userId) => extendOne(first, userId)))
    expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
    // Kills the server after four attempts that have failed, during the fifth, and before the rest.
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
    receiver.close()
  })

  it("shares its projects with another process", async () => {
    const [one, other] = await Promise.all([startServer(environment), startServer(environment)])
    const url = "https://receiver.example/"
    const created = await call(one, "POST", `${project}/integrations/webhooks`, { url })
    const listed = await call(other, "GET", `${project}/integrations/webhooks`)
    expect(listed.text).toContain(String(/"id":"([^"]+)"/.exec(created.text)?.[1]))
    expect((await extendOne(other, "1002")).status).toBe(200)
  })

  it("is ready only while the database answers", async () => {
    const server = await startServer(environment)
    const readiness = async () => (await fetch(`${server.url}/readyz`)).status
    expect(await readiness()).toBe(200)
    await database.halt()
    // An answer holds for a second.
    await expect.poll(readiness).toBe(503)
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
    const { request_id } = Object((await extendOne(server, "1003")).body)
    const [fault] = await server.line(new RegExp(`.*The store does not answer.*${request_id}.*`))
    expect(JSON.parse(fault)).toMatchObject({
      level: "warn",
      request_id,
      cause: expect.stringMatching(/\w/),
    })
    expect(await entryOf(server, request_id)).toMatchObject({ level: "warn", status: 503 })
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
    ["has no such user", () => database.url.replace(/\/\/.*@/, "//user:hidden@"), 'user "user"'],
  ])("that %s stops with a message that says so, and exit code 1", async (_name, url, cause) => {
    const DATABASE_URL = typeof url === "string" ? url : url()
    const { code, stderr, stdout } = await start("node-server", { PORT: "0", DATABASE_URL }).ended
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toMatch(/^DATABASE_URL(: The database at \S+ cannot be used: | has ).*\n$/)
    expect(stderr).toContain(cause)
    expect(stderr).not.toContain("hidden")
  })
})

describe("Tenure on several servers", () => {
  const write = async (entries: unknown): Promise<string> => {
    const path = join(folder, "servers.json")
    await writeFile(path, typeof entries === "string" ? entries : JSON.stringify(entries))
    return `servers:${path}`
  }

  it("keeps each project in its cell", async () => {
    await using other = await anotherDatabase()
    const servers = [
      { name: "db1", url: other.url },
      { name: "db2", url: database.url },
    ]
    const schema = "several"
    const made = postgres({ servers, schema, cells: 2 })
    await Effect.runPromise(Effect.scoped(Layer.build(made)))
    const server = await startServer({
      ...environment,
      DATABASE_URL: await write(servers),
      DATABASE_SCHEMA: schema,
      DATABASE_MAX_CONNECTIONS: "2",
    })
    expect((await extendOne(server, "1001")).status).toBe(200)
    expect(await other.query(`SELECT id FROM ${schema}_0.projects`)).toEqual([{ id: "p1" }])
  })

  it.each([
    ["{hidden", "servers.json must be JSON"],
    [[{ name: "db1", url: "hidden" }], "servers.json[0].url must be a"],
    [[{ name: "d b", url: "postgres://h/d" }], "servers.json[0].name must be"],
    [[], "servers must have at least one server"],
  ])("says what is wrong with the file: %j", async (entries, message) => {
    const { code, stderr } = await start("node-server", { DATABASE_URL: await write(entries) })
      .ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^DATABASE_URL: /)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain("hidden")
  })
})
