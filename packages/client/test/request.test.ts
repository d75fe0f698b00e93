import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { ClientOptions } from "../src/create-client.ts"
import { retryDelay, sleep as realSleep } from "../src/request.ts"
import { TenureError, isTenureError, readRetryAfter } from "../src/response.ts"
import { answering, errorOf, failure, losing, recordedSleep, serving, success } from "./support.ts"

const extend = "2099-01-01T00:00:00.000Z"
const change = { project_id: "p1", user_id: "1001", extend }

afterEach(() => void vi.useRealTimers())

describe("429", () => {
  it("is waited out exactly: the next attempt is admitted", () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] })
    const rateLimits = { perKey: { limit: 1, window: 7000 } }
    return serving(
      async ({ client }) => {
        const waits: Array<number> = []
        const sleep = async (millis: number) => {
          waits.push(millis)
          await vi.advanceTimersByTimeAsync(millis)
        }
        const { memberships } = client({ sleep })
        for (let call = 0; call < 3; call++) await memberships.extend(change)
        expect(waits).toEqual([7000, 7000])
      },
      { rateLimits },
    )
  })

  it("with a longer wait than `maxWait` is an error at once, which says how long", () =>
    serving(
      async ({ client }) => {
        const { sleep, waits } = recordedSleep()
        const { memberships } = client({ sleep, maxWait: 59_999 })
        await memberships.extend(change)
        await expect(memberships.extend(change)).rejects.toMatchObject({
          code: "RATE_LIMIT_EXCEEDED",
          status: 429,
          retryAfter: 60,
          problems: [{ retry_after: 60 }],
        })
        expect(waits).toEqual([])
      },
      { rateLimits: { perKey: { limit: 1, window: 60_000 } } },
    ))
})

const done = success({ new_end_date: extend }, { total: 1 })

describe("503", () => {
  it("of a server whose database is down is tried again with the wait that it asks for", () =>
    serving(async ({ client, tenure }) => {
      const { sleep, waits } = recordedSleep()
      // A closed Tenure answers 503.
      await tenure.close()
      const call = client({ sleep, maxRetries: 2 }).memberships.extend(change)
      await expect(call).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", retryAfter: 5 })
      expect(waits).toEqual([5000, 5000])
    }))

  it("without a `Retry-After` is tried again after waits that grow", () => {
    const unavailable = { error_code: "SERVICE_UNAVAILABLE", message: "Not now." }
    return answering(
      (response, _, count) =>
        void (count < 4
          ? response.writeHead(503).end(failure(503, unavailable))
          : response.end(done)),
      async ({ client, received }) => {
        const { sleep, waits } = recordedSleep()
        expect((await client({ sleep }).memberships.extend(change)).total).toBe(1)
        expect(received.length).toBe(4)
        for (const [retries, wait] of waits.entries()) {
          expect(wait).toBeGreaterThanOrEqual(250 * 2 ** retries)
          expect(wait).toBeLessThanOrEqual(500 * 2 ** retries)
        }
      },
    )
  })
})

describe("a connection that breaks after the server has performed the call", () => {
  it("has the same key sent again", () =>
    serving(async ({ client }) => {
      const { fetch, keys } = losing(2)
      const { sleep, waits } = recordedSleep()
      const { memberships } = client({ fetch, sleep })
      expect((await memberships.extend(change)).data).toEqual({ new_end_date: extend })
      expect(waits.length).toBe(2)
      expect(keys).toEqual(Array(3).fill(expect.stringMatching(/^[0-9a-f-]{36}$/)))
      expect(new Set(keys).size).toBe(1)
      await memberships.extend(change)
      expect(new Set(keys).size).toBe(2)
    }))

  it("is a NETWORK_ERROR with its cause after the last attempt", () =>
    answering(
      (response) => void response.destroy(),
      async ({ client, received }) => {
        const { webhooks } = client({ sleep: recordedSleep().sleep, maxRetries: 1 })
        const error = await errorOf(webhooks.list({ project_id: "p1" }))
        expect(isTenureError(error, "NETWORK_ERROR") && error.cause).toBeInstanceOf(Error)
        const keys = received.map(({ headers }) => headers["idempotency-key"])
        expect(keys).toEqual([undefined, undefined])
      },
    ))

  it("in the middle of the body is tried again", () =>
    answering(
      (response, _, count) => {
        if (count > 1) return void response.end(done)
        response.writeHead(200, { "content-length": done.length })
        response.write(done.slice(0, 10), () => response.destroy())
      },
      async ({ client }) => {
        const { sleep, waits } = recordedSleep()
        expect((await client({ sleep }).memberships.extend(change)).total).toBe(1)
        expect(waits.length).toBe(1)
      },
    ))
})

