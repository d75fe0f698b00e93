/** A server that is slow, hangs or is gone. */

import { assert } from "@effect/vitest"
import { RateLimiter, type RateLimiterOptions } from "@tenure/core/effect"
import { type LimitDecision, Setting, rateLimiterOptions } from "@tenure/core/internal"
import { type Proxy, startProxy } from "@tenure/testing/internal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { redisLimits } from "../src/index.ts"
import { type Opened, libraries, names } from "./clients.ts"
import { type RedisServer, missing, startRedis, titled } from "./redis-server.ts"

const client = { address: "192.0.2.1", keyId: undefined }

const perAddress = { limit: 3, window: "1 hour" } as const

const timeout = 500

const untilAnswered = { timeout: 60_000, interval: 20 }

describe.skipIf(missing !== undefined)(titled("a server"), () => {
  let server: RedisServer
  let proxy: Proxy
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server?.stop())
  beforeEach(async () => {
    proxy = await startProxy(`redis://127.0.0.1:${server.port}`)
  })
  afterEach(() => proxy.stop())

  /** Runs work with a limiter. */
  const limited = async (
    { client: redis }: Opened,
    onStoreFailure: RateLimiterOptions["onStoreFailure"],
    work: (take: () => Promise<LimitDecision["_tag"]>) => Promise<void>,
  ): Promise<void> => {
    const store = redisLimits({ client: redis, prefix: `${Math.random()}:`, timeout })
    const layer = RateLimiter.layer(
      Setting.parse(rateLimiterOptions, { perAddress, onStoreFailure }),
    )
    await Effect.gen(function* () {
      const limiter = yield* RateLimiter
      const take = Effect.map(limiter.take(client), ({ _tag }) => _tag)
      yield* Effect.promise(() => work(() => Effect.runPromise(take)))
    }).pipe(Effect.provide(Layer.provide(layer, store)), Effect.runPromise)
  }

  describe.each(names)("through %s", (library) => {
    let opened: Opened
    beforeEach(() => {
      opened = libraries[library](proxy.port)
    })
    afterEach(() => opened.close())

    const take5 = (take: () => Promise<string>) => Promise.all(Array.from({ length: 5 }, take))

    it("that hangs is replaced by limits in the process, or by none, or by refusals", async () => {
      const expected = {
        local: ["Admitted", "Admitted", "Admitted", "Refused", "Refused"],
        open: Array.from({ length: 5 }, () => "Admitted"),
        closed: Array.from({ length: 5 }, () => "Unavailable"),
      } as const
      proxy.hold()
      for (const mode of ["local", "open", "closed"] as const) {
        await limited(opened, mode, async (take) => {
          assert.deepStrictEqual(await take5(take), expected[mode])
        })
      }
    })

    it("that hangs holds up those who are there, and nobody else until it answers again", () =>
      limited(opened, "closed", async (take) => {
        await expect.poll(take, untilAnswered).toBe("Admitted")
        proxy.hold()
        const began = performance.now()
        for (let count = 0; count < 100; count++) assert.strictEqual(await take(), "Unavailable")
        assert.isBelow(performance.now() - began, 10 * timeout)
        proxy.release()
        // The take that was waited for has cost a token.
        await expect.poll(take, untilAnswered).toBe("Admitted")
        assert.deepStrictEqual([await take(), await take()], ["Refused", "Refused"])
      }))

    it("that is slower than requests wait is down until it is quicker", () =>
      limited(opened, "closed", async (take) => {
        await expect.poll(take, untilAnswered).toBe("Admitted")
        proxy.delay(2 * timeout)
        assert.strictEqual(await take(), "Unavailable")
        proxy.delay(0)
        await expect.poll(take, untilAnswered).toBe("Admitted")
      }))

    it("that is gone is down until it is back", () =>
      limited(opened, "closed", async (take) => {
        await expect.poll(take, untilAnswered).toBe("Admitted")
        await server.stop()
        assert.strictEqual(await take(), "Unavailable")
        server = await startRedis([], server.port)
        await expect.poll(take, untilAnswered).toBe("Admitted")
      }))
  })
})
