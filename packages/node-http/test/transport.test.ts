import * as Net from "node:net"
import { AddressPolicy } from "@tenure/core/AddressPolicy"
import { WebhookTransport } from "@tenure/core/WebhookTransport"
import { nodeTransport } from "@tenure/node-http"
import { type Receiver, startReceiver } from "@tenure/testing"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { describe, expect, it } from "vitest"

const transportTo = (...allowedNetworks: ReadonlyArray<string>) =>
  Layer.provide(nodeTransport, AddressPolicy.layer({ allowedNetworks }))

/** Sends to a URL as often as told, by one transport; gives statuses and reasons. */
const send = (
  url: string,
  {
    allowed = ["127.0.0.0/8"],
    times = 1,
  }: { allowed?: ReadonlyArray<string>; times?: number } = {},
): Promise<ReadonlyArray<number | string>> =>
  Effect.gen(function* () {
    const transport = yield* WebhookTransport
    const request = { url, headers: { "x-test": "1" }, body: '{"ü":1}' }
    const one = Effect.match(transport.send(request), {
      onSuccess: ({ status }): number | string => status,
      onFailure: ({ reason }): number | string => reason,
    })
    return yield* Effect.forEach(Array.from({ length: times }), () => one)
  }).pipe(Effect.provide(transportTo(...allowed)), Effect.runPromise)

/** A server that does with each connection as it is told. */
const rawServer = async (handle: (socket: Net.Socket) => void) => {
  const sockets = new Set<Net.Socket>()
  const server = Net.createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    sockets,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const withReceiver = async (test: (receiver: Receiver) => Promise<void>) => {
  const receiver = await startReceiver()
  await test(receiver)
  receiver.close()
}

describe("the node transport", () => {
  it("posts the body as it is, with the headers", () =>
    withReceiver(async (receiver) => {
      expect(await send(receiver.url)).toEqual([204])
      expect(receiver.received[0]).toMatchObject({
        body: '{"ü":1}',
        headers: { "x-test": "1", "content-length": "8" },
      })
    }))

  it("dials no address that is not allowed, in any spelling", () =>
    withReceiver(async (receiver) => {
      const { port } = new URL(receiver.url)
      const hosts = ["127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost"]
      for (const host of hosts) {
        expect(await send(`http://${host}:${port}/`, { allowed: [] })).toEqual([
          "AddressNotAllowed",
        ])
      }
      expect(receiver.received).toEqual([])
    }))

  it("reaches localhost where its network is allowed", () =>
    withReceiver(async (receiver) => {
      expect(await send(receiver.url.replace("127.0.0.1", "localhost"))).toEqual([204])
    }))

  it("keeps connections alive, and opens another where the old one was closed", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        if (server.sockets.size === 1) setTimeout(() => socket.resetAndDestroy(), 5)
      })
    })
    expect(await send(server.url, { times: 5 })).toEqual([200, 200, 200, 200, 200])
    expect(server.sockets.size).toBeLessThanOrEqual(2)
    server.close()
  })

  it("tells what went wrong", async () => {
    const closed = await rawServer(() => {})
    closed.close()
    expect(await send(closed.url)).toEqual(["ECONNREFUSED"])
    expect(await send("http://does-not-exist.invalid/")).toEqual([
      expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
    ])
    const silent = await rawServer((socket) => socket.on("data", () => socket.destroy()))
    expect(await send(silent.url)).toEqual(["ECONNRESET"])
    silent.close()
    const babbling = await rawServer((socket) => socket.end("no HTTP at all\r\n\r\n"))
    expect(await send(babbling.url)).toEqual([expect.stringMatching(/^HPE_/)])
    babbling.close()
    const plain = await startReceiver()
    expect(await send(plain.url.replace("http:", "https:"))).toEqual([
      expect.stringMatching(/^(EPROTO|ERR_SSL_)/),
    ])
    plain.close()
  })

  it("does not take half a response for a whole one", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"))
    })
    expect(await send(server.url)).toEqual(["ECONNRESET"])
    server.close()
  })

  it("reads no more of a response than 64 KiB", async () => {
    let written = 0
    const server = await rawServer((socket) => {
      const pour = (): void => {
        while (!socket.destroyed && socket.write("x".repeat(16_384))) written += 16_384
      }
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n")
        pour()
      })
      socket.on("drain", pour)
    })
    expect(await send(server.url)).toEqual([200])
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect([...server.sockets].every(({ destroyed }) => destroyed)).toBe(true)
    expect(written).toBeLessThan(50_000_000)
    server.close()
  })

  it("passes redirects on as they are", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () =>
        socket.end(
          "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        ),
      )
    })
    expect(await send(server.url)).toEqual([302])
    server.close()
  })

  it.each([
    ["that never answers", ""],
    ["that answers the header and no more", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"],
  ])("closes the connection to a receiver %s when it is interrupted", async (_name, answer) => {
    let connected: () => void = () => {}
    const connection = new Promise<void>((resolve) => (connected = resolve))
    const closed = new Promise<void>((resolve) => {
      void rawServer((socket) => {
        socket.on("data", () => {
          socket.write(answer)
          connected()
        })
        socket.on("close", () => resolve())
      }).then(({ url }) =>
        Effect.gen(function* () {
          const transport = yield* WebhookTransport
          const sending = yield* Effect.forkChild(transport.send({ url, headers: {}, body: "" }))
          yield* Effect.promise(() => connection)
          yield* Fiber.interrupt(sending)
        }).pipe(Effect.provide(transportTo("127.0.0.0/8")), Effect.runPromise),
      )
    })
    await closed
  })
})
