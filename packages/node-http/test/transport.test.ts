import * as Tls from "node:tls"
import { type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { describe, expect, it } from "vitest"
import { gate, onResponse, rawServer, send, sending, withTransport } from "./sending.ts"

const withReceiver = async (test: (receiver: Receiver) => Promise<void>) => {
  const receiver = await startReceiver()
  await test(receiver)
  receiver.close()
}

describe("the node transport", () => {
  it("posts the body unchanged, with the headers", () =>
    withReceiver(async (receiver) => {
      expect(await send(receiver.url)).toBe(204)
      expect(receiver.received[0]).toMatchObject({
        body: '{"ü":1}',
        headers: { "x-test": "1", "content-length": "8" },
      })
    }))

  it("connects to no address outside the allowed networks, however it is written", () =>
    withReceiver(async (receiver) => {
      const { port } = new URL(receiver.url)
      const hosts = ["127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost"]
      for (const host of hosts) {
        expect(await send(`http://${host}:${port}/`, [])).toBe("AddressNotAllowed")
      }
      expect(receiver.received).toEqual([])
    }))

  it("connects to localhost if its network is allowed", () =>
    withReceiver(async (receiver) => {
      expect(await send(receiver.url.replace("127.0.0.1", "localhost"))).toBe(204)
    }))

  it("uses the host name of the URL for the TLS handshake and the Host header", async () => {
    await withReceiver(async (receiver) => {
      await send(receiver.url.replace("127.0.0.1", "app.localhost"))
      const { port } = new URL(receiver.url)
      expect(receiver.received[0]?.headers["host"]).toBe(`app.localhost:${port}`)
    })
    const names: Array<string> = []
    const server = Tls.createServer({
      SNICallback: (name, done) => {
        names.push(name)
        done(new Error("no certificate"))
      },
    })
    server.on("tlsClientError", () => {})
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    expect(await send(`https://app.localhost:${port}/`)).toEqual(expect.any(String))
    expect(names).toEqual(["app.localhost"])
    server.close()
  })

  it("fails with the reason", async () => {
    const closed = await rawServer(() => {})
    closed.close()
    expect(await send(closed.url)).toBe("ECONNREFUSED")
    expect(await send("http://does-not-exist.invalid/")).toEqual(
      expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/),
    )
    const silent = await rawServer((socket) => socket.on("data", () => socket.destroy()))
    expect(await send(silent.url)).toBe("ECONNRESET")
    silent.close()
    const invalid = await rawServer((socket) => socket.end("no HTTP at all\r\n\r\n"))
    expect(await send(invalid.url)).toEqual(expect.stringMatching(/^HPE_/))
    invalid.close()
    const plain = await startReceiver()
    expect(await send(plain.url.replace("http:", "https:"))).toEqual(
      expect.stringMatching(/^(EPROTO|ERR_SSL_)/),
    )
    plain.close()
  })

  it.each([
    ["ends early", 200, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"],
    ["ends early", 503, "HTTP/1.1 503 A\r\nContent-Length: 100\r\n\r\nhalf"],
    ["is longer than announced", 201, "HTTP/1.1 201 A\r\nContent-Length: 2\r\n\r\nlonger"],
    ["may not be", 204, "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}"],
    ["may not be", 204, "HTTP/1.1 204 No Content\r\n\r\nbody"],
    ["may not be", 204, "HTTP/1.1 204 A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"],
    ["has a faulty chunk", 202, "HTTP/1.1 202 A\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"],
    ["has a faulty chunk", 410, "HTTP/1.1 410 A\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"],
    ["is no gzip", 200, "HTTP/1.1 200 A\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"],
    ["follows hints", 200, "HTTP/1.1 103 A\r\n\r\nHTTP/1.1 200 A\r\nContent-Length: 9\r\n\r\nx"],
  ])("takes the status of a response whose body %s: %i", async (_name, status, response) => {
    const server = await rawServer((socket) => socket.once("data", () => socket.end(response)))
    expect(await send(server.url)).toBe(status)
    server.close()
  })

  it.each([
    ["is too long", 200, `HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`],
    ["is no header field", 202, "HTTP/1.1 202 A\r\nno field\r\n\r\n"],
    [
      "announces two lengths",
      201,
      "HTTP/1.1 201 A\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
    ],
    ["breaks its lines otherwise", 204, "HTTP/1.1 204 A\nX: 1\n\n"],
    ["is faulty", 410, "HTTP/1.1 410 A\r\nContent-Length: x\r\n\r\n"],
    ["has no status", "HPE_INVALID_STATUS", "HTTP/1.1 2000 OK\r\n\r\n"],
    ["is no final one", "HPE_INVALID_HEADER_TOKEN", "HTTP/1.1 103 A\r\nno field\r\n\r\n"],
  ])("takes the status of a response whose head %s: %s", async (_name, status, response) => {
    const server = await rawServer((socket) => socket.once("data", () => socket.write(response)))
    expect(await send(server.url)).toBe(status)
    server.close()
  })

  it("takes the status of a response whose connection is reset, and what has arrived", async () => {
    const server = await rawServer((socket) => {
      socket.write("HTTP/1.1 429 A\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\nhalf")
      onResponse(() => socket.resetAndDestroy())
    })
    const request = { url: server.url, headers: {}, body: "" }
    expect(await withTransport(({ send: post }) => post(request))).toEqual({
      status: 429,
      retryAfter: "7",
      body: "half",
    })
    server.close()
  })

  it("tells the status while the body has not arrived", async () => {
    const server = await rawServer((socket) =>
      socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")),
    )
    const received = gate()
    let response: () => unknown = () => {}
    await withTransport((transport) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(
          transport.send({ url: server.url, headers: {}, body: "" }, (given) => {
            response = given
            setImmediate(received.open)
          }),
        )
        yield* Effect.promise(() => received.opened)
        yield* Fiber.interrupt(fiber)
      }),
    )
    expect(response()).toEqual({ status: 200, retryAfter: undefined, body: "half" })
    server.close()
  })

  it("does not take the body of a 204 for the next response", async () => {
    const server = await rawServer((socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 204 A\r\nContent-Length: 2\r\n\r\n")
        socket.once("data", () => socket.write("{}"))
      }),
    )
    const results = await sending((one) => Effect.all([one(server.url), one(server.url)]))
    expect(results).toEqual([204, 204])
    expect(server.sockets.size).toBe(2)
    server.close()
  })

  it("reads at most 64 KiB of a response", async () => {
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
    expect(await send(server.url)).toBe(200)
    const areDestroyed = () => [...server.sockets].every(({ destroyed }) => destroyed)
    await expect.poll(areDestroyed).toBe(true)
    expect(written).toBeLessThan(50_000_000)
    server.close()
  })

  it("does not follow redirects", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () =>
        socket.end(
          "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        ),
      )
    })
    expect(await send(server.url)).toBe(302)
    server.close()
  })

  it("skips informational responses", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () => {
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        socket.end("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
      })
    })
    expect(await send(server.url)).toBe(201)
    server.close()
  })

  it("fails if the receiver switches protocols", async () => {
    const server = await rawServer((socket) => {
      socket.on("data", () => {
        socket.write("HTTP/1.1 103 Early Hints\r\n\r\n")
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        )
      })
    })
    expect(await send(server.url)).toBe("NoAnswer")
    server.close()
  })
})
