/** Responses that are streams. */

import { EventEmitter, once } from "node:events"
import { createServer } from "node:http"
import * as Http2 from "node:http2"
import type { Socket } from "node:net"
import { text } from "node:stream/consumers"
import type { ApiRequest, TextStream } from "@tenure/core/adapter"
import { parseResponses } from "@tenure/testing/conformance"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { serve } from "../src/server.ts"
import { toReadable } from "../src/streams.ts"
import { answering, connect, lines, listenDuringTest, ok, serveDuringTest } from "./support.ts"

const get = lines("GET /stream HTTP/1.1", "Host: a")
const other = lines("GET /other HTTP/1.1", "Host: a")

/** A stream that repeats a text. A test sees how often it was taken. */
const endless = (value: string, most = Infinity) => {
  const seen = { taken: 0, isReturned: false }
  const gone = new AbortController()
  const ending = new Promise<void>((resolve) =>
    gone.signal.addEventListener("abort", () => resolve()),
  )
  const next = async () => {
    if (seen.taken >= most) await ending
    if (gone.signal.aborted) return undefined
    seen.taken++
    return value
  }
  const texts: TextStream = {
    receive: (receiver) => void next().then(receiver),
    close: () => {
      seen.isReturned = true
      gone.abort()
    },
    [Symbol.asyncIterator]: () => expect.fail("Node needs no promises"),
  }
  return { texts, seen, end: () => gone.abort() }
}

/** A Tenure that answers one path with a stream, which ends with the request's signal. */
const streaming = ({ end, texts }: ReturnType<typeof endless>) =>
  answering(async ({ path, signal }: ApiRequest) => {
    if (path !== "/stream") return ok
    const departure = signal?.()
    departure?.addEventListener("abort", end)
    if (departure?.aborted === true) end()
    return { status: 200, headers: { "Content-Type": "text/event-stream" }, body: texts }
  })

