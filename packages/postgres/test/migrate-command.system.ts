/** The program `tenure-migrate`, as a process: its arguments, output and exit codes. The quick suite calls what it calls. */

import { type KeyringInput, createTenure, parseKeyring } from "@tenure/core"
import * as Effect from "effect/Effect"
import { beforeEach, describe, expect, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { migrations } from "../src/schema/migrations.generated.ts"
import { dropped } from "./harness.ts"
import { queryAt, runMigrate } from "./servers.ts"

const schema = "migrate_command"
const environment = { DATABASE_URL: inject("databaseUrl") }

beforeEach(() => Effect.runPromise(dropped(schema)))

describe("tenure-migrate", () => {
  it("applies pending migrations, and prints their numbers", async () => {
    const numbers = migrations.map((_, index) => index + 1).join(", ")
    expect((await runMigrate([schema], environment)).stdout).toBe(`Applied: ${numbers}.\n`)
    expect((await runMigrate([schema], environment)).stdout).toBe("Nothing to do.\n")
  })

  it("tells how it is used, and nothing else", async () => {
    expect((await runMigrate(["--help"])).stdout).toContain("Usage: tenure-migrate")
    expect((await runMigrate(["--version"])).stdout).toMatch(/^tenure \d/)
    for (const args of [["--nope"], ["one", "other"]])
      await expect(runMigrate(args)).rejects.toMatchObject({ code: 2, stdout: "" })
  })

  it("prints what is wrong, without the password, and exits with code 1, or 2 for a setting", async () => {
    await expect(runMigrate([schema])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("DATABASE_URL"),
    })
    const url = "postgres://someone:hidden@127.0.0.1:1/nothing"
    await expect(runMigrate([schema], { DATABASE_URL: url })).rejects.toMatchObject({
      code: 1,
      stderr: expect.not.stringContaining("hidden"),
    })
  })
})

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

/** The secrets that a dump shows. */
const secretsInDump = async () => {
  const rows = await queryAt(inject("databaseUrl"), `SELECT w::text FROM ${schema}.webhooks w`)
  return JSON.stringify(rows).match(/whsec_|whsk_/g) ?? []
}

describe("tenure-migrate --encrypt-secrets and --decrypt-secrets", () => {
  const command = (keys: string | undefined, flag = "--encrypt-secrets") =>
    runMigrate([flag, schema], {
      ...environment,
      ...(keys !== undefined && { TENURE_ENCRYPTION_KEY: keys }),
    })
  const [old, fresh] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"))

  it("encrypts with the first key of TENURE_ENCRYPTION_KEY", async () => {
    await addWebhook()
    for (const [keys, count] of [
      [old, "1 webhook"],
      [`${fresh},${old}`, "1 webhook"],
      [fresh, "0 webhooks"],
    ] as const) {
      expect((await command(keys)).stdout).toBe(`Encrypted: the secrets of ${count}.\n`)
      expect(await secretsInDump()).toEqual([])
    }
    await expect(command(old)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/no valid encryption key[^]*Failed: 1\./),
    })
  })

  it("decrypts with the keys after the word plain, and only then", async () => {
    await addWebhook(parseKeyring(old ?? ""))
    await expect(command(`plain,${old}`)).rejects.toMatchObject({
      stderr: "TENURE_ENCRYPTION_KEY must begin with the key that encrypts\n",
    })
    await expect(command(old, "--decrypt-secrets")).rejects.toMatchObject({
      stderr: 'TENURE_ENCRYPTION_KEY must begin with "plain"\n',
    })
    expect((await command(`plain,${old}`, "--decrypt-secrets")).stdout).toBe(
      "Decrypted: the secrets of 1 webhook.\n",
    )
    expect(await secretsInDump()).toHaveLength(4)
  })

  it.each([undefined, "", "c2hvcnQ="])(
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
