/** Connections and tunnels to receivers, which are kept alive and replaced. */

import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Server as ProxyServer } from "proxy-chain"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { proxyTransport } from "../src/proxy-transport.ts"
import { nodeTransport } from "../src/transport.ts"
import { type SendOne, gate, onResponse, sending as sendingWith } from "./sending.ts"
import { rawServer } from "./support.ts"

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/** A server that answers the first requests 200, and passes the others to `then`. */
const server = async (first: number, then: (socket: Socket, count: number) => void) => {
  let count = 0
  return rawServer((socket) => {
    socket.on("data", () => {
      count++
      if (count <= first) socket.write(ok)
      else then(socket, count - first)
    })
  })
}

const times = (count: number, one: Effect.Effect<number | string>, concurrency = 1) =>
  Effect.all(
    Array.from({ length: count }, () => one),
    { concurrency },
  )

/** Sends a request, and interrupts it when it has arrived. */
const interrupted = (one: Effect.Effect<unknown>, arrival: Promise<void>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(one)
    yield* Effect.promise(() => arrival)
    yield* Fiber.interrupt(fiber)
  })

const proxy = new ProxyServer({ host: "127.0.0.1", port: 0 })
beforeAll(() => proxy.listen())
afterAll(() => proxy.close(true))

const transports = {
  "a connection to a receiver": () => nodeTransport,
  "a tunnel to a receiver": () => proxyTransport({ url: `http://127.0.0.1:${proxy.port}` }),
}

describe.each(Object.entries(transports))("%s", (_, transport) => {
  const sending = <A>(use: (one: SendOne) => Effect.Effect<A>): Promise<A> =>
    sendingWith(use, undefined, transport())

  it("is kept alive, and closes with the transport", async () => {
    const { open, opened } = gate()
    const { sockets, url } = await server(5, () => {})
    expect(await sending((one) => times(5, one(url)))).toEqual([200, 200, 200, 200, 200])
    const [socket] = sockets
    socket?.on("close", open)
    await opened
    expect(sockets.size).toBe(1)
  })

  it("is replaced if the receiver has closed it", async () => {
    const { sockets, url } = await server(1, (socket, count) =>
      count === 1 ? socket.resetAndDestroy() : socket.write(ok),
    )
    expect(await sending((one) => times(2, one(url)))).toEqual([200, 200])
    expect(sockets.size).toBe(2)
  })

  it("is replaced by a new connection, not by another one that may be closed too", async () => {
    let requests = 0
    const { sockets, url } = await server(3, (socket, count) => {
      requests = count
      if ([...sockets].indexOf(socket) < 3) socket.resetAndDestroy()
      else socket.write(ok)
    })
    const test = (one: SendOne) => Effect.andThen(times(3, one(url), 3), one(url))
    expect(await sending(test)).toBe(200)
    expect(requests).toBe(2)
  })

  it("is replaced only once", async () => {
    const { sockets, url } = await server(1, (socket) => socket.resetAndDestroy())
    expect(await sending((one) => times(2, one(url)))).toEqual([200, "ECONNRESET"])
    expect(sockets.size).toBe(2)
  })

  it("is not replaced if the receiver hangs before it closes", async () => {
    const arrival = gate()
    const { sockets, url } = await server(1, (socket, count) =>
      count === 1 ? arrival.open() : socket.write(ok),
    )
    const test = (one: SendOne) =>
      Effect.gen(function* () {
        yield* one(url)
        const fiber = yield* Effect.forkChild(one(url))
        yield* Effect.promise(() => arrival.opened)
        yield* TestClock.adjust("1 second")
        for (const socket of sockets) socket.resetAndDestroy()
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(TestClock.layer()))
    expect(await sending(test)).toBe("ECONNRESET")
    expect(sockets.size).toBe(1)
  })

  it("is not replaced after a response has started", async () => {
    const { sockets, url } = await server(1, (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
      onResponse(() => socket.resetAndDestroy())
    })
    expect(await sending((one) => times(2, one(url)))).toEqual([200, 200])
    expect(sockets.size).toBe(1)
  })

  it.each([
    ["never answers", ""],
    ["answers with a header alone", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
  ])(
    "closes, and is not replaced, if a request is interrupted whose receiver %s",
    async (_name, answer) => {
      const arrival = gate()
      const closing = gate()
      const { sockets, url } = await server(1, (socket, count) => {
        if (count > 1) return socket.write(ok)
        arrival.open()
        return socket.on("close", closing.open).write(answer)
      })
      const test = (one: SendOne) =>
        Effect.gen(function* () {
          yield* one(url)
          yield* interrupted(one(url), arrival.opened)
          yield* Effect.promise(() => closing.opened)
          return yield* one(url)
        })
      expect(await sending(test)).toBe(200)
      expect(sockets.size).toBe(2)
    },
  )

  it("closes if a request is interrupted on the connection that replaced another", async () => {
    const arrival = gate()
    const closing = gate()
    const { sockets, url } = await server(1, (socket, count) => {
      if (count === 1) return void socket.resetAndDestroy()
      socket.on("close", closing.open)
      arrival.open()
    })
    const test = (one: SendOne) =>
      Effect.gen(function* () {
        yield* one(url)
        yield* interrupted(one(url), arrival.opened)
        yield* Effect.promise(() => closing.opened)
      })
    await sending(test)
    expect(sockets.size).toBe(2)
  })
})
