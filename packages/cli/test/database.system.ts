/** Databases on several servers, one that fails, and databases in folders. */

import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { expect, inject, it, onTestFinished } from "vitest"
import { lockFolder } from "../../embedded/src/folder.ts"
import { folderWithDatabase } from "../../embedded/test/folders.ts"
import { Api, callApi } from "../src/support/api.ts"
import { targetFlags } from "../src/support/target.ts"
import { type Environment, jsonLines, refused, temporaryFolder, tenureWith } from "./in-process.ts"
import { runOn } from "./programs.ts"

const withoutFlags = targetFlags.map((flag) => Layer.succeed(flag, Option.none()))

/** Provides the API to a call, as commands on a database do. */
const onDatabase =
  (env: Environment) =>
  <A, E>(call: Effect.Effect<A, E, Api>) =>
    call.pipe(
      Effect.provide(Api.layer),
      Effect.provide([NodeFileSystem.layer, NodePath.layer, NodeTerminal.layer, ...withoutFlags]),
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    )

const home = inject("databaseUrl")
const unique = () => crypto.randomUUID().replaceAll("-", "")

it("makes cells on several servers, migrates and lists each, and the doctor checks each", async () => {
  const second = new URL(home)
  second.pathname = `tenure_${unique()}`
  const other = second.pathname.slice(1)
  const schema = `cli_${unique()}`
  await runOn(home, `CREATE DATABASE ${other}`)
  onTestFinished(() => runOn(home, `DROP DATABASE ${other} WITH (FORCE)`))
  const folder = temporaryFolder()
  const on = (name: string, url: string) => {
    const file = join(folder, `${name}.json`)
    const servers = [
      { name: "db1", url: home },
      { name: "db2", url },
    ]
    writeFileSync(file, JSON.stringify(servers))
    return tenureWith({ TENURE_DATABASE_URL: `servers:${file}`, TENURE_SCHEMA: schema })
  }
  const { json, lines, print, run } = on("both", second.href)
  const unreachable = on("unreachable", "postgres://app@127.0.0.1:1/app")

  const one = { schema, applied: false, problem: null }
  expect(await lines`migrate --dry-run`).toMatchObject([one])
  expect(await run`migrate`).toMatchObject(refused(2, "how many"))
  expect(await unreachable.run`migrate --cells 2`).toMatchObject(refused(4, "127.0.0.1:1"))
  const schemas = [schema, `${schema}_0`, `${schema}_1`]
  expect(await lines`migrate --cells 2`).toEqual(
    schemas.map((name) => ({ schema: name, applied: true, migrations: [], problem: null })),
  )
  expect(await run`migrate --cells 3`).toMatchObject(refused(2, "cells must be 2"))
  expect(await lines`migrate --dry-run`).toMatchObject(
    schemas.map((name) => ({ schema: name, applied: false })),
  )
  await print`doctor`
  expect(await unreachable.run`doctor`).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(new RegExp(`database of ${schema}_1 .*127\\.0\\.0\\.1:1`)),
  })
  expect(await run`export file:${folder}`).toMatchObject(refused(2, "one database"))
  for (const project of ["shop", "p1"]) await print`projects create ${project}`
  expect(await lines`projects list`).toMatchObject([{ id: "p1" }, { id: "shop" }])

  const still = { moving_to: null, moved_from: null, copied_bytes: null, lag_bytes: null }
  const sizes = { projects: expect.any(Number), bytes: expect.any(Number) }
  expect(await lines`cells`).toMatchObject([
    { number: 0, server: "db1", ...sizes, ...still },
    { number: 1, server: "db2", ...sizes, ...still },
  ])
  expect(jsonLines((await unreachable.run`cells --json`).stdout)).toMatchObject([
    { number: 0, bytes: expect.any(Number) },
    { number: 1, projects: null, bytes: null },
  ])
  expect(await print`cells rebalance --dry-run`).toBe("The cells are balanced: none has to move.\n")
  expect(await json`cells move 1 db2`).toEqual({ cell: 1, server: "db2", moved: false })
  const needed = "Set wal_level = logical on db2"
  expect(await run`cells move 1 db1`).toMatchObject(refused(1, needed))
  const cancelled = { cell: 1, server: "db1", cancelled: false }
  expect(await json`cells move 1 db1 --cancel`).toEqual(cancelled)

  // A cell may leave after the command has read where it is.
  await runOn(second.href, `ALTER SCHEMA ${schema}_1 RENAME TO ${schema}_1_moved`)
  expect(jsonLines((await run`migrate --json`).stdout)).toMatchObject([
    { schema, problem: null },
    { schema: `${schema}_0`, problem: null },
    { schema: `${schema}_1`, applied: false, problem: expect.stringContaining("moved") },
  ])
  await runOn(second.href, `ALTER SCHEMA ${schema}_1_moved RENAME TO ${schema}_1`)
  await print`migrate`
})

