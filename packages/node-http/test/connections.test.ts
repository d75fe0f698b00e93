/** Connections whose clients, requests or responses misbehave. */

import { once } from "node:events"
import type { IncomingMessage } from "node:http"
import { text } from "node:stream/consumers"
import { setImmediate } from "node:timers/promises"
import type { ArrivedBody } from "@tenure/core/adapter"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it, vi } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { type ServerOptions, serve } from "../src/server.ts"
import { answering, connect, gated, lines, ok, serveDuringTest } from "./support.ts"

const get = lines("GET / HTTP/1.1", "Host: a")
const chunked = lines("PATCH / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")
const short = { headersTimeout: 100, requestTimeout: 200 }

/** Serves a Tenure that answers at once. Returns a connection to it. */
const connectToOk = async (options: ServerOptions = {}, body = ok.body) =>
  connect(
    await serveDuringTest(
      answering(async () => ({ ...ok, body })),
      options,
    ),
  )

/** Serves a Tenure whose responses wait. */
const serveGated = async () => {
  const gate = gated()
  return { ...gate, url: await serveDuringTest(gate.tenure) }
}

it("a response that cannot be sent closes the connection, and the server goes on", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue()
  const responses = [{ ...ok, headers: { "not a header": "" } }, ok]
  const url = await serveDuringTest(
    answering(async () => responses.shift() ?? ok),
    { keepAliveTimeout: 100 },
  )
  expect(await exchange(url, get)).toBe("")
  expect(parseResponses(await exchange(url, get))).toMatchObject([{ status: 200 }])
  expect(warn).toHaveBeenCalledTimes(1)
})

describe("CONNECT", () => {
  const tunnel = lines("CONNECT a:1 HTTP/1.1", "Host: a")

  it("may be reset before its response, and the server goes on", async () => {
    const { open, until, url } = await serveGated()
    const socket = await connect(url)
    socket.write(tunnel)
    await until(1)
    socket.resetAndDestroy()
    const next = send(url, { path: "/" })
    await until(2)
    open()
    expect((await next).status).toBe(200)
  })

  it("is answered after earlier requests", async () => {
    const { open, seen, until, url } = await serveGated()
    const answers = exchange(url, get + get + tunnel)
    for (const count of [1, 2, 3]) {
      await until(count)
      expect(seen).toHaveLength(count)
      open()
    }
    expect(parseResponses(await answers)).toMatchObject([
      { status: 200, headers: { connection: "keep-alive" } },
      { status: 200, headers: { connection: "keep-alive" } },
      { status: 200, headers: { connection: "close" } },
    ])
    expect(seen.map(({ method }) => method)).toEqual(["GET", "GET", "CONNECT"])
  })

  it("behind a response that never ends leaves its connection inactive, which is closed", async () => {
    const socket = await connectToOk({
      idleTimeout: 500,
      listener: (_request, response) => void response.write("x"),
    })
    socket.write(get + get + tunnel)
    await text(socket)
  })
})

describe("a fault in a body", () => {
  const expecting = lines(
    "PATCH / HTTP/1.1",
    "Host: a",
    "Expect: 100-continue",
    "Transfer-Encoding: chunked",
  )
  const continued = "HTTP/1.1 100 Continue\r\n\r\n"
  const fault = { _tag: "Unreadable", error: { _tag: "MalformedRequest" } }

  /** A server whose Tenure reads every body, and answers 400 if it cannot. */
  const reading = async () => {
    const bodies: Array<ArrivedBody> = []
    const server = await serve(
      answering(async ({ body }) => {
        // As if it asked a store first.
        await setImmediate()
        const arrived = body._tag === "Deferred" ? await body.read() : body
        bodies.push(arrived)
        return { ...ok, status: arrived._tag === "Bytes" ? 200 : 400 }
      }),
    )
    return { bodies, server }
  }

  it.each([
    ["that arrives late", [chunked, "5\r\nhello\r\n", "zz\r\n"]],
    ["that waits for 100 Continue", [expecting, "5\r\nhello\r\n", "zz\r\n"]],
    ["that comes at once although it need not", [`${expecting}zz\r\n`]],
  ])("%s is answered once", async (_name, packets) => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue()
    const { bodies, server } = await reading()
    const socket = await connect(server.url)
    const answer = text(socket)
    for (const packet of packets) {
      socket.write(packet)
      // Another client's answer tells that the server has read the packet.
      await send(server.url, { path: "/" })
    }
    expect(parseResponses((await answer).replace(continued, ""))).toMatchObject([
      { status: 400, headers: { connection: "close" } },
    ])
    await server.close()
    expect(bodies.filter(({ _tag }) => _tag !== "Bytes")).toMatchObject([fault])
    expect(bodies).toHaveLength(packets.length + 1)
    expect(warn).not.toHaveBeenCalled()
  })

  it("is answered behind earlier requests", async () => {
    const { bodies, server } = await reading()
    const raw = await exchange(server.url, `${get}${chunked}zz\r\n`)
    expect(parseResponses(raw).map(({ status }) => status)).toEqual([200, 400])
    expect(bodies).toMatchObject([{ _tag: "Bytes" }, fault])
    await server.close()
  })
})

