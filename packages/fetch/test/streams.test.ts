import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { fetchHandler, toWebStream } from "../src/index.ts"

/** A stream of a text again and again, of which a test sees how often it was taken. */
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
  let tenure: Tenure
  beforeEach(async () => {
    tenure = await createTenure({ stores: memory() })
    await tenure.memberships.createProject("p1")
  })
  afterEach(() => tenure.close())

  it("is a stream, which ends with the request", async () => {
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const leaving = new AbortController()
    const url = "https://backend.example/v2/projects/p1/events"
    const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" }
    const request = new Request(url, { headers, signal: leaving.signal })
    const response = await fetchHandler(tenure)(request)
    const reader = response?.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toMatch(/^retry: \d+\n\nid: /)
    leaving.abort()
    expect(await reader?.read()).toEqual({ done: true, value: undefined })
  })

  it("does not keep a poll waiting whose client has gone", async () => {
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const leaving = new AbortController()
    const url = "https://backend.example/v2/projects/p1/events?wait=20"
    const headers = { authorization: `Bearer ${token}` }
    const response = fetchHandler(tenure)(new Request(url, { headers, signal: leaving.signal }))
    await new Promise((resolve) => setImmediate(resolve))
    leaving.abort()
    expect(await (await response)?.json()).toMatchObject({ data: [], next: expect.any(String) })
  })
})
