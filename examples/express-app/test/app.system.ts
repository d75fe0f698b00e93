/** The backend as a process, on each of its stores. */

import { startPostgres } from "@tenure/testing/postgres-server"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { logIn as logInTo, send } from "./client.ts"
import { type Backend, startBackend } from "./program.ts"

const extend = "2099-01-01T00:00:00.000Z"

/** The stores, and the environment that selects each. */
const settings = [
  ["memory", async () => ({ environment: {}, stop: async () => {} })],
  [
    "PostgreSQL",
    async () => {
      const { stop, url } = await startPostgres({ settings: { fsync: "off" } })
      return { environment: { DATABASE_URL: url }, stop }
    },
  ],
] as const

describe.each(settings)("a backend on %s", (_name, prepare) => {
  let backend: Backend
  let cleanUp: () => Promise<void>

  beforeAll(async () => {
    const { environment, stop } = await prepare()
    cleanUp = stop
    backend = await startBackend(environment)
  })

  afterAll(async () => {
    expect(await backend.stop()).toBe(0)
    await cleanUp()
  })

  const call = (method: string, path: string, cookie?: string, body?: object) =>
    send(backend, method, path, cookie, body)

  const logIn = (name: string, password: string) => logInTo(backend, name, password)

  const extending = (club: string, userId: string) =>
    `/members/v2/projects/${club}/memberships/${userId}/extend`

  it("answers 401 if nobody is logged in", async () => {
    expect((await call("PATCH", extending("chess", "1"), "", { extend })).status).toBe(401)
    expect((await call("GET", "/clubs")).status).toBe(401)
    expect(await logIn("alice", "wrong")).toBe("")
  })

  it("still has its own routes", async () => {
    const alice = await logIn("alice", "wonderland")
    expect((await call("GET", "/clubs", alice)).body).toEqual([
      { id: "chess", title: "Chess club" },
      { id: "rowing", title: "Rowing club" },
    ])
    expect((await call("GET", "/members/elsewhere", alice)).status).toBe(404)
    await call("POST", "/logout", alice)
    expect((await call("GET", "/clubs", alice)).status).toBe(401)
  })

  it("grants a membership that is paid for, and lets those who run the club extend it", async () => {
    const alice = await logIn("alice", "wonderland")
    const payment = { id: "payment-1", user_id: "1", year: 2030 }
    expect((await call("PATCH", extending("chess", "1"), alice, { extend })).status).toBe(404)
    expect((await call("POST", "/clubs/chess/payments", alice, payment)).status).toBe(204)
    // The payment provider may send a notification twice.
    expect((await call("POST", "/clubs/chess/payments", alice, payment)).status).toBe(204)
    const extended = await call("PATCH", extending("chess", "1"), alice, { extend })
    expect(extended).toMatchObject({ status: 200, body: { ok: true, total: 1 } })

    expect((await call("GET", "/clubs/chess/history", alice)).body).toMatchObject([
      { action: "extended", origin: { keyId: "alice", requestId: extended.body.request_id } },
      { action: "granted", userId: "1", to: Date.parse("2031-01-01T00:00:00.000Z") },
    ])
  })

  it("answers 404 for clubs that others run", async () => {
    const bob = await logIn("bob", "builder")
    const payment = { id: "payment-2", user_id: "1", year: 2030 }
    expect((await call("PATCH", extending("chess", "1"), bob, { extend })).status).toBe(404)
    expect((await call("POST", "/clubs/chess/payments", bob, payment)).status).toBe(404)
    expect((await call("GET", "/clubs/chess/history", bob)).status).toBe(404)
  })
})
