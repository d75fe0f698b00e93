import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type RequestInfo, fetchHandler, toWebStream } from "../src/index.ts"

const origin = "https://backend.example"
const path = "/v2/projects/p1/memberships/1001/extend"
const body = JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" })

let tenure: Tenure
let token: string

beforeEach(async () => {
  // No token comes back during a test.
  const rateLimits = { perAddress: { limit: 300, window: "1 day" } } as const
  tenure = await createTenure({ stores: memory(), rateLimits })
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
  const streamed = (stream: ReadableStream<Uint8Array>) =>
    answer(request({ body: stream, duplex: "half" }))

  it("is read up to the limit, and then cancelled", async () => {
    const seen = { taken: 0, isCancelled: false }
    const stream = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          seen.taken++
          controller.enqueue(new Uint8Array(1000))
        },
        cancel: () => {
          seen.isCancelled = true
        },
      },
      { highWaterMark: 0 },
    )
    const { status } = await streamed(stream)
    expect(status).toBe(413)
    expect(seen.taken).toBeLessThan(70)
    expect(seen.isCancelled).toBe(true)
  })

  it.each([
    ["of a known length", path, { "content-length": "1000000" }, 413],
    ["of an unknown length", path, {}, 413],
    ["of an import", "/v2/projects/p1/memberships/import", {}, 403],
  ])("%s is read to its end on Bun, if the client asks to close", async (_, at, length, status) => {
    vi.resetModules()
    vi.stubGlobal("navigator", { userAgent: "Bun/1.4.5" })
    const { fetchHandler: onBun } = await import("../src/index.ts")
    vi.unstubAllGlobals()
    const ended: Array<string> = []
    for (const connection of ["keep-alive", "Close"]) {
      let left = 1000
      const stream = new ReadableStream<Uint8Array>(
        {
          pull: (controller) => {
            if (left-- > 0) return controller.enqueue(new Uint8Array(1000))
            ended.push(connection)
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
      const headers = { authorization: `Bearer ${token}`, connection, ...length }
      const method = status === 403 ? "POST" : "PATCH"
      const init = { method, headers, body: stream, duplex: "half" } as const
      expect((await onBun(tenure)(new Request(`${origin}${at}`, init)))?.status).toBe(status)
    }
    expect(ended).toEqual(["Close"])
  })

  it("may arrive in many chunks", async () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        for (const byte of new TextEncoder().encode(body)) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    const { status } = await streamed(stream)
    expect(status).toBe(200)
  })

  it("that ends early is answered 400, and changes nothing", async () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('{"extend":'))
        controller.error(new Error("connection reset"))
      },
    })
    const { content, status } = await streamed(stream)
    expect([status, content.error.error_code]).toEqual([400, "MALFORMED_REQUEST"])
    const { endDate } = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
    expect(endDate).toBe(1_000_000_000_000)
  })
})

/** Makes an endless stream that repeats a text, and counts the reads. */
const endless = () => {
  const seen = { taken: 0, isReturned: false }
  const texts: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        seen.taken++
        return { value: "ü" }
      },
      return: async () => {
        seen.isReturned = true
        return { done: true, value: undefined }
      },
    }),
  }
  return { texts, seen }
}

describe("a stream", () => {
  afterEach(() => void vi.useRealTimers())

  it("is read no further than its client, and ends when it cancels", async () => {
    const { seen, texts } = endless()
    const reader = toWebStream(texts).getReader()
    for (let count = 1; count < 4; count++) {
      expect(new TextDecoder().decode((await reader.read()).value)).toBe("ü")
      await new Promise((resolve) => setImmediate(resolve))
      expect(seen).toEqual({ taken: count, isReturned: false })
    }
    await reader.cancel()
    expect(seen.isReturned).toBe(true)
  })

  it("breaks off when nobody reads for a minute", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const { seen, texts } = endless()
    const reader = toWebStream(texts).getReader()
    for (let count = 0; count < 3; count++) {
      await reader.read()
      await vi.advanceTimersByTimeAsync(50_000)
    }
    await reader.read()
    await vi.advanceTimersByTimeAsync(60_000)
    await expect(reader.read()).rejects.toThrow("does not read")
    expect(seen).toEqual({ taken: 4, isReturned: true })
  })
})

describe("the feed", () => {
  /** Makes a request, and a function to disconnect its client. */
  const asking = (query: string, accept: string) => {
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${token}`, accept }
    const url = `${origin}/v2/projects/p1/events${query}`
    const response = fetchHandler(tenure)(new Request(url, { headers, signal: leaving.signal }))
    return { response, leave: () => leaving.abort() }
  }

  it("is a stream, which ends with the request", async () => {
    const { leave, response } = asking("", "text/event-stream")
    const reader = (await response)?.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toMatch(/^retry: \d+\n\nid: /)
    leave()
    expect(await reader?.read()).toEqual({ done: true, value: undefined })
  })

  it("does not keep a poll waiting whose client has gone", async () => {
    const { leave, response } = asking("?wait=20", "application/json")
    await new Promise((resolve) => setImmediate(resolve))
    leave()
    expect(await (await response)?.json()).toMatchObject({ data: [], next: expect.any(String) })
  })
})

describe("the handler", () => {
  it.each([
    ['{"authentication":true}', "authentication"],
    ['{"authenticate":true}', "authenticate"],
    ["null", "options"],
  ])("refuses the options %s by name", (options, field) => {
    expect(() => fetchHandler(tenure, JSON.parse(options))).toThrow(
      expect.objectContaining({ _tag: "InvalidInput", field }),
    )
  })

  it("tells of a missing await in a clear error", async () => {
    const promise = createTenure({ stores: memory() })
    // @ts-expect-error: plain JavaScript does not notice.
    expect(() => fetchHandler(promise)).toThrow(
      new TypeError("tenure is a promise: write `await createTenure(…)`"),
    )
    // @ts-expect-error: plain JavaScript does not notice.
    expect(() => fetchHandler()).toThrow(TypeError)
    await (await promise).close()
  })
})
