import { memory } from "@tenure/memory"
import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { createClient } from "../src/create-client.ts"
import { retryDelay, sleep as realSleep } from "../src/request.ts"
import { TenureError, isTenureError, readRetryAfter } from "../src/response.ts"
import { answering, failure, recordedSleep, serving, stores, success } from "./support.ts"

const extend = "2099-01-01T00:00:00.000Z"
const member = { project_id: "p1", user_id: "1001" }

afterEach(() => void vi.useRealTimers())

describe("429", () => {
  it("is waited out exactly: the next attempt is admitted", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] })
    const rateLimits = { perKey: { limit: 1, window: 7000 } }
    await serving({ stores: memory(), rateLimits }, async ({ client }) => {
      const waits: Array<number> = []
      const sleep = async (millis: number) => {
        waits.push(millis)
        await vi.advanceTimersByTimeAsync(millis)
      }
      const { memberships } = client({ sleep })
      for (let call = 0; call < 3; call++) await memberships.extend({ ...member, extend })
      expect(waits).toEqual([7000, 7000])
    })
  })

  it.each(Object.entries(stores))("is waited out on %s by its own clock", async (_, store) => {
    const rateLimits = { perKey: { limit: 1, window: 1000 } }
    await serving({ stores: store(), rateLimits }, async ({ client }) => {
      const { memberships } = client({ maxRetries: 1 })
      const calls = [1, 2].map(() => memberships.extend({ ...member, extend }))
      expect(await Promise.all(calls)).toMatchObject([{ ok: true }, { ok: true }])
    })
  })

  it("with a longer wait than `maxWait` is an error at once, which says how long", async () => {
    const rateLimits = { perKey: { limit: 1, window: 60_000 } }
    await serving({ stores: memory(), rateLimits }, async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      const { memberships } = client({ sleep, maxWait: 59_999 })
      await memberships.extend({ ...member, extend })
      await expect(memberships.extend({ ...member, extend })).rejects.toMatchObject({
        code: "RATE_LIMIT_EXCEEDED",
        status: 429,
        retryAfter: 60,
        problems: [{ retry_after: 60 }],
      })
      expect(waits).toEqual([])
    })
  })
})

const unavailable = { error_code: "SERVICE_UNAVAILABLE", message: "Not now." }
const done = success({ new_end_date: extend }, { total: 1 })

describe("503", () => {
  it("of a server whose database is down is tried again with the wait that it asks for", async () => {
    await serving({ stores: memory() }, async ({ client, tenure }) => {
      const { sleep, waits } = recordedSleep()
      // Closed, it answers 503.
      await tenure.close()
      const call = client({ sleep, maxRetries: 2 }).memberships.extend({ ...member, extend })
      await expect(call).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", retryAfter: 5 })
      expect(waits).toEqual([5000, 5000])
    })
  })

  it("without a `Retry-After` is tried again after waits that grow", () =>
    answering(
      (response, _, count) =>
        void (count < 4
          ? response.writeHead(503).end(failure(503, unavailable))
          : response.end(done)),
      async ({ received, url }) => {
        const { sleep, waits } = recordedSleep()
        const { memberships } = createClient({ baseUrl: url, token: "t", sleep })
        expect((await memberships.extend({ ...member, extend })).total).toBe(1)
        expect(received.length).toBe(4)
        for (const [retries, wait] of waits.entries()) {
          expect(wait).toBeGreaterThanOrEqual(250 * 2 ** retries)
          expect(wait).toBeLessThanOrEqual(500 * 2 ** retries)
        }
      },
    ))
})

describe("a connection that breaks after the server has performed the call", () => {
  it.each(Object.entries(stores))("has the same key sent again, on %s", async (_, store) => {
    await serving({ stores: store() }, async ({ client }) => {
      const keys: Array<string | null> = []
      const breaking: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        keys.push(new Headers(init?.headers).get("idempotency-key"))
        if (keys.length > 2) return response
        await response.text()
        throw new TypeError("fetch failed")
      }
      const { sleep, waits } = recordedSleep()
      const { memberships } = client({ fetch: breaking, sleep })
      const { data } = await memberships.extend({ ...member, extend })
      expect(data).toEqual({ new_end_date: extend })
      expect(waits.length).toBe(2)
      expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f-]{36}$/)))
      expect(new Set(keys).size).toBe(1)
      await memberships.extend({ ...member, extend })
      expect(new Set(keys).size).toBe(2)
    })
  })

  it("is a NETWORK_ERROR with its cause after the last attempt", () =>
    answering(
      (response) => void response.destroy(),
      async ({ received, url }) => {
        const { sleep } = recordedSleep()
        const { webhooks } = createClient({ baseUrl: url, token: "t", sleep, maxRetries: 1 })
        const error = await webhooks.list({ project_id: "p1" }).catch((caught: unknown) => caught)
        expect(isTenureError(error, "NETWORK_ERROR") && error.cause).toBeInstanceOf(Error)
        expect(received.map(({ headers }) => headers["idempotency-key"])).toEqual([
          undefined,
          undefined,
        ])
      },
    ))

  it("in the middle of the body is tried again", () =>
    answering(
      (response, _, count) => {
        if (count > 1) return void response.end(done)
        response.writeHead(200, { "content-length": done.length })
        response.write(done.slice(0, 10), () => response.destroy())
      },
      async ({ url }) => {
        const { sleep, waits } = recordedSleep()
        const { memberships } = createClient({ baseUrl: url, token: "t", sleep })
        expect((await memberships.extend({ ...member, extend })).total).toBe(1)
        expect(waits.length).toBe(1)
      },
    ))
})

