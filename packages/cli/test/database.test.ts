/** The commands that look after a database. */

import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, inject, it, onTestFinished } from "vitest"
import { tenureWith } from "./in-process.ts"

const onSchema = (schema: string) =>
  tenureWith({ TENURE_DATABASE_URL: inject("databaseUrl"), TENURE_SCHEMA: schema })

it("migrates, says before what it would do, and is then well", async () => {
  const tenure = onSchema("cli_migrate")
  const missing = await tenure("projects", "list")
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("tenure migrate") })
  const ill = await tenure("doctor")
  expect(ill).toMatchObject({ code: 1, stdout: expect.stringContaining("has no tables of Tenure") })
  const planned = JSON.parse((await tenure("migrate", "--dry-run", "--json")).stdout)
  expect(planned).toMatchObject({ applied: false })
  expect(planned.migrations.length).toBeGreaterThan(0)
  const done = JSON.parse((await tenure("migrate", "--json")).stdout)
  expect(done).toEqual({ applied: true, migrations: planned.migrations })
  expect(JSON.parse((await tenure("migrate", "--json")).stdout).migrations).toEqual([])
  const well = await tenure("doctor")
  expect(well).toMatchObject({ code: 0, stdout: expect.stringMatching(/clock +0 s apart/) })
})

it("encrypts and decrypts secrets with the keys of the environment", async () => {
  const [key, schema] = [Buffer.alloc(32, 1).toString("base64"), "cli_encrypt"]
  const url = { TENURE_DATABASE_URL: inject("databaseUrl"), TENURE_SCHEMA: schema }
  const plain = tenureWith(url)
  const encrypted = tenureWith({ ...url, TENURE_ENCRYPTION_KEY: key })
  await plain("migrate")
  await plain("projects", "create", "p")
  const made = await plain("webhooks", "create", "https://example.com/", "-p", "p", "--json")
  const { id } = JSON.parse(made.stdout)
  expect(await plain("migrate", "--encrypt-secrets")).toMatchObject({ code: 2 })
  const done = await encrypted("migrate", "--encrypt-secrets", "--json")
  expect(JSON.parse(done.stdout)).toMatchObject({ rewritten_secrets: 1 })
  expect((await encrypted("webhooks", "get", id, "-p", "p", "--show-secret")).stdout).toContain(
    "whsec_",
  )
  expect(await encrypted("migrate", "--decrypt-secrets")).toMatchObject({ code: 2 })
  const keys = tenureWith({ ...url, TENURE_ENCRYPTION_KEY: `plain,${key}` })
  expect(await keys("migrate", "--decrypt-secrets")).toMatchObject({ code: 0 })
  expect(await plain("webhooks", "list", "-p", "p")).toMatchObject({ code: 0 })
})

it.each([
  ["migrate", "--dry-run"],
  ["doctor"],
  ["members", "list", "-p", "p"],
  ["export", "file:./target"],
])("%s finds no database in a folder without one, and makes none", async (...args) => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-none-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const path of [folder, join(folder, "mistyped")]) {
    const { code, stderr, stdout } = await tenureWith({})(...args, "--database", `file:${path}`)
    expect(code).toBe(args[0] === "doctor" ? 1 : 2)
    expect(stdout + stderr).toContain("There is no database in the folder")
  }
  expect(readdirSync(folder)).toEqual([])
})

it("copies nothing from a folder without a database, or from a database to itself", async () => {
  const tenure = onSchema("cli_none")
  expect(await tenure("import", "--all", "file:./mistyped")).toMatchObject({ code: 2 })
  expect(existsSync("./mistyped")).toBe(false)
  const itself = await tenureWith({})("export", "file:./a", "--database", "file:a")
  expect(itself).toMatchObject({ code: 2, stderr: expect.stringContaining("the same database") })
})

it("needs a database", async () => {
  const atServer = tenureWith({ TENURE_URL: "http://127.0.0.1:9", TENURE_TOKEN: "any" })
  expect(await atServer("migrate")).toMatchObject({ code: 2 })
  expect(await atServer("export", "file:./x")).toMatchObject({ code: 2 })
})
