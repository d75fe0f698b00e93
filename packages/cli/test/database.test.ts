/** The commands that look after a database, and `doctor`. */

import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { PgClient, layer } from "@effect/sql-pg/PgClient"
import { startReceiver } from "@tenure/testing/conformance"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { expect, inject, it, onTestFinished } from "vitest"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { judgeClock, judgeMigrations, judgeStatus } from "../src/commands/doctor.ts"
import { Api, callApi } from "../src/support/api.ts"
import { targetFlags } from "../src/support/target.ts"
import { tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

/** Runs a statement. */
const runOn = (url: string, statement: string) =>
  PgClient.use((sql) => sql.unsafe(statement)).pipe(
    Effect.provide(layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )

const withoutFlags = targetFlags.map((flag) => Layer.succeed(flag, Option.none()))

/** Provides the API to a call, as commands on a database do. */
const onDatabase =
  (env: Readonly<Record<string, string>>) =>
  <A, E>(call: Effect.Effect<A, E, Api>) =>
    call.pipe(
      Effect.provide(Api.layer),
      Effect.provide([NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer, ...withoutFlags]),
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    )

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

it("makes cells on several servers, migrates and lists each, and the doctor checks each", async () => {
  const other = "tenure_cli_other"
  const home = inject("databaseUrl")
  const second = new URL(home)
  second.pathname = other
  const schema = "cli_several"
  const run = (statement: string) => runOn(home, statement)
  const drop = async () => {
    await run(`DROP DATABASE IF EXISTS ${other} WITH (FORCE)`)
    await run(`DROP SCHEMA IF EXISTS ${schema}, ${schema}_0, ${schema}_1 CASCADE`)
  }
  await drop()
  await run(`CREATE DATABASE ${other}`)
  const folder = mkdtempSync(join(tmpdir(), "tenure-servers-"))
  onTestFinished(async () => {
    rmSync(folder, { recursive: true })
    await drop()
  })
  const on = (name: string, servers: ReadonlyArray<object>) => {
    const file = join(folder, `${name}.json`)
    writeFileSync(file, JSON.stringify(servers))
    return tenureWith({ TENURE_DATABASE_URL: `servers:${file}`, TENURE_SCHEMA: schema })
  }
  const outcomes = ({ stdout }: { readonly stdout: string }) =>
    stdout
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line))
  const first = { name: "db1", url: home }
  const tenure = on("both", [first, { name: "db2", url: second.href }])

  expect(outcomes(await tenure("migrate", "--dry-run", "--json"))).toMatchObject([
    { schema, applied: false, problem: null },
  ])
  expect(await tenure("migrate")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("how many"),
  })
  const unreachable = { name: "db2", url: "postgres://app@127.0.0.1:1/app" }
  expect(await on("unreachable", [first, unreachable])("migrate", "--cells", "2")).toMatchObject({
    code: 4,
    stderr: expect.stringContaining("127.0.0.1:1"),
  })
  const schemas = [schema, `${schema}_0`, `${schema}_1`]
  const made = await tenure("migrate", "--cells", "2", "--json")
  expect(outcomes(made)).toEqual(
    schemas.map((name) => ({ schema: name, applied: true, migrations: [], problem: null })),
  )
  expect(await tenure("migrate", "--cells", "3")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("cells must be 2"),
  })
  expect(outcomes(await tenure("migrate", "--dry-run", "--json"))).toMatchObject(
    schemas.map((name) => ({ schema: name, applied: false })),
  )
  expect(await tenure("doctor")).toMatchObject({ code: 0 })
  expect(await on("unreachable", [first, unreachable])("doctor")).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/database of cli_several_1 .*127\.0\.0\.1:1/),
  })
  expect(await tenure("export", `file:${folder}`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("one database"),
  })
  await tenure("projects", "create", "shop")
  await tenure("projects", "create", "p1")
  expect(outcomes(await tenure("projects", "list", "--json"))).toMatchObject([
    { id: "p1" },
    { id: "shop" },
  ])

  const still = { moving_to: null, moved_from: null, copied_bytes: null, lag_bytes: null }
  expect(outcomes(await tenure("cells", "--json"))).toMatchObject([
    { number: 0, server: "db1", projects: expect.any(Number), bytes: expect.any(Number), ...still },
    { number: 1, server: "db2", projects: expect.any(Number), bytes: expect.any(Number), ...still },
  ])
  expect(outcomes(await on("unreachable", [first, unreachable])("cells", "--json"))).toMatchObject([
    { number: 0, bytes: expect.any(Number) },
    { number: 1, projects: null, bytes: null },
  ])
  expect(await tenure("cells", "rebalance", "--dry-run")).toMatchObject({
    code: 0,
    stdout: "The cells are balanced: none has to move.\n",
  })
  expect(await tenure("cells", "move", "1", "db2", "--json")).toMatchObject({
    code: 0,
    stdout: '{"cell":1,"server":"db2","moved":false}\n',
  })
  expect(await tenure("cells", "move", "1", "db1")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Set wal_level = logical on db2"),
  })
  expect(await tenure("cells", "move", "1", "db1", "--cancel", "--json")).toMatchObject({
    code: 0,
    stdout: '{"cell":1,"server":"db1","cancelled":false}\n',
  })

  // A cell may leave after the command has read where it is.
  await runOn(second.href, `ALTER SCHEMA ${schema}_1 RENAME TO ${schema}_1_moved`)
  expect(outcomes(await tenure("migrate", "--json"))).toMatchObject([
    { schema, problem: null },
    { schema: `${schema}_0`, problem: null },
    { schema: `${schema}_1`, applied: false, problem: expect.stringContaining("moved") },
  ])
  await runOn(second.href, `ALTER SCHEMA ${schema}_1_moved RENAME TO ${schema}_1`)
  expect(await tenure("migrate")).toMatchObject({ code: 0 })
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

