/** The database goes and comes back: nobody waits for it, nothing that was answered is lost. */

import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import * as Tenure from "@tenure/core/Tenure"
import { serve, type Server } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { type PostgresServer, startPostgres } from "@tenure/testing/PostgresServer"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"

const extendOne = "/v2/projects/p1/memberships/1001/extend"
const unlimited = { limit: 1_000_000, window: "1 minute" } as const

let database: PostgresServer
beforeAll(async () => {
  database = await startPostgres()
}, 30_000)
afterAll(() => database.stop())

interface Running {
  readonly tenure: Tenure.Tenure
  readonly server: Server
  readonly token: string
}

const running: Array<Running> = []
afterEach(async () => {
  for (const { server, tenure } of running.splice(0)) {
    await server.close()
    await tenure.close()
  }
})

/** A server with a project, a member and a key. */
const start = async (options: Tenure.Options = {}): Promise<Running> => {
  const tenure = await Tenure.make({
    stores: postgres({ url: database.url }),
    rateLimits: { perKey: unlimited, perAddress: unlimited, burst: unlimited },
    ...options,
  })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({
    projectId: "p1",
    userId: "1001",
    endDate: "2027-01-01T00:00:00.000Z",
  })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const one = { tenure, server: await serve(tenure), token }
  running.push(one)
  return one
}

interface Response {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly millis: number
}

const request = async (
  { server, token }: Running,
  method: string,
  path: string,
  body?: object,
): Promise<Response> => {
  const began = performance.now()
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const { headers, status } = response
  return { status, headers, body: await response.json(), millis: performance.now() - began }
}

const extend = (one: Running): Promise<Response> =>
  request(one, "PATCH", extendOne, { extend: "2099-01-01T00:00:00.000Z" })

/** Waits until requests are answered again. */
const healed = async (one: Running): Promise<void> => {
  while (!(await one.tenure.isReady())) await new Promise((resolve) => setTimeout(resolve, 50))
}

/** Sends a signal to all processes of the database. */
const signal = async (name: "STOP" | "CONT"): Promise<void> => {
  const [pid = ""] = (await readFile(join(database.dataDirectory, "postmaster.pid"), "utf8")).split(
    "\n",
  )
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=", "--ppid", pid])
  for (const child of [pid, ...stdout.split("\n").map((line) => line.trim())]) {
    if (child !== "") process.kill(Number(child), `SIG${name}`)
  }
}

const outages = [
  ["is shut down", () => database.halt(), () => database.resume()],
  ["does not answer any more", () => signal("STOP"), () => signal("CONT")],
] as const

describe.each(outages)("while the database %s", (_name, begin, end) => {
  it("requests are answered 503 within two seconds, and heal by themselves", async () => {
    const one = await start()
    expect((await extend(one)).status).toBe(200)
    expect(await one.tenure.isReady()).toBe(true)
    await begin()
    for (const response of await Promise.all([extend(one), extend(one), extend(one)])) {
      expect(response).toMatchObject({
        status: 503,
        body: { ok: false, error: { error_code: "SERVICE_UNAVAILABLE" } },
      })
      expect(response.headers.get("retry-after")).toBe("5")
      expect(response.headers.get("x-ratelimit-limit")).toBe("1000000")
      expect(response.millis).toBeLessThan(2000)
    }
    expect(await one.tenure.isReady()).toBe(false)
    await end()
    await healed(one)
    expect((await extend(one)).status).toBe(200)
  }, 30_000)

  it("under load, nothing but 200 and 503 is answered, and nothing that was answered is lost", async () => {
    const one = await start()
    const ending = new AbortController()
    let slowest = 0
    const statuses: Array<number> = []
    const load = Array.from({ length: 16 }, async () => {
      while (!ending.signal.aborted) {
        const { millis, status } = await extend(one)
        slowest = Math.max(slowest, millis)
        statuses.push(status)
        if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })
    await expect.poll(() => statuses.length).toBeGreaterThan(100)
    await begin()
    await expect
      .poll(() => statuses.filter((status) => status === 503).length, { timeout: 5000 })
      .toBeGreaterThan(20)
    await end()
    await healed(one)
    const before = statuses.length
    await expect.poll(() => statuses.length).toBeGreaterThan(before + 200)
    ending.abort()
    await Promise.all(load)
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
    expect(slowest).toBeLessThan(2000)
    const answered = statuses.filter((status) => status === 200).length
    const rows = await one.tenure.memberships.history({ projectId: "p1", limit: 10_000 })
    expect(rows.length).toBeGreaterThanOrEqual(answered)
  }, 60_000)
})

describe("while the database is shut down", () => {
  const limits = { perKey: unlimited, perAddress: unlimited }

  it.each([
    ["local", [...Array.from({ length: 20 }, () => 404), 429, 429]],
    ["open", Array.from({ length: 22 }, () => 404)],
    ["closed", Array.from({ length: 22 }, () => 503)],
  ] as const)(
    "limits are kept as it is asked for: %s",
    async (onStoreFailure, expected) => {
      const one = await start({ rateLimits: { ...limits, onStoreFailure } })
      await request(one, "GET", "/nothing")
      await database.halt()
      try {
        // The first finds out that the database is gone.
        await one.tenure.isReady()
        const statuses = []
        for (const _ of expected) statuses.push((await request(one, "GET", "/nothing")).status)
        expect(statuses).toEqual(expected)
      } finally {
        await database.resume()
      }
    },
    30_000,
  )

  it("a host is told so, with an error that has a name", async () => {
    const one = await start()
    await database.halt()
    try {
      await expect(
        one.tenure.memberships.find({ projectId: "p1", userId: "1001" }),
      ).rejects.toMatchObject({ _tag: "StoreUnavailable" })
    } finally {
      await database.resume()
    }
    await healed(one)
  }, 30_000)

  it("Tenure does not start", async () => {
    await database.halt()
    try {
      await expect(Tenure.make({ stores: postgres({ url: database.url }) })).rejects.toMatchObject({
        _tag: "SqlError",
      })
    } finally {
      await database.resume()
    }
  }, 30_000)
})