it("says why a database does not answer, or what else is wrong, with the code of the API", async () => {
  const schema = `cli_${unique()}`
  const environment = { TENURE_DATABASE_URL: home, TENURE_SCHEMA: schema }
  const key = { TENURE_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64") }
  const { print, run } = tenureWith(environment)
  await print`migrate`
  await print`projects create p`
  const idempotency = callApi(({ webhooks }) =>
    webhooks.create({ project_id: "p", url: "https://a.example/" }, { idempotencyKey: "once" }),
  )
  const { data } = await Effect.runPromise(idempotency.pipe(onDatabase({ ...environment, ...key })))
  const full = "BEGIN RAISE disk_full USING MESSAGE = 'could not extend file'; END"
  await runOn(
    home,
    `CREATE FUNCTION ${schema}.f() RETURNS trigger LANGUAGE plpgsql AS $$${full}$$`,
    `CREATE TRIGGER t BEFORE INSERT ON ${schema}.projects EXECUTE FUNCTION ${schema}.f()`,
  )

  // The repetition returns a secret that only the key opens.
  const unreadable = await Effect.runPromise(idempotency.pipe(onDatabase(environment), Effect.flip))
  expect(unreadable).toMatchObject({
    kind: "unavailable",
    code: "SERVICE_UNAVAILABLE",
    status: 503,
    requestId: expect.any(String),
    message: `The secret of the webhook "${data.id}" cannot be used: it is encrypted, but there is no encryption key.`,
  })
  const { code, stderr } = await run`projects create q --json`
  expect(code).toBe(4)
  expect(JSON.parse(stderr).error).toEqual({
    code: "SERVICE_UNAVAILABLE",
    request_id: expect.any(String),
    message: "The store does not answer: could not extend file.",
  })
})

it("copies all that there is at one moment to a folder, and overwrites nothing", async () => {
  const TENURE_SCHEMA = `cli_${unique()}`
  const { json, print, run } = tenureWith({ TENURE_DATABASE_URL: home, TENURE_SCHEMA })
  await print`migrate`
  await print`projects create p`
  await print`members grant 1 2098-01-01 -p p`
  const folder = `file:${await folderWithDatabase()}`
  const end = new AbortController()
  const change = async () => {
    for (let user = 2; !end.signal.aborted; user += 1)
      await print`members grant ${String(user)} 2098-01-01 -p p`
  }
  const exporting = json`export ${folder}`.finally(() => end.abort())
  const [{ audit, memberships }] = await Promise.all([exporting, change()])
  // A row for the project, and one for each membership.
  expect(audit).toBe(memberships + 1)
  const moved = tenureWith({ TENURE_DATABASE_URL: folder, TENURE_SCHEMA })
  expect(await moved.print`members list -p p`).toContain("2098-01-01")
  expect(await run`import ${folder}`).toMatchObject({ code: 2 })
  expect(await run`import --all ${folder}`).toMatchObject(refused(1, "has rows already"))
  expect(await run`export postgres://a:hidden@127.0.0.1/b`).toMatchObject({ code: 2 })
})

it("a folder is used, and says when it has no such schema, or another process has it", async () => {
  const path = await folderWithDatabase()
  const url = `file:${path}`
  const { print, run } = tenureWith({})
  for (const _ of [1, 2]) {
    const listing = await run`projects list --database ${url} --schema mistyped`
    expect(listing).toMatchObject(refused(1, "has no tables"))
  }
  await print`migrate --database ${url}`
  expect(await print`projects create p --database ${url}`).toBe("Created the project p.\n")
  const { release } = await lockFolder(path)
  onTestFinished(release)
  const mistyped = await run`projects list --database ${url}x`
  expect(mistyped).toMatchObject(refused(2, "no database"))
  expect(existsSync(`${path}x`)).toBe(false)
  expect(await run`projects list --database ${url}`).toMatchObject(refused(4, "process"))
})