describe("a call", () => {
  const never = () => {}

  it("of a server that does not answer in time is a TIMEOUT", () =>
    answering(never, async ({ received, url }) => {
      const { sleep, waits } = recordedSleep()
      const options = { baseUrl: url, token: "t", sleep, timeout: 50, maxRetries: 1 }
      const call = createClient(options).memberships.extend({ ...member, extend })
      await expect(call).rejects.toMatchObject({ code: "TIMEOUT", status: undefined })
      expect(received.length).toBe(2)
      expect(waits.length).toBe(1)
    }))

  it("whose signal is aborted before sends nothing", () =>
    answering(never, async ({ received, url }) => {
      const { memberships } = createClient({ baseUrl: url, token: "t" })
      const signal = AbortSignal.abort("not needed")
      await expect(memberships.extend({ ...member, extend }, { signal })).rejects.toBe("not needed")
      expect(received).toEqual([])
    }))

  it("whose signal is aborted on the way rejects with its reason", async () => {
    const controller = new AbortController()
    await answering(
      () => controller.abort("too late"),
      async ({ received, url }) => {
        const { memberships } = createClient({ baseUrl: url, token: "t" })
        const call = memberships.extend({ ...member, extend }, { signal: controller.signal })
        await expect(call).rejects.toBe("too late")
        expect(received.length).toBe(1)
      },
    )
  })

  it("whose signal is aborted while it waits rejects with its reason", async () => {
    const controller = new AbortController()
    await answering(
      (response) => void response.writeHead(503, { "retry-after": "60" }).end("busy"),
      async ({ received, url }) => {
        const { memberships } = createClient({
          baseUrl: url,
          token: "t",
          sleep: (millis, signal) => {
            const waiting = realSleep(millis, signal)
            controller.abort(`after ${millis} ms`)
            return waiting
          },
        })
        const call = memberships.extend({ ...member, extend }, { signal: controller.signal })
        await expect(call).rejects.toBe("after 60000 ms")
        expect(received.length).toBe(1)
      },
    )
  })

  it("is not repeated if it was refused", () =>
    serving({ stores: memory() }, async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      const { memberships } = client({ sleep })
      const call = memberships.extend({ ...member, user_id: "9", extend })
      await expect(call).rejects.toMatchObject({ code: "MEMBERSHIP_NOT_FOUND", status: 404 })
      expect(waits).toEqual([])
    }))

  it("has the key that it is given, and none if it is never repeated", () =>
    answering(
      (response) => void response.end(done),
      async ({ received, url }) => {
        const { memberships } = createClient({ baseUrl: url, token: "t", maxRetries: 0 })
        await memberships.extend({ ...member, extend })
        await memberships.extend({ ...member, extend }, { idempotencyKey: "order-1" })
        const keys = received.map(({ headers }) => headers["idempotency-key"])
        expect(keys).toEqual([undefined, "order-1"])
      },
    ))
})

describe("the default wait", () => {
  it("ends with the signal, and leaves no listener behind", async () => {
    const controller = new AbortController()
    const remove = vi.spyOn(controller.signal, "removeEventListener")
    await realSleep(0, controller.signal)
    expect(remove).toHaveBeenCalledOnce()
    const waiting = realSleep(2_147_483_647, controller.signal)
    controller.abort("enough")
    await expect(waiting).rejects.toBe("enough")
    await expect(realSleep(2_147_483_647, controller.signal)).rejects.toBe("enough")
  })
})

describe("the decision to try again", () => {
  const limits = { maxRetries: 3, maxWait: 60_000 }
  const codes = fc.constantFrom("NETWORK_ERROR", "INVALID_RESPONSE", "FORBIDDEN")
  const failures = fc.record({
    code: codes,
    message: fc.constant(""),
    status: fc.option(fc.constantFrom(200, 404, 429, 500, 502, 503, 504), { nil: undefined }),
    retryAfter: fc.option(fc.integer({ min: 0, max: 1000 }), { nil: undefined }),
  })

  it("never exceeds the number of retries or the longest wait, and never comes too early", () => {
    fc.assert(
      fc.property(
        failures,
        fc.nat(6),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failed, retries, random) => {
          const wait = retryDelay(new TenureError(failed), retries, limits, random)
          if (wait === undefined) return
          expect(retries).toBeLessThan(3)
          expect(wait).toBeLessThanOrEqual(60_000)
          if (failed.retryAfter !== undefined) expect(wait).toBe(failed.retryAfter * 1000)
          expect(
            failed.code === "NETWORK_ERROR" || [429, 502, 503, 504].includes(failed.status ?? 0),
          ).toBe(true)
        },
      ),
    )
  })

  it.each([
    [null, undefined],
    ["7", 7],
    ["0", 0],
    ["-1", undefined],
    ["soon", undefined],
    ["soon, GMT", undefined],
    ["Thu, 01 Jan 1970 00:00:30 GMT", 20],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("reads the Retry-After %j as %j", (header, seconds) => {
    expect(readRetryAfter(header, 10_000)).toBe(seconds)
  })
})
