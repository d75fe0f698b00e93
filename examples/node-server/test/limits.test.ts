/** Rate limits on Redis. */

import { freePort, send } from "@tenure/testing/conformance"
import { Redis } from "ioredis"
import { afterEach, expect, it } from "vitest"
import { missing, startRedis, titled } from "../../../packages/redis/test/redis-server.ts"
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

it("are kept in the process while there is no Redis", async () => {
  const { url } = await startServer({
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
    RATE_LIMIT_PER_IP: "1",
  })
  for (const status of [401, 429]) expect(await send(url, listing)).toMatchObject({ status })
})

it("are not kept at what is no URL of a Redis, which is not shown", async () => {
  const REDIS_URL = "http://:password@localhost"
  const { code, stderr } = await start("node-server", { REDIS_URL }).ended
  expect(code).toBe(1)
  expect(stderr).toMatch(/^REDIS_URL must be a URL such as redis:\/\/localhost:6379/)
  expect(stderr).not.toContain("password")
})
