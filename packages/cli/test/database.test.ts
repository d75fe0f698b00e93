/** The commands that look after a database. */

import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, inject, it } from "vitest"
import { refused, temporaryFolder, tenureWith, wordsOf } from "./in-process.ts"

/** An environment with a schema that no other run has used. */
const newSchema = () => ({
  TENURE_DATABASE_URL: inject("databaseUrl"),
  TENURE_SCHEMA: `cli_${crypto.randomUUID().replaceAll("-", "")}`,
})

it("migrates, says before what it would do, and is then well", async () => {
  const { json, print, run } = tenureWith(newSchema())
  expect(await run`projects list`).toMatchObject(refused(1, "tenure migrate"))
  const ill = { code: 1, stdout: expect.stringContaining("has no tables of Tenure") }
  expect(await run`doctor`).toMatchObject(ill)
  const planned = await json`migrate --dry-run`
  expect(planned).toMatchObject({ applied: false })
  expect(planned.migrations.length).toBeGreaterThan(0)
  expect(await json`migrate`).toEqual({ applied: true, migrations: planned.migrations })
  expect((await json`migrate`).migrations).toEqual([])
  expect(await print`doctor`).toMatch(/clock +0 s apart/)
})

it("encrypts and decrypts secrets with the keys of the environment", async () => {
  const key = Buffer.alloc(32, 1).toString("base64")
  const schema = newSchema()
  const plain = tenureWith(schema)
  const encrypted = tenureWith({ ...schema, TENURE_ENCRYPTION_KEY: key })
  const both = tenureWith({ ...schema, TENURE_ENCRYPTION_KEY: `plain,${key}` })
  await plain.print`migrate`
  await plain.print`projects create p`
  const { id } = await plain.json`webhooks create https://example.com/ -p p`
  expect(await plain.run`migrate --encrypt-secrets`).toMatchObject({ code: 2 })
  const done = await encrypted.json`migrate --encrypt-secrets`
  expect(done).toMatchObject({ rewritten_secrets: 1 })
  expect(await encrypted.print`webhooks get ${id} -p p --show-secret`).toContain("whsec_")
  expect(await encrypted.run`migrate --decrypt-secrets`).toMatchObject({ code: 2 })
  await both.print`migrate --decrypt-secrets`
  await plain.print`webhooks list -p p`
})

it.each(["migrate --dry-run", "doctor", "members list -p p", "export file:./target"])(
  "%s finds no database in a folder without one, and makes none",
  async (line) => {
    const folder = temporaryFolder()
    for (const path of [folder, join(folder, "mistyped")]) {
      const { run } = tenureWith({})
      const { code, stderr, stdout } = await run`${wordsOf(line)} --database file:${path}`
      expect(code).toBe(line === "doctor" ? 1 : 2)
      expect(stdout + stderr).toContain("There is no database in the folder")
    }
    expect(readdirSync(folder)).toEqual([])
  },
)

it("copies nothing from a folder without a database, or from a database to itself", async () => {
  const { run } = tenureWith(newSchema())
  expect(await run`import --all file:./mistyped`).toMatchObject({ code: 2 })
  expect(existsSync("./mistyped")).toBe(false)
  const itself = await tenureWith({}).run`export file:./a --database file:a`
  expect(itself).toMatchObject(refused(2, "the same database"))
})

it.each(["migrate", "export file:./x"])("%s needs a database", async (line) => {
  const atServer = tenureWith({ TENURE_URL: "http://127.0.0.1:9", TENURE_TOKEN: "any" })
  expect(await atServer.run`${wordsOf(line)}`).toMatchObject({ code: 2 })
})
