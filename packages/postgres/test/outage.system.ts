/** Database outages: requests fail fast, no acknowledged change is lost, and a database that refuses changes is not ready. */

import { execFile } from "node:child_process"
import { readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { promisify } from "node:util"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { type Server, serve } from "@tenure/node-http"
import { afterEach, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"
import { ownServer, queryAt } from "./servers.ts"

const member = { projectId: "p1", userId: "1001" }
const unlimited = { limit: 1_000_000, window: "1 minute" } as const

// Refusals take about a second at most. Waiting for the database would take thirty.
const soonMillis = 10_000

const database = ownServer()

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
    stores: postgres({ url: database().url }),
    rateLimits: { perKey: unlimited, perAddress: unlimited, burst: unlimited },
    ...options,
  })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ ...member, endDate: "2027-01-01T00:00:00.000Z" })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const one = { tenure, server: await serve(tenure), token }
  running.push(one)
  return one
}

const request = async ({ server, token }: Running, method: string, path: string, body?: object) => {
  const began = performance.now()
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: await response.json(),
    millis: performance.now() - began,
  }
}

const extend = (one: Running) =>
  request(one, "PATCH", "/v2/projects/p1/memberships/1001/extend", {
    extend: "2099-01-01T00:00:00.000Z",
  })

const untilReady = ({ tenure }: Running, isReady = true) =>
  expect.poll(tenure.isReady).toBe(isReady)

/** Sends a signal to all processes in the database server. */
const signal = async (name: "STOP" | "CONT"): Promise<void> => {
  const file = await readFile(join(database().dataDirectory, "postmaster.pid"), "utf8")
  const [pid = ""] = file.split("\n")
  const { stdout } = await promisify(execFile)("ps", ["-o", "pid=", "--ppid", pid])
  for (const one of [pid, ...stdout.trim().split(/\s+/)]) process.kill(Number(one), `SIG${name}`)
}

describe.each([
  ["is shut down", () => database().halt(), () => database().resume()],
  ["does not answer", () => signal("STOP"), () => signal("CONT")],
] as const)("while the database %s", (_name, begin, end) => {
  it("requests are soon answered 503, and succeed again once it is back", async () => {
    const one = await start()
    expect((await extend(one)).status).toBe(200)
    await untilReady(one)
    await begin()
    for (const response of await Promise.all([extend(one), extend(one), extend(one)])) {
      expect(response).toMatchObject({
        status: 503,
        headers: { "retry-after": "5", "x-ratelimit-limit": "1000000" },
        body: { ok: false, error: { error_code: "SERVICE_UNAVAILABLE" } },
      })
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
    const responses: Array<Awaited<ReturnType<typeof extend>>> = []
    const count = (status: number) =>
      responses.filter((response) => response.status === status).length
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
      await expect.poll(() => count(503)).toBeGreaterThan(20)
      await end()
      await untilReady(one)
      const before = count(200)
      await expect.poll(() => count(200)).toBeGreaterThan(before + 200)
    } finally {
      ending.abort()
      await Promise.all(load)
    }
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 503]))
    expect(Math.max(...responses.map(({ millis }) => millis))).toBeLessThan(soonMillis)
    const rows = await one.tenure.memberships.history({ projectId: "p1", limit: 10_000 })
    expect(rows.length).toBeGreaterThanOrEqual(count(200))
  })
})

describe("while the database is shut down", () => {
  const halted = async (work: () => Promise<unknown>): Promise<void> => {
    await database().halt()
    try {
      await work()
    } finally {
      await database().resume()
    }
  }

  it.each([
    ["local", [...Array.from({ length: 20 }, () => 404), 429, 429]],
    ["open", Array.from({ length: 22 }, () => 404)],
    ["closed", Array.from({ length: 22 }, () => 503)],
  ] as const)(
    "onStoreFailure decides whether limits apply: %s",
    async (onStoreFailure, expected) => {
      // No burst token comes back during the test.
      const burst = { limit: 20, window: "1 hour" } as const
      const limits = { perKey: unlimited, perAddress: unlimited, burst, onStoreFailure }
      const one = await start({ rateLimits: limits })
      await request(one, "GET", "/nothing")
      await halted(async () => {
        // This call detects the outage, so that the requests below fail at once.
        await one.tenure.isReady()
        const statuses = []
        for (const _ of expected) statuses.push((await request(one, "GET", "/nothing")).status)
        expect(statuses).toEqual(expected)
      })
    },
  )

  it("calls in process soon fail with StoreUnavailable, and then at once", async () => {
    const one = await start()
    await halted(async () => {
      for (const within of [soonMillis, 1000]) {
        const began = performance.now()
        const finding = one.tenure.memberships.find(member)
        await expect(finding).rejects.toMatchObject({ _tag: "StoreUnavailable" })
        expect(performance.now() - began).toBeLessThan(within)
      }
    })
    await untilReady(one)
  })

  it("createTenure fails", () =>
    halted(() =>
      expect(createTenure({ stores: postgres({ url: database().url }) })).rejects.toMatchObject({
        _tag: "DatabaseUnusable",
      }),
    ))
})

describe("a database that refuses changes", () => {
  const execute = (...statements: ReadonlyArray<string>) => queryAt(database().url, ...statements)
  const isRead = ({ tenure }: Running): Promise<boolean> =>
    tenure.memberships.find(member).then(
      () => true,
      () => false,
    )

  it("is not ready while its transactions are read-only", async () => {
    const one = await start()
    await untilReady(one)
    const readOnly = "default_transaction_read_only"
    await execute(`ALTER SYSTEM SET ${readOnly} = on`, "SELECT pg_reload_conf()")
    await untilReady(one, false)
    expect(await isRead(one)).toBe(true)
    await execute(`ALTER SYSTEM RESET ${readOnly}`, "SELECT pg_reload_conf()")
    await untilReady(one)
  })

  it("is not ready while its disk is full, once a change has failed for that", async () => {
    const one = await start()
    await untilReady(one)
    const tables = ["projects", "idempotency_keys"]
    await execute(
      `CREATE FUNCTION tenure.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
       END $$`,
      ...tables.map(
        (table) =>
          `CREATE TRIGGER fails BEFORE INSERT ON tenure.${table} EXECUTE FUNCTION tenure.fail()`,
      ),
    )
    expect(await one.tenure.isReady()).toBe(true)
    await expect(one.tenure.memberships.createProject("p2")).rejects.toMatchObject({
      _tag: "StoreUnavailable",
    })
    const again = await Promise.all(Array.from({ length: 20 }, () => one.tenure.isReady()))
    expect(again).not.toContain(true)
    expect(await isRead(one)).toBe(true)
    await execute(
      ...tables.map((table) => `DROP TRIGGER fails ON tenure.${table}`),
      "DROP FUNCTION tenure.fail",
    )
    await untilReady(one)
    await one.tenure.memberships.createProject("p2")
  })

  it("is not ready as a standby until it becomes the primary", async () => {
    const one = await start()
    const file = join(database().dataDirectory, "standby.signal")
    await database().halt()
    await writeFile(file, "")
    await database().resume()
    await expect.poll(() => isRead(one)).toBe(true)
    expect(await one.tenure.isReady()).toBe(false)
    await database().halt()
    await rm(file)
    await database().resume()
    await untilReady(one)
  })
})
