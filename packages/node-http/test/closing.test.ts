/** Servers drain and close. */

import { once } from "node:events"
import * as Http from "node:http"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { exchange, parseResponses, send } from "@tenure/testing/conformance"
import { describe, expect, it } from "vitest"
import { type ServerOptions, serve } from "../src/server.ts"
import { answering, connect, gated, lines, ok } from "./support.ts"

const get = lines("GET / HTTP/1.1", "Host: a")

/** Serves a Tenure whose responses wait. Closing waits longer than any test takes. */
const serveGated = async (options: ServerOptions = {}) => {
  const gate = gated()
  const server = await serve(gate.tenure, { shutdownTimeout: 60_000, ...options })
  return { ...gate, server }
}

/** Serves a Tenure that answers at once. */
const serveOk = () =>
  serve(
    answering(async () => ok),
    { shutdownTimeout: 60_000 },
  )

const closedAfter = [{ status: 200, headers: { connection: "close" } }]

it("drain closes each connection with its next response, and accepts further ones", async () => {
  const { open, until, server } = await serveGated()
  const inFlight = exchange(server.url, get)
  await until(1)
  server.drain()
  const later = exchange(server.url, get)
  await until(2)
  open()
  for (const raw of await Promise.all([inFlight, later])) {
    expect(parseResponses(raw)).toMatchObject(closedAfter)
  }
  await server.close()
})

