/** A healthy database behind a network that is slow, or forgets connections. */

import { setTimeout as sleep } from "node:timers/promises"
import { type Tenure, createTenure } from "@tenure/core"
import { Fixture } from "@tenure/testing/conformance"
import { type Proxy, startProxy } from "@tenure/testing/internal"
import * as Effect from "effect/Effect"
import { beforeAll, describe, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { execute } from "./harness.ts"

const schema = "network"
const member = { projectId: Fixture.p1, userId: Fixture.u1 }
const endDate = "2099-01-01T00:00:00.000Z"

beforeAll(async () => {
  await Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema} CASCADE`))
  const stores = postgres({ url: inject("databaseUrl"), schema })
  const { close, memberships } = await createTenure({ stores })
  await memberships.createProject(Fixture.p1)
  await memberships.grant({ ...member, endDate })
  await close()
})

/** Runs a test on a Tenure behind a proxy. */
const behindProxy = async (
  delayMillis: number,
  test: (tenure: Tenure, proxy: Proxy) => Promise<void>,
): Promise<void> => {
  const proxy = await startProxy(inject("databaseUrl"))
  proxy.delay(delayMillis)
  const tenure = await createTenure({
    stores: postgres({ url: proxy.url, schema, migrate: false }),
  })
  try {
    await test(tenure, proxy)
  } finally {
    await tenure.close()
    await proxy.stop()
  }
}

const extend = ({ memberships }: Tenure): Promise<boolean> =>
  memberships.extend({ ...member, endDate }).then(
    () => true,
    () => false,
  )

/** Opens several connections, and returns whether all work. */
const works = async (tenure: Tenure): Promise<boolean> => {
  const find = () => tenure.memberships.find(member).then(() => true)
  const results = await Promise.all([extend(tenure), tenure.isReady(), find(), find(), find()])
  return results.every((isGood) => isGood)
}

// Elapsed time is what these tests are about, so they run side by side.
describe.concurrent("a network", () => {
  it("that takes 200 ms for an answer is not taken for a database that is down", ({ expect }) =>
    behindProxy(100, async (tenure) => {
      expect(await works(tenure)).toBe(true)
      expect(await works(tenure)).toBe(true)
    }))

  it("that becomes slower than statements usually are is put up with", ({ expect }) =>
    behindProxy(0, async (tenure, proxy) => {
      expect(await works(tenure)).toBe(true)
      proxy.delay(260)
      await expect.poll(tenure.isReady).toBe(true)
      expect(await works(tenure)).toBe(true)
    }))

  it("that forgets its connections does not keep new ones from replacing them", ({ expect }) =>
    behindProxy(0, async (tenure, proxy) => {
      expect(await works(tenure)).toBe(true)
      proxy.silence()
      // This takes a second. The longest that a statement may take is ten.
      await expect.poll(() => extend(tenure), { timeout: 8000, interval: 20 }).toBe(true)
      // Also those that nobody has used in the meantime.
      expect(await works(tenure)).toBe(true)
    }))

  it("that is slow keeps no connection that was opening when Tenure closed", async ({ expect }) => {
    const proxy = await startProxy(inject("databaseUrl"))
    const stores = postgres({ url: proxy.url, schema, migrate: false })
    proxy.delay(10)
    // While the dispatcher opens a connection.
    const moments = Array.from({ length: 16 }, (_, index) => 10 * index)
    await Promise.all(
      moments.map(async (millis) => {
        const tenure = await createTenure({ stores })
        await sleep(millis)
        await tenure.close()
      }),
    )
    // The server would close them only when it notices that nobody is there.
    await expect.poll(proxy.open, { timeout: 5000, interval: 20 }).toBe(0)
    await proxy.stop()
  })

  it(
    "that forgets its connections does not keep Tenure from closing",
    ({ expect }) =>
      behindProxy(0, async (tenure, proxy) => {
        expect(await works(tenure)).toBe(true)
        proxy.silence()
        await tenure.close()
      }),
    20_000,
  )
})
