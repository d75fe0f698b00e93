/** What `doctor` says about database outages, with its own PostgreSQL. */

import { postgres } from "@tenure/postgres"
import { startPostgres } from "@tenure/testing/postgres-server"
import { expect, it, onTestFinished } from "vitest"
import { type Environment, refused, temporaryFolder, tenureWith } from "./in-process.ts"
import { runOn } from "./programs.ts"
import { startServer, token } from "./server.ts"

/** Runs it where it finds a problem, and returns what it prints. */
const doctorIn = async (environment: Environment): Promise<string> => {
  const { run } = tenureWith({ XDG_CONFIG_HOME: temporaryFolder(), ...environment })
  const { code, stderr, stdout } = await run`doctor`
  expect(code).toBe(1)
  return stdout + stderr
}

const doctorOn = (url: string, schema = "tenure") =>
  doctorIn({ TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema })

it("the doctor says whose fault it is that a server answers 503: that of its database, and of the password and the like", async () => {
  const database = await startPostgres()
  onTestFinished(database.stop)
  const server = await startServer({ stores: postgres({ url: database.url }) })
  onTestFinished(server.stop)
  const atServer = { TENURE_URL: server.url, TENURE_TOKEN: token }
  await tenureWith(atServer).print`doctor`

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

  await runOn(
    database.url,
    "CREATE ROLE stranger LOGIN PASSWORD 'p'",
    "CREATE ROLE reader LOGIN PASSWORD 'p'",
    "GRANT USAGE ON SCHEMA tenure TO reader",
    "GRANT SELECT ON tenure.migrations TO reader",
  )
  for (const [username, denied] of [
    ["stranger", "permission denied for schema tenure"],
    ["reader", "permission denied for table"],
  ] as const) {
    const as = changed((url) => Object.assign(url, { username, password: "p" }))
    expect(await doctorOn(as)).toContain(denied)
  }

  await runOn(
    database.url,
    "INSERT INTO tenure.migrations (version, is_breaking, digest) VALUES (9999, true, '')",
  )
  expect(await doctorOn(database.url)).toContain("Upgrade Tenure")
  await runOn(database.url, "DELETE FROM tenure.migrations")
  expect(await doctorOn(database.url)).toContain("no record of a migration")

  await database.halt()
  const down = await doctorIn(atServer)
  expect(down).toContain("it runs, but its database does not answer")
  expect(down).toContain("server's log")
  expect(down).not.toContain("nobody answers")
  const away = await doctorOn(database.url)
  expect(away).toContain("ECONNREFUSED")
  expect(away).toContain("start PostgreSQL there")
  const { run } = tenureWith({ TENURE_DATABASE_URL: database.url })
  expect(await run`projects list`).toMatchObject(refused(4, "ECONNREFUSED"))
})
