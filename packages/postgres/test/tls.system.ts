/** Encrypted connections, to a server whose certificate a private authority has signed. */

import { chown, readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { createTenure } from "@tenure/core"
import { beforeAll, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"
import { makeAuthority } from "./certificates.ts"
import { ownServer, queryAt, runMigrate } from "./servers.ts"

const authority = makeAuthority()
const database = ownServer()

const pathOf = (name: string): string => join(database().dataDirectory, name)
const query = (...statements: ReadonlyArray<string>) => queryAt(database().url, ...statements)
const urlWith = (parameters: string): string => `${database().url}?${parameters}`
const trusting = () => urlWith(`sslmode=require&sslrootcert=${pathOf("authority.crt")}`)

beforeAll(async () => {
  await writeFile(pathOf("authority.crt"), authority.certificate)
  await writeFile(pathOf("other.crt"), makeAuthority().certificate)
})

/** Has the server encrypt from now on, with a certificate for its address. */
const encrypt = async () => {
  const { certificate, key } = authority.issue(["127.0.0.1"])
  const { gid, uid } = await stat(database().dataDirectory)
  for (const [name, content] of Object.entries({ "server.crt": certificate, "server.key": key })) {
    await writeFile(pathOf(name), content, { mode: 0o600 })
    await chown(pathOf(name), uid, gid)
  }
  await query("ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()")
}

/** Starts and closes Tenure. Returns the error's message if it does not start. */
const refusal = (url: string): Promise<string | undefined> =>
  createTenure({ stores: postgres({ url }) }).then(
    (tenure) => tenure.close().then(() => undefined),
    (error: unknown) => String(error),
  )

it("a server without TLS is refused, unless the URL says that the connection is not encrypted", async () => {
  expect(await refusal(urlWith("sslmode=require"))).toMatch(
    /^DatabaseUnusable.*does not support TLS.*sslmode=disable/,
  )
  expect(await refusal(urlWith("sslmode=disable"))).toBeUndefined()
})

describe("a server with TLS", () => {
  it("is trusted with the certificate of its authority, on all connections", async () => {
    await encrypt()
    await expect.poll(() => refusal(trusting())).toBeUndefined()
    const tenure = await createTenure({ stores: postgres({ url: trusting() }) })
    await tenure.memberships.createProject("p1")
    const encrypted = `
      SELECT DISTINCT ssl, count(*) > 1 AS are_several
      FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
      WHERE application_name = 'tenure' GROUP BY ssl`
    // One for statements, and one for notifications.
    await expect.poll(() => query(encrypted)).toEqual([{ ssl: true, are_several: true }])
    await expect.poll(tenure.isReady).toBe(true)
    await tenure.close()
  })

  it.each([
    ["without it", () => urlWith("sslmode=require"), /certificate.*sslrootcert/],
    ["without it, in full", () => urlWith("sslmode=verify-full"), /certificate.*sslrootcert/],
    [
      "with another",
      () => urlWith(`sslrootcert=${pathOf("other.crt")}`),
      /certificate.*sslrootcert/,
    ],
    [
      "under a name that it does not have",
      () => trusting().replace("127.0.0.1", "localhost"),
      /Host: localhost.*a name that is in the certificate/,
    ],
  ])("is not trusted %s", async (_, url, reason) => {
    expect(await refusal(url())).toMatch(/^DatabaseUnusable/)
    expect(await refusal(url())).toMatch(reason)
  })

  it("serves tenure-migrate as well", async () => {
    expect((await runMigrate([], { DATABASE_URL: trusting() })).stdout).toBe("Nothing to do.\n")
    await expect(
      runMigrate([], { DATABASE_URL: urlWith("sslmode=require") }),
    ).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^[^\n]*certificate[^\n]*sslrootcert/),
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
