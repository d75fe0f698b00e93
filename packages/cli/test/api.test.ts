/** Keeping to the limits of a server. */

import { expect, it } from "vitest"
import { pauseAfterResponse, rateLimited } from "../src/support/api.ts"

const now = 1_000_000_000_000

const headersOf = (limit: number, remaining: number, secondsToReset: number) =>
  new Headers({
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(now / 1000 + secondsToReset),
  })

it("does not wait while requests are left", () => {
  expect(pauseAfterResponse(headersOf(100, 50, 30), now)).toBe(0)
})

it("waits as long as one more request takes to come back", () => {
  expect(pauseAfterResponse(headersOf(100, 0, 60), now)).toBe(600)
  expect(pauseAfterResponse(headersOf(100, 2, 60), now)).toBeCloseTo(612, 0)
})

it("does not wait for limits that are not there, or make no sense", () => {
  expect(pauseAfterResponse(new Headers(), now)).toBe(0)
  expect(pauseAfterResponse(headersOf(0, 0, 60), now)).toBe(0)
  expect(pauseAfterResponse(headersOf(100, 0, -60), now)).toBe(0)
  expect(pauseAfterResponse(new Headers({ "x-ratelimit-limit": "many" }), now)).toBe(0)
})

it("does not wait for a request that is aborted", async () => {
  const spent = new Headers({
    "x-ratelimit-limit": "100",
    "x-ratelimit-remaining": "0",
    "x-ratelimit-reset": String(Date.now() / 1000 + 3600 * 100),
  })
  const fetch = rateLimited(() => Promise.resolve(new Response(null, { headers: spent })))
  await fetch("http://tenure.invalid")
  await expect(fetch("http://tenure.invalid", { signal: AbortSignal.abort() })).rejects.toThrow(
    "aborted",
  )
})