describe("a connection", () => {
  it.each([
    ["continues with an invalid chunk", "zz\r\n"],
    ["does not continue", ""],
  ])("gets one response to a request that is too large and %s", async (_name, rest) => {
    const socket = await connectToOk(short)
    socket.write(`${chunked}7d0\r\n${"x".repeat(2000)}\r\n`)
    const [first] = await once(socket, "data")
    socket.write(rest)
    expect(parseResponses(String(first) + (await text(socket)))).toHaveLength(1)
  })

  it("is answered if the client has ended its side", async () => {
    const { open, until, url } = await serveGated()
    const socket = await connect(url)
    socket.end(get)
    await until(1)
    // The server has read the end by the time it answers this request.
    const other = send(url, { path: "/" })
    await until(2)
    open()
    expect((await other).status).toBe(200)
    expect(parseResponses(await text(socket))).toHaveLength(1)
  })

  it("is not reset while the client still sends behind an invalid body", async () => {
    const socket = await connectToOk()
    socket.write(`${chunked}zz\r\n`)
    socket.write("x".repeat(1_000_000))
    expect(parseResponses(await text(socket))).toHaveLength(1)
  })

  it("gets no second response after the first has started", async () => {
    const { seen, tenure } = gated()
    const finishers: Array<() => void> = []
    const url = await serveDuringTest(tenure, {
      listener: (request, response) => {
        if (request.method === "GET") return void response.end("{}")
        response.writeHead(200, { "Content-Length": 2 }).write("{")
        finishers.push(() => response.end("}"))
      },
    })
    const socket = await connect(url)
    socket.write(chunked)
    const [begun] = await once(socket, "data")
    socket.write("zz\r\n")
    // The server has read the invalid chunk by the time it answers this request.
    await send(url, { path: "/" })
    for (const finish of finishers) finish()
    expect(parseResponses(String(begun) + (await text(socket)))).toMatchObject([{ text: "{}" }])
    expect(seen).toEqual([])
  })

  it("is closed if the client does not read its response", async () => {
    let cutOff: (response: unknown) => void = () => {}
    const isCutOff = new Promise((resolve) => (cutOff = resolve))
    const socket = await connectToOk({
      idleTimeout: 100,
      listener: (_request, response) => {
        response.on("close", cutOff).end(Buffer.alloc(50_000_000))
      },
    })
    socket.write(get)
    await isCutOff
  })

  it("is closed if the client sends on and on and reads nothing", async () => {
    const socket = (await connectToOk({ idleTimeout: 500 }, "x".repeat(100_000))).pause()
    // The server resets the connection, which is an error that `idempotency` would throw.
    const closed = new Promise((resolve) => socket.on("close", resolve))
    const sending = setInterval(() => socket.write(get), 1)
    await closed
    clearInterval(sending)
  })

  it("is destroyed after the response to a request that is not valid HTTP", async () => {
    const socket = await connectToOk()
    socket.write("nonsense\r\n\r\n")
    expect(parseResponses(await text(socket))).toHaveLength(1)
    // Only a write shows this side that the other has closed the connection.
    const writing = setInterval(() => socket.write("x"), 20)
    await once(socket, "error")
    clearInterval(writing)
  })

  it("is destroyed after the response to a request that took too long", async () => {
    const tenure = answering(async () => ({ ...ok, status: 408 }))
    const handler = toNodeHandler(tenure)
    let arrive: (request: IncomingMessage) => void = () => {}
    const arrival = new Promise<IncomingMessage>((resolve) => (arrive = resolve))
    const url = await serveDuringTest(tenure, {
      ...short,
      listener: (request, response) => {
        arrive(request)
        handler(request, response)
      },
    })
    const socket = await connect(url)
    socket.write(lines("PATCH / HTTP/1.1", "Host: a", "Content-Length: 5"))
    const destroyed = arrival.then((request) => once(request.socket, "close"))
    expect(parseResponses(await text(socket))).toMatchObject([{ status: 408 }])
    await destroyed
  })
})
