/** What `doctor` says of outages: of nothing that listens, of the server, and of its database. */

import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { type Server, createServer as createTcpServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient, layer } from "@effect/sql-pg/PgClient"
import { freePort } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { describe, expect, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

/** Runs `doctor`, which must find a problem, and returns what it prints. */
const doctorOf = async (environment: Readonly<Record<string, string>>): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-doctor-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { code, stderr, stdout } = await tenureWith({ XDG_CONFIG_HOME: folder, ...environment })(
    "doctor",
  )
  expect(code).toBe(1)
  return stdout + stderr
}

const doctorAt = (url: string) => doctorOf({ TENURE_URL: url, TENURE_TOKEN: token })

const doctorOn = (url: string, schema = "tenure") =>
  doctorOf({ TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema })

const listening = async (server: Server): Promise<string> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
}

const run = (url: string, ...statements: ReadonlyArray<string>) =>
  PgClient.use((sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }),
  ).pipe(Effect.provide(layer({ url: Redacted.make(url), maxConnections: 1 })), Effect.runPromise)

describe("the doctor says", () => {
  it("that nothing listens", async () => {
    const said = await doctorAt(`http://127.0.0.1:${await freePort()}`)
    expect(said).toContain("nobody answers (connect ECONNREFUSED 127.0.0.1:")
    expect(said).toContain("start the server, or correct the host and port")
    const unknown = await doctorAt("http://tenure.invalid")
    expect(unknown).toMatch(/nobody answers \(getaddrinfo E\w+ tenure\.invalid\)/)
    expect(unknown).toContain("Correct the host")
  })

  it("that something closes the connection, or is not Tenure, or is a proxy", async () => {
    const closing = await listening(createTcpServer((socket) => socket.destroy()))
    expect(await doctorAt(closing)).toContain("closes the connection")
    const other = await listening(createServer((_, response) => response.end("<h1>Welcome")))
    expect(await doctorAt(other)).toContain("what answers there is not Tenure")
    const proxy = await listening(createServer((_, response) => response.writeHead(502).end()))
    const said = await doctorAt(proxy)
    expect(said).toContain("something else answers 502, for example a proxy")
    expect(said).toContain("whether the server behind it runs")
  })

  it("whose fault it is that a server answers 503: that of its database, and of the password and the like", async () => {
    const database = await startPostgres()
    onTestFinished(database.stop)
    const server = await startServer({ DATABASE_URL: database.url })
    onTestFinished(server.stop)
    const well = { TENURE_URL: server.url, TENURE_TOKEN: token }
    expect(await tenureWith(well)("doctor")).toMatchObject({ code: 0 })

    const changed = (change: (url: URL) => void): string => {
      const url = new URL(database.url)
      change(url)
      return url.href
    }
    const wrong = await doctorOn(changed((url) => void (url.password = "wrong")))
    expect(wrong).toContain("password authentication failed")
    expect(wrong).toContain("correct the user and password in the URL")
    expect(wrong).not.toContain("Check the URL, that it runs")
    const absent = await doctorOn(changed((url) => void (url.pathname = "absent")))
    expect(absent).toContain('database "absent" does not exist')
    expect(await doctorOn(database.url, "mistyped")).toContain("has no tables of Tenure")

    await run(
      database.url,
      "CREATE ROLE stranger LOGIN PASSWORD 'p'",
      "CREATE ROLE reader LOGIN PASSWORD 'p'",
      "GRANT USAGE ON SCHEMA tenure TO reader",
      "GRANT SELECT ON tenure.migrations TO reader",
    )
    const as = (user: string) =>
      changed((url) => {
        url.username = user
        url.password = "p"
      })
    expect(await doctorOn(as("stranger"))).toContain("permission denied for schema tenure")
    expect(await doctorOn(as("reader"))).toContain("permission denied for table")

    await run(
      database.url,
      "INSERT INTO tenure.migrations (version, is_breaking, digest) VALUES (9999, true, '')",
    )
    expect(await doctorOn(database.url)).toContain("Upgrade Tenure")
    await run(database.url, "DELETE FROM tenure.migrations")
    expect(await doctorOn(database.url)).toContain("no record of a migration")

    await database.halt()
    const down = await doctorAt(server.url)
    expect(down).toContain("it runs, but its database does not answer")
    expect(down).toContain("server's log")
    expect(down).not.toContain("nobody answers")
    const refused = await doctorOn(database.url)
    expect(refused).toContain("ECONNREFUSED")
    expect(refused).toContain("start PostgreSQL there")
    const listed = await tenureWith({ TENURE_DATABASE_URL: database.url })("projects", "list")
    expect(listed).toMatchObject({ code: 4, stderr: expect.stringContaining("ECONNREFUSED") })
  }, 60_000)
})
