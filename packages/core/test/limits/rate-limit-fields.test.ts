import { memory } from "@tenure/memory"
import { describe, expect, it } from "vitest"
import { emptyBody } from "../../src/http/request.ts"
import type { RateLimiterOptions } from "../../src/limits/rate-limiter.ts"
import { createTenure } from "../../src/tenure.ts"

const fieldsOf = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers).filter(([name]) => name.startsWith("RateLimit"))

/** Sends a number of requests, and returns the fields of the last response. */
const lastFields = async (requests: number, rateLimits: RateLimiterOptions, hasKey = true) => {
  const tenure = await createTenure({ stores: memory(), rateLimits })
  await tenure.memberships.createProject("p1")
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const send = () =>
    tenure.handle({
      method: "GET",
      path: "/v2/projects",
      headers: hasKey ? { authorization: `Bearer ${token}` } : {},
      body: emptyBody,
      remoteAddress: "192.0.2.1",
    })
  const responses = await Promise.all(Array.from({ length: requests }, send))
  await tenure.close()
  return fieldsOf(responses.at(-1)?.headers ?? {})
}

const policy = ["RateLimit-Policy", '"key";q=100;w=60, "burst";q=20;w=1, "address";q=300;w=60']

describe("the fields of the IETF draft", () => {
  it("are not sent by default", async () => {
    expect(await lastFields(1, {})).toEqual([])
  })

  it("tell the policies, what is left, and when all of it is back", async () => {
    expect(await lastFields(1, { draftFields: true })).toEqual([
      policy,
      ["RateLimit", '"key";r=99;t=1'],
    ])
    expect(await lastFields(1, { draftFields: true }, false)).toEqual([
      policy,
      ["RateLimit", '"address";r=299;t=1'],
    ])
  })

  it("of a refusal tell the bucket that refuses", async () => {
    expect(await lastFields(25, { draftFields: true })).toEqual([
      policy,
      ["RateLimit", '"burst";r=0;t=1'],
    ])
  })

  it("tell the wait for one request more, which takes no longer than the window", async () => {
    const perKey = { limit: 1, window: "1 minute" } as const
    const burst = { limit: 7, window: "1 minute" } as const
    for (const requests of [1, 2]) {
      expect(await lastFields(requests, { draftFields: true, perKey, burst })).toEqual([
        ["RateLimit-Policy", '"key";q=1;w=60, "burst";q=7;w=60, "address";q=300;w=60'],
        ["RateLimit", '"key";r=0;t=60'],
      ])
    }
  })

  it("tell no policy of addresses if there is none", async () => {
    const [[, value] = []] = await lastFields(1, { draftFields: true, perAddress: false })
    expect(value).toBe('"key";q=100;w=60, "burst";q=20;w=1')
  })
})
