/** Servers share rate limits on Redis, and do without it during an outage. */

import { freePort, send } from "@tenure/testing/conformance"
import { Redis } from "ioredis"
import { afterEach, expect, it } from "vitest"
import { missing, startRedis, titled } from "../../redis/test/redis-server.ts"
import { endAll, start, startServer } from "./programs.ts"

afterEach(endAll)

const listing = { method: "GET", path: "/v2/projects/demo/memberships" }

it.skipIf(missing !== undefined)(titled("are kept there, by all servers"), async () => {
  const redis = await startRedis()
  const environment = { REDIS_URL: `redis://127.0.0.1:${redis.port}`, RATE_LIMIT_PER_IP: "2" }
  for (const status of [401, 401, 429]) {
    const { url } = await startServer(environment)
    expect(await send(url, listing)).toMatchObject({ status })
  }
  const client = new Redis(redis.port, "127.0.0.1")
  expect(await client.keys("*")).toEqual(["tenure:address:127.0.0.1"])
  client.disconnect()
  await redis.stop()
})

it("are kept in the process while there is no Redis, and the log and /readyz say so", async () => {
  const { lines, url } = await startServer({
    REDIS_URL: `redis://:secret@127.0.0.1:${await freePort()}`,
    RATE_LIMIT_PER_IP: "1",
  })
  for (const status of [401, 429, 429]) expect(await send(url, listing)).toMatchObject({ status })
  expect(await send(url, { path: "/readyz" })).toMatchObject({
    status: 200,
    text: "rate limits: local\n",
  })
  const warnings = () => lines.filter((line) => line.includes('"warn"'))
  await expect.poll(warnings).toHaveLength(2)
  expect(warnings()).toEqual([
    expect.stringMatching(/"Redis cannot be reached","cause":"connect ECONNREFUSED/),
    expect.stringContaining(
      "The store of rate limits does not answer: this process limits requests by itself",
    ),
  ])
  expect(lines.join("\n")).not.toContain("secret")
})

it.skipIf(missing !== undefined)(titled("come back, which the log says once"), async () => {
  const port = await freePort()
  const server = await startServer({ REDIS_URL: `redis://127.0.0.1:${port}` })
  expect(await send(server.url, listing)).toMatchObject({ status: 401 })
  const redis = await startRedis([], port)
  await server.line(/Redis is connected again/)
  const isOver = async () => {
    await send(server.url, listing)
    return server.lines.filter((line) => line.includes("this is over"))
  }
  await expect.poll(isOver, { timeout: 20_000, interval: 200 }).toHaveLength(1)
  const said = server.lines.filter((line) => line.includes('"message"'))
  expect(said.filter((line) => line.includes("The store of rate limits"))).toHaveLength(2)
  expect(said.filter((line) => line.includes("Redis "))).toHaveLength(2)
  await redis.stop()
})

it("are not kept at what is no URL of a Redis, which is not shown", async () => {
  const REDIS_URL = "http://:password@localhost"
  const { code, stderr } = await start("node-server", { REDIS_URL }).ended
  expect(code).toBe(1)
  expect(stderr).toMatch(/^REDIS_URL must be a URL such as redis:\/\/localhost:6379/)
  expect(stderr).not.toContain("password")
})
