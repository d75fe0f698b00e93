/** What `doctor` says of the outages of a server's database, with a PostgreSQL of its own. */

import { PgClient, layer } from "@effect/sql-pg/PgClient"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, it, onTestFinished } from "vitest"
import { doctorOf } from "./doctor.ts"
import { tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

const doctorAt = (url: string) => doctorOf({ TENURE_URL: url, TENURE_TOKEN: token })

const doctorOn = (url: string, schema = "tenure") =>
  doctorOf({ TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema })

const run = (url: string, ...statements: ReadonlyArray<string>) =>
  PgClient.use((sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }),
  ).pipe(Effect.provide(layer({ url: Redacted.make(url), maxConnections: 1 })), Effect.runPromise)

it("the doctor says whose fault it is that a server answers 503: that of its database, and of the password and the like", async () => {
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
