import { createHash } from "node:crypto"
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

/** The fields without the name of the partition, which depends on the key. */
const fieldsWithoutPartition = async (...given: Parameters<typeof lastFields>) => {
  const fields = await lastFields(...given)
  return fields.map(([name, value]) => [name, value.replace(/;pk=:[\w+/]{8}:$/, ";pk")])
}

const policy = ["RateLimit-Policy", '"key";q=100;w=60, "burst";q=20;w=1, "address";q=300;w=60']

describe("the fields of the IETF draft", () => {
  it("are not sent by default", async () => {
    expect(await fieldsWithoutPartition(1, {})).toEqual([])
  })

  it("tell the policies, what is left, and when all of it is back", async () => {
    expect(await fieldsWithoutPartition(1, { draftFields: true })).toEqual([
      policy,
      ["RateLimit", '"key";r=99;t=1;pk'],
    ])
    expect(await fieldsWithoutPartition(1, { draftFields: true }, false)).toEqual([
      policy,
      ["RateLimit", '"address";r=299;t=1;pk'],
    ])
  })

  it("of a refusal tell the bucket that refuses", async () => {
    expect(await fieldsWithoutPartition(25, { draftFields: true })).toEqual([
      policy,
      ["RateLimit", '"burst";r=0;t=1;pk'],
    ])
  })

  it("tell the wait for one request more, which takes no longer than the window", async () => {
    const perKey = { limit: 1, window: "1 minute" } as const
    const burst = { limit: 7, window: "1 minute" } as const
    for (const requests of [1, 2]) {
      expect(await fieldsWithoutPartition(requests, { draftFields: true, perKey, burst })).toEqual([
        ["RateLimit-Policy", '"key";q=1;w=60, "burst";q=7;w=60, "address";q=300;w=60'],
        ["RateLimit", '"key";r=0;t=60;pk'],
      ])
    }
  })

  it("tell no policy of addresses if there is none", async () => {
    const [[, value] = []] = await fieldsWithoutPartition(1, {
      draftFields: true,
      perAddress: false,
    })
    expect(value).toBe('"key";q=100;w=60, "burst";q=20;w=1')
  })

  it("name the partition to its client alone", async () => {
    const [, byAddress] = await lastFields(1, { draftFields: true }, false)
    const [, again] = await lastFields(1, { draftFields: true }, false)
    const [, byKey] = await lastFields(1, { draftFields: true })
    const [, byOtherKey] = await lastFields(1, { draftFields: true })
    const digest = createHash("sha256").update("192.0.2.1").digest().subarray(0, 6)
    expect(byAddress?.[1]).toBe(`"address";r=299;t=1;pk=:${digest.toString("base64")}:`)
    expect(again).toEqual(byAddress)
    expect(byKey).not.toEqual(byOtherKey)
  })
})
