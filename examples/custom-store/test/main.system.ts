/** The server as a process, with its own PostgreSQL: its start, and its stop by the host. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { PgClient } from "@effect/sql-pg"
import { expect, it } from "@effect/vitest"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll } from "vitest"

const database = await startPostgres()
afterAll(() => database.stop())

const { NODE_COMPILE_CACHE } = process.env
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** Runs a statement on the host's tables, and returns its rows. */
const execute = (statement: string): Promise<ReadonlyArray<object>> =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    return yield* sql.unsafe(statement)
  }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(database.url) })), Effect.runPromise)

it("the server extends a subscription, and exits on SIGTERM", async () => {
  const program = spawn(process.execPath, ["-C", "@tenure/source", main], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE, DATABASE_URL: database.url, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  })
  try {
    let output = ""
    for await (const chunk of program.stdout) {
      output += String(chunk)
      if (/Bearer \S+\n/.test(output)) break
    }
    const [url = ""] = /http:\S+/.exec(output) ?? []
    const [authorization = ""] = /Bearer \S+/.exec(output) ?? []
    await execute(
      "INSERT INTO subscriptions (account, customer, paid_until) VALUES ('acme', '1001', now())",
    )
    const response = await fetch(`${url}/v2/projects/acme/memberships/1001/extend`, {
      method: "PATCH",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
    })
    expect(response.status).toBe(200)
    expect(await execute("SELECT customer, paid_until, plan FROM subscriptions")).toEqual([
      { customer: "1001", paid_until: new Date("2099-01-01T00:00:00.000Z"), plan: "basic" },
    ])
    program.kill("SIGTERM")
    expect(await once(program, "exit")).toEqual([0, null])
  } finally {
    program.kill("SIGKILL")
  }
})
