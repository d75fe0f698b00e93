/** Database outages: requests fail fast, and no acknowledged change is lost. */

import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { type Server, serve } from "@tenure/node-http"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"

const extendOne = "/v2/projects/p1/memberships/1001/extend"
const unlimited = { limit: 1_000_000, window: "1 minute" } as const

// Refusals take about a second at most. Waiting for the database would take thirty.
const soonMillis = 10_000

let database: PostgresServer
beforeAll(async () => {
  database = await startPostgres()
})
afterAll(() => database.stop())

interface Running {
  readonly tenure: Tenure
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

/** Starts a server with a project, a member and a key. */
const start = async (options: TenureOptions = {}): Promise<Running> => {
  const tenure = await createTenure({
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

/** Waits until the database answers again. */
const untilReady = (one: Running): Promise<void> => expect.poll(one.tenure.isReady).toBe(true)

/** Sends a signal to all processes of the database server. */
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
  ["does not answer", () => signal("STOP"), () => signal("CONT")],
] as const

describe.each(outages)("while the database %s", (_name, begin, end) => {
  it("requests are soon answered 503, and succeed again once it is back", async () => {
    const one = await start()
    expect((await extend(one)).status).toBe(200)
    await expect.poll(one.tenure.isReady).toBe(true)
    await begin()
    for (const response of await Promise.all([extend(one), extend(one), extend(one)])) {
      expect(response).toMatchObject({
        status: 503,
        body: { ok: false, error: { error_code: "SERVICE_UNAVAILABLE" } },
      })
      expect(response.headers.get("retry-after")).toBe("5")
      expect(response.headers.get("x-ratelimit-limit")).toBe("1000000")
      expect(response.millis).toBeLessThan(soonMillis)
    }
    expect(await one.tenure.isReady()).toBe(false)
    await end()
    await untilReady(one)
    expect((await extend(one)).status).toBe(200)
  })

  it("every request under load is answered 200 or 503, and no acknowledged change is lost", async () => {
    const one = await start()
    const ending = new AbortController()
    const responses: Array<Response> = []
    const withStatus = (status: number) =>
      responses.filter((response) => response.status === status)
    const load = Array.from({ length: 16 }, async () => {
      while (!ending.signal.aborted) {
        const response = await extend(one)
        responses.push(response)
        // Refusals are so fast that they would keep everything else from running.
        if (response.status !== 200) await sleep(20)
      }
    })
    try {
      await expect.poll(() => responses.length).toBeGreaterThan(100)
      await begin()
      await expect.poll(() => withStatus(503).length).toBeGreaterThan(20)
      await end()
      await untilReady(one)
      const before = withStatus(200).length
      await expect.poll(() => withStatus(200).length).toBeGreaterThan(before + 200)
    } finally {
      ending.abort()
      await Promise.all(load)
    }
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 503]))
    expect(Math.max(...responses.map(({ millis }) => millis))).toBeLessThan(soonMillis)
    const rows = await one.tenure.memberships.history({ projectId: "p1", limit: 10_000 })
    expect(rows.length).toBeGreaterThanOrEqual(withStatus(200).length)
  })
})

describe("while the database is shut down", () => {
  // None of the burst's tokens comes back during the test.
  const burst = { limit: 20, window: "1 hour" } as const
  const limits = { perKey: unlimited, perAddress: unlimited, burst }

  it.each([
    ["local", [...Array.from({ length: 20 }, () => 404), 429, 429]],
    ["open", Array.from({ length: 22 }, () => 404)],
    ["closed", Array.from({ length: 22 }, () => 503)],
  ] as const)(
    "onStoreFailure decides whether limits apply: %s",
    async (onStoreFailure, expected) => {
      const one = await start({ rateLimits: { ...limits, onStoreFailure } })
      await request(one, "GET", "/nothing")
      await database.halt()
      try {
        // This call detects the outage, so that the requests below fail at once.
        await one.tenure.isReady()
        const statuses = []
        for (const _ of expected) statuses.push((await request(one, "GET", "/nothing")).status)
        expect(statuses).toEqual(expected)
      } finally {
        await database.resume()
      }
    },
  )

  it("calls in process soon fail with StoreUnavailable, and then at once", async () => {
    const one = await start()
    await database.halt()
    try {
      for (const within of [soonMillis, 1000]) {
        const began = performance.now()
        await expect(
          one.tenure.memberships.find({ projectId: "p1", userId: "1001" }),
        ).rejects.toMatchObject({ _tag: "StoreUnavailable" })
        expect(performance.now() - began).toBeLessThan(within)
      }
    } finally {
      await database.resume()
    }
    await untilReady(one)
  })

  it("createTenure fails", async () => {
    await database.halt()
    try {
      await expect(createTenure({ stores: postgres({ url: database.url }) })).rejects.toMatchObject(
        {
          _tag: "DatabaseUnusable",
        },
      )
    } finally {
      await database.resume()
    }
  })
})
