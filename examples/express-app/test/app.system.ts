/** The backend as a process, in memory, and on files and a PostgreSQL that outlive it. */

import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startPostgres } from "@tenure/testing/postgres-server"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { startBackend } from "./backend.ts"

type Backend = Awaited<ReturnType<typeof startBackend>>

const extend = "2099-01-01T00:00:00.000Z"
const extending = "/members/v2/projects/chess/memberships/1/extend"
const payments = "/clubs/chess/payments"
const history = "/clubs/chess/history"

describe("a backend", () => {
  let logIn: Backend["logIn"]
  let send: Backend["send"]
  let stop: Backend["stop"]

  beforeAll(async () => {
    ;({ logIn, send, stop } = await startBackend())
  })

  afterAll(async () => {
    expect(await stop()).toBe(0)
  })

  it("answers 401 if nobody is logged in", async () => {
    expect((await send("PATCH", extending, "", { extend })).status).toBe(401)
    expect((await send("GET", "/clubs")).status).toBe(401)
    expect(await logIn("alice", "wrong")).toBe("")
  })

  it("still has its own routes", async () => {
    const alice = await logIn("alice", "wonderland")
    expect((await send("GET", "/clubs", alice)).body).toEqual([
      { id: "chess", title: "Chess club" },
      { id: "rowing", title: "Rowing club" },
    ])
    expect((await send("GET", "/members/elsewhere", alice)).status).toBe(404)
    await send("POST", "/logout", alice)
    expect((await send("GET", "/clubs", alice)).status).toBe(401)
  })

  it("grants a membership that is paid for, and lets those who run the club extend it", async () => {
    const alice = await logIn("alice", "wonderland")
    const payment = { id: "payment-1", user_id: "1", year: 2030 }
    expect((await send("PATCH", extending, alice, { extend })).status).toBe(404)
    expect((await send("POST", payments, alice, payment)).status).toBe(204)
    // The payment provider may send a notification twice.
    expect((await send("POST", payments, alice, payment)).status).toBe(204)
    const extended = await send("PATCH", extending, alice, { extend })
    expect(extended).toMatchObject({ status: 200, body: { ok: true, total: 1 } })

    expect((await send("GET", history, alice)).body).toMatchObject([
      { action: "extended", origin: { keyId: "alice", requestId: extended.body.request_id } },
      { action: "granted", userId: "1", to: Date.parse("2031-01-01T00:00:00.000Z") },
    ])
  })

  it("answers 404 for clubs that others run", async () => {
    const bob = await logIn("bob", "builder")
    const payment = { id: "payment-2", user_id: "1", year: 2030 }
    expect((await send("PATCH", extending, bob, { extend })).status).toBe(404)
    expect((await send("POST", payments, bob, payment)).status).toBe(404)
    expect((await send("GET", history, bob)).status).toBe(404)
  })
})

it("sessions, payments and memberships survive a restart on PostgreSQL", async () => {
  const folder = await mkdtemp(join(tmpdir(), "express-app-"))
  const postgres = await startPostgres({ settings: { fsync: "off" } })
  onTestFinished(async () => {
    await postgres.stop()
    await rm(folder, { recursive: true })
  })
  const environment = { DATABASE_FILE: join(folder, "app.sqlite"), DATABASE_URL: postgres.url }
  const pay = ({ send }: Backend, cookie: string, id: string, year: number) =>
    send("POST", payments, cookie, { id, user_id: "1", year })

  const first = await startBackend(environment)
  const alice = await first.logIn("alice", "wonderland")
  const bob = await first.logIn("bob", "builder")
  expect((await pay(first, alice, "payment-1", 2030)).status).toBe(204)
  expect((await first.send("PATCH", extending, alice, { extend })).status).toBe(200)
  await first.send("POST", "/logout", bob)
  expect(await first.stop()).toBe(0)

  const second = await startBackend(environment)
  expect((await second.send("GET", "/clubs", alice)).body).toHaveLength(2)
  expect((await second.send("GET", "/clubs", bob)).status).toBe(401)
  // A recorded payment grants nothing more, even if the notification has another year.
  expect((await pay(second, alice, "payment-1", 2040)).status).toBe(204)
  expect((await pay(second, alice, "payment-2", 2100)).status).toBe(204)
  expect((await second.send("GET", history, alice)).body).toMatchObject([
    { to: Date.parse("2101-01-01T00:00:00.000Z") },
    { to: Date.parse(extend) },
    { to: Date.parse("2031-01-01T00:00:00.000Z") },
  ])
  expect(await second.stop()).toBe(0)
})