describe("close", () => {
  it("answers the requests in flight, and accepts no more connections", async () => {
    const { open, until, server } = await serveGated()
    const inFlight = send(server.url, { path: "/" })
    await until(1)
    const closing = server.close()
    const connecting = () => connect(server.url).then((socket) => void socket.destroy())
    await expect.poll(() => connecting().catch(String)).toContain("ECONNREFUSED")
    open()
    expect((await inFlight).status).toBe(200)
    await closing
  })

  it("does not disconnect a client that sends one request after another", async () => {
    const server = await serveOk()
    const agent = new Http.Agent({ keepAlive: true })
    const getOnce = () =>
      new Promise<string>((resolve) => {
        const request = Http.get(server.url, { agent }, (response) => {
          response.resume().on("end", () => resolve("answered"))
        })
        request.on("error", ({ message }) => resolve(message))
      })
    const clients = Array.from({ length: 8 }, async () => {
      for (;;) {
        const outcome = await getOnce()
        if (outcome !== "answered") return outcome
      }
    })
    await getOnce()
    await server.close()
    for (const outcome of await Promise.all(clients)) expect(outcome).toContain("ECONNREFUSED")
    agent.destroy()
  })

  it("waits for responses that node:http makes no response object for", async () => {
    const { open, until, server } = await serveGated()
    const inFlight = exchange(server.url, lines("BREW / HTTP/1.1", "Host: a"))
    await until(1)
    const closing = server.close()
    open()
    expect(parseResponses(await inFlight)).toMatchObject([{ status: 200 }])
    await closing
  })

  it("waits for a response that has started, and then closes its connection", async () => {
    const finishers: Array<() => void> = []
    const { server } = await serveGated({
      listener: (_request, response) => {
        response.writeHead(200, { "Content-Length": 2 }).write("{")
        finishers.push(() => response.end("}"))
      },
    })
    const socket = await connect(server.url)
    socket.write(get)
    const [begun] = await once(socket, "data")
    const closing = server.close()
    for (const finish of finishers) finish()
    expect(parseResponses(String(begun) + (await text(socket)))).toMatchObject([{ text: "{}" }])
    await closing
  })

  it("sends Connection: close with the last response on each connection", async () => {
    const { open, until, server } = await serveGated()
    const one = exchange(server.url, get)
    const pipelined = exchange(server.url, get + get)
    await until(2)
    const closing = server.close()
    open()
    // A connection's requests are handled one after another.
    await until(3)
    open()
    const connections = (raw: string) =>
      parseResponses(raw).map(({ headers }) => headers["connection"])
    expect(connections(await one)).toEqual(["close"])
    expect(connections(await pipelined)).toEqual(["keep-alive", "close"])
    await closing
  })

  it("ignores requests after the last response on a connection", async () => {
    const { open, seen, until, server } = await serveGated()
    const socket = await connect(server.url)
    socket.write(get)
    const sentinel = await connect(server.url)
    sentinel.write(lines("POST / HTTP/1.1", "Host: a", "Content-Length: 2", "Expect: 100-continue"))
    await once(sentinel, "data")
    const responses = Promise.all([text(socket), text(sentinel)])
    await until(1)
    const closing = server.close()
    socket.write(get)
    // The server reads the ignored request before it reads this body.
    sentinel.write("{}")
    await until(2)
    open()
    expect((await responses).map((raw) => parseResponses(raw).length)).toEqual([1, 1])
    expect(seen.map(({ method }) => method)).toEqual(["GET", "POST"])
    for (const one of [socket, sentinel]) one.destroy()
    await closing
  })

  it("does not wait for idle connections", async () => {
    const { open, until, server } = await serveGated()
    const agent = new Http.Agent({ keepAlive: true })
    const { hostname, port } = new URL(server.url)
    const answered = new Promise<Http.IncomingMessage>((resolve) => {
      Http.get({ agent, hostname, port }, resolve)
    })
    await until(1)
    open()
    await text(await answered)
    await server.close()
    agent.destroy()
  })

  it("after a drain, answers a client that has just connected and is not accepted yet", async () => {
    const server = await serveOk()
    server.drain()
    const socket = Net.connect(Number(new URL(server.url).port), "127.0.0.1")
    socket.write(get)
    // The system has made the connection then, and the event loop has not seen it.
    await new Promise<void>((resolve) => process.nextTick(resolve))
    const closing = server.close()
    expect(parseResponses(await text(socket))).toMatchObject(closedAfter)
    await closing
  })

  it("waits for the first request of a connection that is new", async () => {
    const server = await serveOk()
    const socket = await connect(server.url)
    // The server has accepted it.
    await send(server.url, { path: "/" })
    const closing = server.close()
    // Longer than for a connection on which a response was sent.
    await new Promise((resolve) => setTimeout(resolve, 300))
    socket.write(get)
    expect(parseResponses(await text(socket))).toMatchObject(closedAfter)
    await closing
  })

  it("disconnects clients that have not sent a whole header", async () => {
    const { open, until, server } = await serveGated()
    const silent = await connect(server.url)
    const dawdling = await connect(server.url)
    dawdling.write(get.slice(0, 20))
    const answered = await connect(server.url)
    answered.write(get)
    await until(1)
    open()
    await once(answered, "data")
    answered.write(get.slice(0, 20))
    const inFlight = send(server.url, { path: "/" })
    await until(2)
    const gone = [silent, dawdling, answered].map((socket) => once(socket.resume(), "end"))
    const closing = server.close()
    await Promise.all(gone)
    open()
    expect((await inFlight).status).toBe(200)
    await closing
  })

  it("does not wait for the rest of a request that is answered already", async () => {
    const { open, until, server } = await serveGated()
    const socket = await connect(server.url)
    socket.write(lines("PATCH / HTTP/1.1", "Host: a", "Content-Length: 5000"))
    await until(1)
    open()
    await once(socket, "data")
    await server.close()
  })

  it("closes the connections that are left after the timeout", async () => {
    const { server, until } = await serveGated({ shutdownTimeout: 100 })
    const inFlight = send(server.url, { path: "/" })
    const refused = expect(inFlight).rejects.toThrow("socket hang up")
    const tunnel = await connect(server.url)
    tunnel.write(lines("CONNECT a:1 HTTP/1.1", "Host: a"))
    await until(2)
    await server.close()
    await refused
  })
})