/** Waits until a value stays the same for some event loop turns. */
const steady = async (value: () => number): Promise<number> => {
  for (let before = -1, turns = 0; turns < 200; turns++) {
    if (value() !== before) turns = 0
    before = value()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return value()
}

const received = async (socket: Socket, wanted: string): Promise<string> => {
  let all = ""
  for await (const [data] of on(socket)) {
    all += String(data)
    if (all.includes(wanted)) break
  }
  return all
}

/** A socket's chunks. It stays open afterwards. */
async function* on(socket: Socket) {
  while (true) yield await once(socket, "data")
}

describe("a stream", () => {
  it("is not read while the socket of its client is full", async () => {
    const stream = endless("x".repeat(65_536))
    const client = await connect(await serveDuringTest(streaming(stream)))
    client.pause()
    client.write(get)
    await expect.poll(() => stream.seen.taken).toBeGreaterThan(0)
    const taken = await steady(() => stream.seen.taken)
    // What fits into two sockets' buffers.
    expect(taken).toBeLessThan(300)
    client.resume()
    await expect.poll(() => stream.seen.taken).toBeGreaterThan(taken)
    client.destroy()
    await expect.poll(() => stream.seen.isReturned).toBe(true)
  })

  it("ends when its client goes, and when it ends its side", async () => {
    for (const leave of ["destroy", "end"] as const) {
      const stream = endless("a", 1)
      const client = await connect(await serveDuringTest(streaming(stream)))
      client.write(get)
      await received(client, "\r\na\r\n")
      client[leave]()
      await expect.poll(() => stream.seen.isReturned).toBe(true)
    }
  })

  it("does not hold up close, and ends completely", async () => {
    const stream = endless("a", 1)
    const server = await serve(streaming(stream), { shutdownTimeout: 60_000 })
    const client = await connect(server.url)
    client.write(get)
    await received(client, "\r\na\r\n")
    const rest = text(client)
    const start = performance.now()
    await server.close()
    expect(performance.now() - start).toBeLessThan(10_000)
    expect(await rest).toBe("0\r\n\r\n")
  })

  it("ends with drain, and leaves the connection to the requests behind it", async () => {
    const stream = endless("a", 1)
    const server = await serve(streaming(stream))
    const client = await connect(server.url)
    client.write(get + other)
    const head = await received(client, "\r\na\r\n")
    expect(head).not.toContain("{}")
    const rest = text(client)
    server.drain()
    const [end = "", response = ""] = (await rest).split(/(?<=0\r\n\r\n)/)
    expect(end).toBe("0\r\n\r\n")
    expect(parseResponses(response)).toMatchObject([{ status: 200, text: "{}" }])
    await server.close()
  })

  it("is sent over HTTP/2, and ends when its client cancels it", async () => {
    const stream = endless("a", 2)
    const server = Http2.createServer(toNodeHandler(streaming(stream)))
    const session = Http2.connect(await listenDuringTest(server))
    const request = session.request({ ":path": "/stream" })
    const [headers] = await once(request, "response")
    expect(headers).toMatchObject({ ":status": 200, "content-type": "text/event-stream" })
    await once(request, "data")
    request.close(Http2.constants.NGHTTP2_CANCEL)
    await expect.poll(() => stream.seen.isReturned).toBe(true)
    session.close()
  })

  it("breaks off if what a host writes with in place of Node throws", async () => {
    const stream = endless("a")
    const server = createServer((request, response) => {
      response.write = () => {
        throw new Error("from the host")
      }
      toNodeHandler(streaming(stream))(request, response)
    })
    const client = await connect(await listenDuringTest(server))
    client.write(get)
    await expect.poll(() => stream.seen.isReturned).toBe(true)
  })

  it("ends at once if its client has gone before it began", async () => {
    const stream = endless("a")
    const exchange = new EventEmitter()
    const arrived = once(exchange, "arrived")
    const left = once(exchange, "left")
    const tenure = answering(async () => {
      exchange.emit("arrived")
      await left
      return { status: 200, headers: {}, body: stream.texts }
    })
    const server = createServer((request, response) => {
      response.on("close", () => exchange.emit("left"))
      toNodeHandler(tenure)(request, response)
    })
    const client = await connect(await listenDuringTest(server))
    client.write(get)
    await arrived
    client.destroy()
    await expect.poll(() => stream.seen).toEqual({ taken: 0, isReturned: true })
  })
})

describe("a stream that nobody reads", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  it("breaks off after a minute", async () => {
    const stream = endless("a")
    const readable = toReadable(stream.texts).on("error", () => {})
    readable.once("readable", () => {})
    await expect.poll(() => stream.seen.taken, { interval: 0 }).toBe(1)
    await vi.advanceTimersByTimeAsync(59_000)
    expect(readable.destroyed).toBe(false)
    await vi.advanceTimersByTimeAsync(1000)
    expect(readable.destroyed).toBe(true)
    expect(stream.seen.isReturned).toBe(true)
  })

  it("keeps no timer once it has ended or was destroyed", async () => {
    for (const leave of ["end", "destroy"] as const) {
      const stream = endless("a", 0)
      const readable = toReadable(stream.texts)
      readable.once("readable", () => {})
      await new Promise((resolve) => setImmediate(resolve))
      if (leave === "end") stream.end()
      else readable.destroy()
      await steady(() => vi.getTimerCount())
      expect(vi.getTimerCount()).toBe(0)
    }
  })

  it("goes on as long as a text is read each minute", async () => {
    const stream = endless("a")
    const readable = toReadable(stream.texts)
    const iterator = readable[Symbol.asyncIterator]()
    for (let minute = 0; minute < 5; minute++) {
      expect(String((await iterator.next()).value)).toBe("a")
      await vi.advanceTimersByTimeAsync(50_000)
    }
    await iterator.return?.()
    expect(stream.seen.isReturned).toBe(true)
  })
})
