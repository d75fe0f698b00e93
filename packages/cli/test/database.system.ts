/** Databases on several servers, one that fails, and databases in folders. */

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import { PgClient, layer } from "@effect/sql-pg/PgClient"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { expect, inject, it, onTestFinished } from "vitest"
import { lockFolder } from "../../embedded/src/folder.ts"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { Api, callApi } from "../src/support/api.ts"
import { targetFlags } from "../src/support/target.ts"
import { tenureWith } from "./in-process.ts"

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
  const tenure = tenureWith({
    TENURE_DATABASE_URL: inject("databaseUrl"),
    TENURE_SCHEMA: "cli_moved",
  })
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

it("finds no tables in a mistyped schema of a folder, and makes none", async () => {
  const folder = `file:${await folderWithDatabase()}`
  const mistyped = ["--database", folder, "--schema", "mistyped"]
  for (const _ of [1, 2]) {
    const listing = await tenureWith({})("projects", "list", ...mistyped)
    expect(listing).toMatchObject({ code: 1, stderr: expect.stringContaining("has no tables") })
  }
})

it("a folder is used, and says when another process has it", async () => {
  const path = await folderWithDatabase()
  const url = `file:${path}`
  await tenureWith({})("migrate", "--database", url)
  const { code, stdout } = await tenureWith({})("projects", "create", "p", "--database", url)
  expect(stdout).toBe("Created the project p.\n")
  expect(code).toBe(0)
  const { release } = await lockFolder(path)
  onTestFinished(release)
  const mistyped = await tenureWith({})("projects", "list", "--database", `${url}x`)
  expect(mistyped).toMatchObject({ code: 2, stderr: expect.stringContaining("no database") })
  expect(existsSync(`${path}x`)).toBe(false)
  const refused = await tenureWith({})("projects", "list", "--database", url)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining("process") })
})
