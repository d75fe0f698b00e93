/** The backend as a process, stopped and started again on files and a PostgreSQL that outlive it. */

import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { afterAll, beforeAll, expect, it } from "vitest"
import { logIn, send } from "./client.ts"
import { type Backend, startBackend } from "./program.ts"

let folder: string
let postgres: PostgresServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "express-app-"))
  postgres = await startPostgres({ settings: { fsync: "off" } })
})

afterAll(async () => {
  await postgres.stop()
  await rm(folder, { recursive: true })
})

/** Starts a backend on files and databases that outlive it, uses it, and stops it. */
const duringOneRun = async <A>(use: (backend: Backend) => Promise<A>): Promise<A> => {
  const environment = { DATABASE_FILE: join(folder, "app.sqlite"), DATABASE_URL: postgres.url }
  const backend = await startBackend(environment)
  try {
    return await use(backend)
  } finally {
    expect(await backend.stop()).toBe(0)
  }
}

const pay = (backend: Backend, cookie: string, id: string, year: number) =>
  send(backend, "POST", "/clubs/chess/payments", cookie, { id, user_id: "1", year })

it("sessions and payments survive a restart", async () => {
  const [alice, bob] = await duringOneRun(async (backend) => {
    const cookies = [
      await logIn(backend, "alice", "wonderland"),
      await logIn(backend, "bob", "builder"),
    ] as const
    expect((await pay(backend, cookies[0], "payment-1", 2030)).status).toBe(204)
    await send(backend, "POST", "/logout", cookies[1])
    return cookies
  })

  await duringOneRun(async (backend) => {
    expect((await send(backend, "GET", "/clubs", alice)).body).toHaveLength(2)
    expect((await send(backend, "GET", "/clubs", bob)).status).toBe(401)

    // A recorded payment grants nothing more, even if the notification has another year.
    expect((await pay(backend, alice, "payment-1", 2040)).status).toBe(204)
    expect((await pay(backend, alice, "payment-2", 2031)).status).toBe(204)
    expect((await send(backend, "GET", "/clubs/chess/history", alice)).body).toMatchObject([
      { to: Date.parse("2032-01-01T00:00:00.000Z") },
      { to: Date.parse("2031-01-01T00:00:00.000Z") },
    ])
  })
})
