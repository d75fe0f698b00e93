/** Rate limits. */

import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect } from "vitest"
import { type Incoming, expectFailure, expectHeaders, send, uuid } from "../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "./harness.ts"

const many = { limit: 1_000_000, window: "1 minute" } as const

const statuses = (responses: ReadonlyArray<Incoming>): ReadonlyArray<number> =>
  responses.map(({ status }) => status)

/** Sends requests one after another. */
const sequence = async (times: number, { call }: Fixture): Promise<ReadonlyArray<Incoming>> => {
  const responses: Array<Incoming> = []
  for (let count = 0; count < times; count++) responses.push(await call("GET", webhooks))
  return responses
}

/**
 * Expects a documented refusal, with `code` instead of `error_code` and without `ok`. Returns the wait.
 */
const expectRefusal = (response: Incoming, limit: number): number => {
  expectHeaders(response)
  expect(response.status).toBe(429)
  const retryAfter = Number(response.headers["retry-after"])
  expect(Number.isInteger(retryAfter) && retryAfter >= 1).toBe(true)
  expect(response.headers).toMatchObject({
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": "0",
  })
  expect(response.body).toStrictEqual({
    request_id: expect.stringMatching(uuid),
    method: "GET",
    path: webhooks,
    code: 429,
    error: {
      message: expect.stringMatching(/./),
      code: "RATE_LIMIT_EXCEEDED",
      retry_after: retryAfter,
    },
  })
  return retryAfter
}

/** Declares the tests for what is the same on every host. The core tests the rules with a clock. */
export const bucketsSuite = (test: ServerTest): void => {
  describe("rate limits", () => {
    test.with({
      rateLimits: { perKey: { limit: 100, window: "1 hour" }, perAddress: many, burst: many },
    })("refuse the 101st request of a key in a minute", async (fixture) => {
      const responses = await sequence(101, fixture)
      expect(responses[0]?.headers).toMatchObject({
        "x-ratelimit-limit": "100",
        "x-ratelimit-remaining": "99",
      })
      const refused = responses.at(-1) ?? expect.fail("there are no responses")
      expect(new Set(statuses(responses.slice(0, -1)))).toEqual(new Set([200]))
      expectRefusal(refused, 100)
    })

    test.with({ rateLimits: {} })(
      "refuse the 21st request of a key in a second, and admit it after the wait they return",
      async ({ call }) => {
        const start = performance.now()
        const requests = Array.from({ length: 60 }, () => call("GET", webhooks))
        const refused = (await Promise.all(requests)).filter(({ status }) => status === 429)
        // A token returns each 50 ms while the requests are sent.
        const returned = Math.ceil((performance.now() - start) / 50)
        expect(refused.length).toBeGreaterThanOrEqual(40 - returned)
        expect(refused.length).toBeLessThanOrEqual(40)
        for (const response of refused) expect(expectRefusal(response, 20)).toBe(1)
        // The test is about this wait.
        await sleep(1000)
        expect((await call("GET", webhooks)).status).toBe(200)
      },
    )

    test.with({
      rateLimits: { perKey: many, perAddress: { limit: 300, window: "24 hours" }, burst: many },
    })(
      "refuse the 301st request of an address in a minute, with any token or none",
      async ({ call, otherToken, url }) => {
        const kinds = [
          () => call("GET", webhooks),
          () => call("GET", webhooks, { token: otherToken }),
          () => call("GET", webhooks, { token: "guessed" }),
          () => send(url, { path: webhooks }),
          () => send(url, { path: webhooks, headers: { authorization: "Basic bm9uZQ==" } }),
        ]
        for (let round = 0; round < 60; round++) {
          for (const kind of kinds) expect((await kind()).status).not.toBe(429)
        }
        for (const kind of kinds) expectRefusal(await kind(), 300)
      },
    )

    test.with({
      rateLimits: { perKey: { limit: 1, window: "1 hour" }, perAddress: many, burst: many },
    })("suspend a key after 50 refusals, and return how long", async (fixture) => {
      const responses = await sequence(52, fixture)
      const waits = responses.slice(1).map((response) => expectRefusal(response, 1))
      // Without the suspension, the wait would be an hour.
      expect(waits[48]).toBeGreaterThan(3500)
      expect(waits[49]).toBe(600)
      expect(waits[50]).toBeGreaterThan(590)
      expect(waits[50]).toBeLessThanOrEqual(600)
      const path = webhooks.replace("p1", "p2")
      const other = await fixture.call("GET", path, { token: fixture.otherToken })
      expect(other.status).toBe(200)
    })
  })
}