it("says why a database does not answer, or what else is wrong, with the code of the API", async () => {
  const [schema, url] = ["cli_wrong", inject("databaseUrl")]
  const environment = { TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema }
  const key = { TENURE_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64") }
  const tenure = tenureWith(environment)
  await tenure("migrate")
  await tenure("projects", "create", "p")
  const once = callApi(({ webhooks }) =>
    webhooks.create({ project_id: "p", url: "https://a.example/" }, { idempotencyKey: "once" }),
  )
  const { data } = await Effect.runPromise(once.pipe(onDatabase({ ...environment, ...key })))
  const full = "BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END"
  await runOn(url, `CREATE FUNCTION ${schema}.f() RETURNS trigger LANGUAGE plpgsql AS $$${full}$$`)
  const trigger = `CREATE TRIGGER t BEFORE INSERT ON ${schema}.projects EXECUTE FUNCTION ${schema}.f()`
  await runOn(url, trigger)

  const [unreadable, { code, stderr }] = await Promise.all([
    // The repetition returns a secret that only the key opens.
    Effect.runPromise(once.pipe(onDatabase(environment), Effect.flip)),
    tenure("projects", "create", "q", "--json"),
  ])
  expect(unreadable).toMatchObject({
    kind: "unavailable",
    code: "SERVICE_UNAVAILABLE",
    status: 503,
    requestId: expect.any(String),
    message: `The secret of the webhook "${data.id}" cannot be used: it is encrypted, but there is no encryption key.`,
  })
  expect(code).toBe(4)
  expect(JSON.parse(stderr).error).toEqual({
    code: "SERVICE_UNAVAILABLE",
    request_id: expect.any(String),
    message: "The store does not answer: could not extend file.",
  })
})

it("copies all that there is at one moment to a folder, and overwrites nothing", async () => {
  const tenure = onSchema("cli_moved")
  await tenure("migrate")
  await tenure("projects", "create", "p")
  await tenure("members", "grant", "1", "2098-01-01", "-p", "p")
  const folder = `file:${await folderWithDatabase()}`
  const end = new AbortController()
  const change = async () => {
    for (let user = 2; !end.signal.aborted; user += 1)
      await tenure("members", "grant", String(user), "2098-01-01", "-p", "p")
  }
  const exporting = tenure("export", folder, "--json").finally(() => end.abort())
  const [exported] = await Promise.all([exporting, change()])
  expect(exported).toMatchObject({ code: 0 })
  const { audit, memberships } = JSON.parse(exported.stdout)
  // A row for the project, and one for each membership.
  expect(audit).toBe(memberships + 1)
  const moved = tenureWith({ TENURE_DATABASE_URL: folder, TENURE_SCHEMA: "cli_moved" })
  expect((await moved("members", "list", "-p", "p")).stdout).toContain("2098-01-01")
  expect(await tenure("import", folder)).toMatchObject({ code: 2 })
  const again = await tenure("import", "--all", folder)
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("has rows already") })
  const secret = "postgres://a:hidden@127.0.0.1/b"
  expect(await tenure("export", secret)).toMatchObject({ code: 2 })
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

it("finds no tables in a mistyped schema of a folder, and makes none", async () => {
  const folder = `file:${await folderWithDatabase()}`
  const mistyped = ["--database", folder, "--schema", "mistyped"]
  for (const _ of [1, 2]) {
    const listing = await tenureWith({})("projects", "list", ...mistyped)
    expect(listing).toMatchObject({ code: 1, stderr: expect.stringContaining("has no tables") })
  }
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

it("the doctor names what is wrong at a server, and what to do", async () => {
  const server = await startServer()
  onTestFinished(server.stop)
  const folder = mkdtempSync(join(tmpdir(), "tenure-doctor-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const environment = { TENURE_URL: server.url, XDG_CONFIG_HOME: folder }
  const admin = tenureWith({ ...environment, TENURE_TOKEN: token })
  expect(await admin("doctor")).toMatchObject({ code: 0, stdout: expect.stringContaining("clock") })
  await admin("projects", "create", "p")
  const failing = await startReceiver((response) => response.writeHead(500).end())
  onTestFinished(failing.close)
  const made = await admin("webhooks", "create", failing.url, "-p", "p", "--json")
  const other = JSON.parse(made.stdout).id
  await admin("webhooks", "ping", other, "-p", "p")
  await expect.poll(async () => (await admin("doctor")).stdout).toContain(`fail for: ${other} of p`)
  expect(await admin("doctor")).toMatchObject({ code: 0 })
  const { close, url } = await startReceiver((response) => response.writeHead(410).end())
  onTestFinished(close)
  const { id } = JSON.parse((await admin("webhooks", "create", url, "-p", "p", "--json")).stdout)
  await admin("webhooks", "ping", id, "-p", "p")
  await expect.poll(async () => (await admin("doctor")).stdout).toContain(`1 disabled: ${id} of p`)
  expect((await admin("webhooks", "list", "-p", "p")).stdout).toMatch(
    /disabled +HTTP 410 · \d+ s ago +http\S+ +\d{4}-\S+ +1$/m,
  )
  expect(await admin("doctor")).toMatchObject({ code: 1 })
  const issued = JSON.parse((await admin("keys", "issue", "-p", "p", "--json")).stdout)
  const client = await tenureWith({ ...environment, TENURE_TOKEN: issued.token })("doctor")
  expect(client).toMatchObject({ code: 1, stdout: expect.stringContaining("admin") })
  await server.stop()
  const away = await admin("doctor", "--json")
  expect(away).toMatchObject({ code: 1, stdout: expect.stringContaining("nobody answers") })
})

it("the doctor knows what is too much", () => {
  const attention = {
    project_id: "p",
    url_host: "receiver.example",
    description: null,
    since: "2027-01-01T00:00:00.000Z",
    last_attempt: null,
    waiting: 1,
  } as const
  const status = {
    versions: { tenure: "1.0.0", api: "v2" },
    stores: {
      memberships: false,
      webhooks: true,
      api_keys: true,
      deliveries: true,
      rate_limits: true,
    },
    backlog: { waiting: 10, due_for_ms: 120_000, late_for_ms: 90_000 },
    failed_deliveries: 3,
    disabled_webhooks: 2,
    webhooks_needing_attention: [
      { id: "w2", reason: "failing", ...attention },
      { id: "w1", reason: "disabled", ...attention },
    ],
    rate_limiting: "local",
    suspended_keys: ["k"],
    missing_encryption_keys: ["k1"],
  } as const
  const findings = judgeStatus(status, "Server")
  expect(findings.map(({ check, state }) => [check, state])).toEqual([
    ["stores", "problem"],
    ["deliveries", "problem"],
    ["given up", "warning"],
    ["webhooks", "problem"],
    ["attempts", "warning"],
    ["limiting", "problem"],
    ["limits", "warning"],
    ["encryption", "problem"],
  ])
  expect(findings[1]).toMatchObject({
    found: "10 waiting, one for 90 s for a server to send it",
    advice: expect.stringContaining("add processes"),
  })
  const backlog = { ...status.backlog, late_for_ms: null }
  expect(judgeStatus({ ...status, backlog }, "Server")[1]).toMatchObject({
    state: "warning",
    found: "10 waiting, the oldest due for 120 s, because of its receiver",
    advice: expect.stringContaining("More processes would not help"),
  })
  const stores = { ...status.stores, memberships: true, rate_limits: false }
  expect(judgeStatus({ ...status, stores }, "Server")[0]?.advice).toContain("REDIS_URL")
  // The servers may have the key that the command has not.
  expect(judgeStatus(status, "Database").at(-1)?.state).toBe("warning")
  expect(findings.every(({ advice }) => advice !== null)).toBe(true)
  expect(findings[3]?.found).toBe("2 disabled: w1 of p")
  expect(judgeClock(400).advice).toBeNull()
  expect(judgeClock(-60_000).advice).toContain("NTP")
  expect(judgeMigrations([]).advice).toBeNull()
  expect(judgeMigrations([2]).advice).toBe("Run tenure migrate.")
})
