/** The program `tenure-migrate`, as a process: its arguments, output and exit codes. The quick suite calls what it calls. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type KeyringInput, createTenure, parseKeyring } from "@tenure/core"
import * as Effect from "effect/Effect"
import { beforeEach, describe, expect, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { clientLayer, dropped, sql } from "./harness.ts"

const schema = "migrate_command"

beforeEach(() => Effect.runPromise(dropped(schema)))

const path = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))
const { NODE_COMPILE_CACHE } = process.env

const start = (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}) =>
  promisify(execFile)(process.execPath, ["-C", "@tenure/source", path, ...args], {
    env: { NODE_COMPILE_CACHE, ...environment },
  })

describe("tenure-migrate", () => {
  const command = (environment: Readonly<Record<string, string>>) => start([schema], environment)

  it("applies pending migrations, and prints their numbers", async () => {
    const environment = { DATABASE_URL: inject("databaseUrl") }
    expect((await command(environment)).stdout).toBe(
      `Applied: ${migrations.map((_, index) => index + 1).join(", ")}.\n`,
    )
    expect((await command(environment)).stdout).toBe("Nothing to do.\n")
  })

  it("tells how it is used, and nothing else", async () => {
    const asked = (...args: ReadonlyArray<string>) => start(args)
    expect((await asked("--help")).stdout).toContain("Usage: tenure-migrate")
    expect((await asked("--version")).stdout).toMatch(/^tenure \d/)
    for (const args of [["--nope"], ["one", "other"]])
      await expect(asked(...args)).rejects.toMatchObject({ code: 2, stdout: "" })
  })

  it("prints what is wrong, without the password, and exits with code 1, or 2 for a setting", async () => {
    await expect(command({})).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("DATABASE_URL"),
    })
    const failed = command({ DATABASE_URL: "postgres://someone:hidden@127.0.0.1:1/nothing" })
    await expect(failed).rejects.toMatchObject({
      code: 1,
      stderr: expect.not.stringContaining("hidden"),
    })
  })
})

const k1 = new Uint8Array(32).fill(1)
const k2 = new Uint8Array(32).fill(2)

/** Adds a webhook with four secrets: its own, a previous one, a signing key, and a header. */
const addWebhook = async (encryption?: KeyringInput): Promise<void> => {
  const stores = postgres({ url: inject("databaseUrl"), schema, maxConnections: 3 })
  const tenure = await createTenure({ stores, webhooks: { encryption, dispatch: false } })
  const projectId = "p1"
  await tenure.memberships.createProject(projectId)
  const { id } = await tenure.webhooks.create({
    projectId,
    url: "https://receiver.example/a",
    headers: { "X-Hidden": "whsec_hidden" },
  })
  const ids = { projectId, webhookId: id }
  await tenure.webhooks.addSigningKey(ids)
  await tenure.webhooks.rotateSecret(ids)
  await tenure.close()
}

/** The webhooks, as a dump shows them. */
const dump = (): Promise<string> =>
  sql(`SELECT w::text FROM ${schema}.webhooks w`).pipe(
    Effect.map((rows) => JSON.stringify(rows)),
    Effect.provide(clientLayer({ maxConnections: 1 })),
    Effect.runPromise,
  )

describe("tenure-migrate --encrypt-secrets and --decrypt-secrets", () => {
  const command = (keys: Readonly<Record<string, string>>, flag = "--encrypt-secrets") =>
    start([flag, schema], { DATABASE_URL: inject("databaseUrl"), ...keys })

  it("encrypts with the first key of TENURE_ENCRYPTION_KEY", async () => {
    await addWebhook()
    const old = Buffer.from(k1).toString("base64")
    const fresh = Buffer.from(k2).toString("base64")
    const count = "Encrypted: the secrets of 1 webhook.\n"
    expect((await command({ TENURE_ENCRYPTION_KEY: old })).stdout).toBe(count)
    expect(await dump()).not.toMatch(/whsec_|whsk_/)
    expect((await command({ TENURE_ENCRYPTION_KEY: `${fresh},${old}` })).stdout).toBe(count)
    expect((await command({ TENURE_ENCRYPTION_KEY: fresh })).stdout).toBe(
      "Encrypted: the secrets of 0 webhooks.\n",
    )
    await expect(command({ TENURE_ENCRYPTION_KEY: old })).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no valid encryption key[^]*Failed: 1\./),
    })
  })

  it("decrypts with the keys after the word plain, and only then", async () => {
    const key = Buffer.from(k1).toString("base64")
    await addWebhook(parseKeyring(key))
    const encrypts = { TENURE_ENCRYPTION_KEY: key }
    const decrypts = { TENURE_ENCRYPTION_KEY: `plain,${key}` }
    const [refused, other, done] = await Promise.allSettled([
      command(decrypts),
      command(encrypts, "--decrypt-secrets"),
      command(decrypts, "--decrypt-secrets"),
    ])
    expect(refused).toMatchObject({
      reason: { stderr: "TENURE_ENCRYPTION_KEY must begin with the key that encrypts\n" },
    })
    expect(other).toMatchObject({
      reason: { stderr: 'TENURE_ENCRYPTION_KEY must begin with "plain"\n' },
    })
    expect(done).toMatchObject({ value: { stdout: "Decrypted: the secrets of 1 webhook.\n" } })
    expect((await dump()).match(/whsec_|whsk_/g)).toHaveLength(4)
  })

  it.each([{}, { TENURE_ENCRYPTION_KEY: "" }, { TENURE_ENCRYPTION_KEY: "c2hvcnQ=" }])(
    "refuses invalid keys without showing them: %j",
    async (keys) => {
      const failed: unknown = await command(keys).catch((error: unknown) => error)
      expect(failed).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^TENURE_ENCRYPTION_KEY must be the base64 of 32 bytes/),
      })
      expect(String(failed)).not.toContain("c2hvcnQ=")
    },
  )
})