/** Declares the tests for addresses, and for the headers of all responses. */
export const limitsSuite = (test: ServerTest): void => {
  const from = ({ url }: Fixture, address: string) =>
    send(url, { path: webhooks, headers: { "x-forwarded-for": address } })

  describe("rate limits", () => {
    test.with({
      rateLimits: {
        perKey: { limit: 9, window: "1 hour" },
        perAddress: { limit: 100, window: "1 hour", capacity: 101 },
        burst: many,
      },
    })("are in the headers of every response, whatever its status", async ({ call, url }) => {
      const responses = [
        await call("GET", webhooks),
        await send(url, { path: webhooks }),
        await call("GET", "/v2/projects/%zz/integrations/webhooks"),
        await call("PUT", webhooks),
        await call("POST", webhooks, { body: "{" }),
        await call("POST", webhooks, { body: "x".repeat(70_000) }),
        await call("POST", webhooks, { body: "{}", headers: { "content-type": "text/plain" } }),
        await call("POST", webhooks, { body: {} }),
        await call("GET", "/v2/projects/p9/integrations/webhooks"),
        await call("HEAD", webhooks),
        await call("GET", webhooks),
      ]
      expect(statuses(responses)).toEqual([200, 401, 400, 405, 400, 413, 415, 422, 404, 405, 429])
      for (const response of responses) expectHeaders(response)
      const remaining = responses.map(({ headers }) => headers["x-ratelimit-remaining"])
      expect(remaining).toEqual(["8", "99", "7", "6", "5", "4", "3", "2", "1", "0", "0"])
    })

    test.with({
      trustedProxies: ["127.0.0.0/8"],
      rateLimits: { perAddress: { limit: 1, window: "1 hour" } },
    })("count clients behind a trusted proxy by the address that it forwards", async (fixture) => {
      for (const [address, status] of [
        ["203.0.113.1", 401],
        ["6.6.6.6, 203.0.113.1", 429],
        ["203.0.113.2", 401],
        ["2001:db8::1", 401],
        ["2001:db8::2", 429],
      ] as const) {
        expect((await from(fixture, address)).status).toBe(status)
      }
    })

    test.with({ rateLimits: { perAddress: { limit: 1, window: "1 hour" } } })(
      "ignore the forwarded address from an untrusted client",
      async (fixture) => {
        expect((await from(fixture, "203.0.113.1")).status).toBe(401)
        expect((await from(fixture, "203.0.113.2")).status).toBe(429)
      },
    )

    test("are in every response, also once Tenure is closed", async ({ call, tenure, url }) => {
      if (tenure.close === undefined) return
      await tenure.close()
      const closed = ["GET", "PATCH", "OPTIONS"].map(async (method) =>
        expectFailure(await call(method, webhooks), 503, "SERVICE_UNAVAILABLE"),
      )
      await Promise.all(closed)
      for (const response of [
        await send(url, { path: webhooks }),
        await call("HEAD", webhooks),
        await call("POST", webhooks, { body: "{" }),
        await call("POST", webhooks, { body: "x".repeat(100_000) }),
        await call("POST", webhooks, { body: "{}", headers: { "content-encoding": "gzip" } }),
      ]) {
        expectHeaders(response)
        expect(response.status).toBe(503)
        expect(Number(response.headers["retry-after"])).toBeGreaterThanOrEqual(1)
        expect(response.headers["x-ratelimit-remaining"]).toBe("0")
      }
    })
  })
}
