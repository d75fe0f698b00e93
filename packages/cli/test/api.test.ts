/** Keeping to a server's limits. */

import { expect, it } from "vitest"
import { pauseAfterResponse, rateLimited } from "../src/support/api.ts"

const now = 1_000_000_000_000

const headersOf = (limit: number, remaining: number, secondsToReset: number) =>
  new Headers({
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(now / 1000 + secondsToReset),
  })

it.each([
  ["while requests are left", headersOf(100, 50, 30), 0],
  ["as long as one more request takes to come back", headersOf(100, 0, 60), 600],
  ["a little longer for the requests that are left", headersOf(100, 2, 60), 60_000 / 98],
  ["where there are no limits", new Headers(), 0],
  ["for a limit of nothing", headersOf(0, 0, 60), 0],
  ["for a time that is over", headersOf(100, 0, -60), 0],
  ["for limits that make no sense", new Headers({ "x-ratelimit-limit": "many" }), 0],
])("waits %s", (_, headers, millis) => {
  expect(pauseAfterResponse(headers, now)).toBe(millis)
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
