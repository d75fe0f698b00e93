/** Encrypted connections, to a server whose certificate a private authority has signed. */

import { execFile } from "node:child_process"
import { chown, readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"
import { makeAuthority } from "./certificates.ts"

const authority = makeAuthority()

let database: PostgresServer
let query: (statement: string) => Promise<ReadonlyArray<object>>

const pathOf = (name: string): string => join(database.dataDirectory, name)

beforeAll(async () => {
  database = await startPostgres()
  const client = PgClient.layer({ url: Redacted.make(database.url), maxConnections: 1 })
  query = (statement) =>
    Effect.runPromise(
      Effect.provide(
        PgClient.PgClient.use((sql) => sql.unsafe<object>(statement)),
        client,
      ),
    )
  await writeFile(pathOf("authority.crt"), authority.certificate)
  await writeFile(pathOf("other.crt"), makeAuthority().certificate)
}, 60_000)
afterAll(() => database.stop())

/** Has the server encrypt from now on, with a certificate for these names. */
const encrypt = async (names: ReadonlyArray<string>, end?: Date) => {
  const { certificate, key } = authority.issue(names, end)
  const { gid, uid } = await stat(database.dataDirectory)
  for (const [name, content] of [
    ["server.crt", certificate],
    ["server.key", key],
  ] as const) {
    await writeFile(pathOf(name), content, { mode: 0o600 })
    await chown(pathOf(name), uid, gid)
  }
  await query("ALTER SYSTEM SET ssl = on")
  await query("SELECT pg_reload_conf()")
}

const urlWith = (parameters: string): string => `${database.url}?${parameters}`
const trusting = () => urlWith(`sslmode=require&sslrootcert=${pathOf("authority.crt")}`)

/** Starts and closes Tenure. Returns the message of the error if it does not start. */
const refusal = (url: string): Promise<string | undefined> =>
  createTenure({ stores: postgres({ url }) }).then(
    (tenure) => tenure.close().then(() => undefined),
    (error: unknown) => String(error),
  )

/** How many connections of Tenure there are that are encrypted, or are not. */
const connections = (isEncrypted: boolean) =>
  query(`
    SELECT FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
    WHERE application_name = 'tenure' AND ssl = ${isEncrypted}
  `)

describe("a server without TLS", () => {
  it("is refused, unless the URL says that the connection is not encrypted", async () => {
    expect(await refusal(urlWith("sslmode=require"))).toMatch(
      /^DatabaseUnusable.*does not support TLS.*sslmode=disable/,
    )
    expect(await refusal(urlWith("sslmode=disable"))).toBeUndefined()
  })
})

describe("a server with TLS", () => {
  it("is trusted with the certificate of its authority, on all connections", async () => {
    await encrypt(["127.0.0.1"])
    await expect.poll(() => refusal(trusting())).toBeUndefined()
    const tenure = await createTenure({ stores: postgres({ url: trusting() }) })
    await tenure.memberships.createProject("p1")
    // One for statements, and one for notifications.
    await expect.poll(async () => (await connections(true)).length).toBeGreaterThan(1)
    expect(await connections(false)).toEqual([])
    await expect.poll(tenure.isReady).toBe(true)
    await tenure.close()
  })

  it("is not trusted without it, or with another one", async () => {
    for (const parameters of [
      "sslmode=require",
      "sslmode=verify-full",
      `sslrootcert=${pathOf("other.crt")}`,
    ]) {
      expect(await refusal(urlWith(parameters))).toMatch(
        /^DatabaseUnusable.*certificate.*sslrootcert/,
      )
    }
  })

  it("is not trusted under a name that its certificate does not have", async () => {
    expect(await refusal(trusting().replace("127.0.0.1", "localhost"))).toMatch(
      /Host: localhost.*a name that is in the certificate/,
    )
  })

  it("serves tenure-migrate as well", async () => {
    const path = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
    const command = (url: string) =>
      promisify(execFile)(process.execPath, ["-C", "@tenure/source", path], {
        env: { DATABASE_URL: url },
      })
    const [trusted, refused] = await Promise.allSettled([
      command(trusting()),
      command(urlWith("sslmode=require")),
    ])
    expect(trusted).toMatchObject({ value: { stdout: "Nothing to do.\n" } })
    expect(refused).toMatchObject({
      reason: { code: 1, stderr: expect.stringMatching(/^[^\n]*certificate[^\n]*sslrootcert/) },
    })
  })

  it("may refuse connections without it", async () => {
    const rules = await readFile(pathOf("pg_hba.conf"), "utf8")
    await writeFile(pathOf("pg_hba.conf"), rules.replaceAll(/^host /gm, "hostssl "))
    await query("SELECT pg_reload_conf()")
    await expect
      .poll(() => refusal(urlWith("sslmode=disable")))
      .toMatch(/no encryption \(add sslmode=require/)
  })
})