describe("a call", () => {
  const never = () => {}

  it("of a server that does not answer in time is a TIMEOUT", () =>
    answering(never, async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      // Counts requests when sent, because a busy server may not receive them in time.
      const counted = vi.fn<typeof fetch>((...request) => fetch(...request))
      const call = client({ sleep, timeout: 50, maxRetries: 1, fetch: counted })
      const extended = call.memberships.extend(change)
      await expect(extended).rejects.toMatchObject({ code: "TIMEOUT", status: undefined })
      expect([counted.mock.calls.length, waits.length]).toEqual([2, 1])
    }))

  type Sleep = NonNullable<ClientOptions["sleep"]>

  it.each<{
    readonly when: string
    readonly answer: (abort: (reason: string) => void) => Parameters<typeof answering>[0]
    readonly sleep?: (abort: (reason: string) => void) => Sleep
    readonly reason: string
    readonly sent: number
  }>([
    { when: "before", answer: () => never, reason: "early", sent: 0 },
    { when: "on the way", answer: (abort) => () => abort("late"), reason: "late", sent: 1 },
    {
      when: "while it waits",
      answer: () => (response) => void response.writeHead(503, { "retry-after": "60" }).end("busy"),
      sleep: (abort) => (millis, signal) => {
        const waiting = realSleep(millis, signal)
        abort(`after ${millis} ms`)
        return waiting
      },
      reason: "after 60000 ms",
      sent: 1,
    },
  ])("whose signal is aborted $when rejects with its reason", ({ answer, ...given }) => {
    const controller = new AbortController()
    const { signal } = controller
    const abort = (reason: string) => controller.abort(reason)
    return answering(answer(abort), async ({ client, received }) => {
      if (given.sent === 0) abort(given.reason)
      const { memberships } = client({ sleep: given.sleep?.(abort) ?? realSleep })
      await expect(memberships.extend(change, { signal })).rejects.toBe(given.reason)
      expect(received.length).toBe(given.sent)
    })
  })

  it("is not repeated if it was refused", () =>
    serving(async ({ client }) => {
      const { sleep, waits } = recordedSleep()
      const call = client({ sleep }).memberships.extend({ ...change, user_id: "9" })
      await expect(call).rejects.toMatchObject({ code: "MEMBERSHIP_NOT_FOUND", status: 404 })
      expect(waits).toEqual([])
    }))

  it("has the key that it is given, and none if it is never repeated", () =>
    answering(
      (response) => void response.end(done),
      async ({ client, received }) => {
        const { memberships } = client({ maxRetries: 0 })
        await memberships.extend(change)
        await memberships.extend(change, { idempotencyKey: "order-1" })
        const keys = received.map(({ headers }) => headers["idempotency-key"])
        expect(keys).toEqual([undefined, "order-1"])
      },
    ))
})

it("the default wait ends with the signal, and leaves no listener behind", async () => {
  const controller = new AbortController()
  const remove = vi.spyOn(controller.signal, "removeEventListener")
  await realSleep(0, controller.signal)
  expect(remove).toHaveBeenCalledOnce()
  const waiting = realSleep(2_147_483_647, controller.signal)
  controller.abort("enough")
  await expect(waiting).rejects.toBe("enough")
  await expect(realSleep(2_147_483_647, controller.signal)).rejects.toBe("enough")
})

describe("the decision to try again", () => {
  const failures = fc.record({
    code: fc.constantFrom("NETWORK_ERROR", "INVALID_RESPONSE", "FORBIDDEN"),
    message: fc.constant(""),
    status: fc.option(fc.constantFrom(200, 404, 429, 500, 502, 503, 504), { nil: undefined }),
    retryAfter: fc.option(fc.integer({ min: 0, max: 1000 }), { nil: undefined }),
  })
  const randoms = fc.double({ min: 0, max: 1, noNaN: true })

  it("never exceeds the number of retries or the longest wait, and never comes too early", () => {
    fc.assert(
      fc.property(failures, fc.nat(6), randoms, (failed, retries, random) => {
        const limits = { maxRetries: 3, maxWait: 60_000 }
        const wait = retryDelay(new TenureError(failed), retries, limits, random)
        if (wait === undefined) return
        const { code, retryAfter, status = 0 } = failed
        expect(retries).toBeLessThan(3)
        expect(wait).toBeLessThanOrEqual(60_000)
        if (retryAfter !== undefined) expect(wait).toBe(retryAfter * 1000)
        expect(code === "NETWORK_ERROR" || [429, 502, 503, 504].includes(status)).toBe(true)
      }),
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
