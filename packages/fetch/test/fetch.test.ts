import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type RequestInfo, fetchHandler } from "../src/index.ts"

const origin = "https://backend.example"
const path = "/v2/projects/p1/memberships/1001/extend"
const body = JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" })

let tenure: Tenure
let token: string

beforeEach(async () => {
  tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_000_000_000_000 })
  token = (await tenure.apiKeys.issue({ projects: ["p1"] })).token
})

afterEach(() => tenure.close())

const request = (init: RequestInit = {}): Request =>
  new Request(`${origin}${path}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
    ...init,
  })

const answer = async (given: Request, info?: RequestInfo) => {
  const response = await fetchHandler(tenure)(given, info)
  const content = JSON.parse((await response?.text()) ?? "null")
  return { status: response?.status, headers: response?.headers, content }
}

/** A stream that counts the chunks that were read, and records whether it was cancelled. */
const counted = (chunks: number, chunk: Uint8Array) => {
  let taken = 0
  let isCancelled = false
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        taken++
        if (taken > chunks) controller.close()
        else controller.enqueue(chunk)
      },
      cancel: () => {
        isCancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, taken: () => taken, isCancelled: () => isCancelled }
}

describe("a web request", () => {
  it("for the API is answered", async () => {
    const { content, headers, status } = await answer(request())
    expect([status, headers?.get("content-type")]).toEqual([200, "application/json"])
    expect(content).toMatchObject({ ok: true, path, total: 1 })
  })

  it("outside the API returns undefined synchronously", () => {
    expect(fetchHandler(tenure)(new Request(`${origin}/`))).toBeUndefined()
    expect(fetchHandler(tenure)(new Request(`${origin}/v2?x=${path}`))).toBeUndefined()
  })

  it("without an address shares the limits of all such requests", async () => {
    const remaining = async (info?: RequestInfo) =>
      (await answer(request({ headers: {} }), info)).headers?.get("x-ratelimit-remaining")
    expect([await remaining(), await remaining()]).toEqual(["299", "298"])
    expect(await remaining({ remoteAddress: "203.0.113.7" })).toBe("299")
  })

  it("is answered with the body that the host has parsed", async () => {
    const given = request()
    const parsedBody: unknown = await given.json()
    expect((await answer(given, { parsedBody })).status).toBe(200)
  })

  it("is answered 400 if its body has been read", async () => {
    const given = request()
    await given.text()
    const { content, status } = await answer(given)
    expect(status).toBe(400)
    expect(content.error.message).toContain("read before")
  })

  it("with two tokens is answered 400", async () => {
    const headers = new Headers(request().headers)
    headers.append("authorization", "Bearer other")
    const { content } = await answer(request({ headers }))
    expect(content).toMatchObject({ code: 400, error: { error_code: "MALFORMED_REQUEST" } })
  })

  it("is authenticated by the host", async () => {
    const handler = fetchHandler(tenure, {
      authenticate: ({ headers }) =>
        headers.get("cookie") === "session=1" ? { keyId: "alice", projects: ["p1"] } : undefined,
    })
    const list = (cookie: string) =>
      handler(
        new Request(`${origin}/v2/projects/p1/integrations/webhooks`, { headers: { cookie } }),
      )
    expect((await list("session=1"))?.status).toBe(200)
    expect((await list("session=2"))?.status).toBe(401)
  })
})

describe("a body", () => {
  it("is read up to the limit, and then cancelled", async () => {
    const { isCancelled, stream, taken } = counted(1_000_000, new Uint8Array(1000))
    const { status } = await answer(request({ body: stream, duplex: "half" }))
    expect(status).toBe(413)
    expect(taken()).toBeLessThan(70)
    expect(isCancelled()).toBe(true)
  })

  it("may arrive in many chunks", async () => {
    const bytes = new TextEncoder().encode(body)
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    expect((await answer(request({ body: stream, duplex: "half" }))).status).toBe(200)
  })

  it("that ends early is answered 400, and changes nothing", async () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('{"extend":'))
        controller.error(new Error("connection reset"))
      },
    })
    const { content, status } = await answer(request({ body: stream, duplex: "half" }))
    expect([status, content.error.error_code]).toEqual([400, "MALFORMED_REQUEST"])
    const { endDate } = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
    expect(endDate).toBe(1_000_000_000_000)
  })
})
