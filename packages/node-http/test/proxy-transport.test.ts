/** Webhooks through a proxy. */

import { lookup } from "node:dns"
import type { ServerResponse } from "node:http"
import * as Https from "node:https"
import type { Socket } from "node:net"
import * as Tls from "node:tls"
import { InvalidInput } from "@tenure/core"
import { freePort } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as ProxyChain from "proxy-chain"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { makeAuthority } from "../../postgres/test/certificates.ts"
import { proxyTransport, proxyTransportOptions } from "../src/proxy-transport.ts"
import { type SendOne, gate, send, sending } from "./sending.ts"
import { listenDuringTest, rawServer, receiverDuringTest } from "./support.ts"

const allowed = ["127.0.0.0/8", "::1/128"]

/** Sends to a URL through a proxy. */
const sendBy = (proxy: string, url: string) => send(url, allowed, proxyTransport({ url: proxy }))

const sendingBy = <A>(proxy: string, use: (one: SendOne) => Effect.Effect<A>) =>
  sending(use, allowed, proxyTransport({ url: proxy }))

const authority = makeAuthority()
const trusted = Tls.getCACertificates("default")

beforeAll(() => Tls.setDefaultCACertificates([...trusted, authority.certificate]))
afterAll(() => Tls.setDefaultCACertificates(trusted))

const certified = (...names: ReadonlyArray<string>) => {
  const { certificate, key } = authority.issue(names)
  return { cert: certificate, key }
}

/** Starts a receiver with TLS. Returns its port, and the names that clients have asked for. */
const startSecureReceiver = async (...names: ReadonlyArray<string>) => {
  const asked: Array<unknown> = []
  const answer = ({ socket }: { socket: object }, response: ServerResponse) => {
    asked.push("servername" in socket && socket.servername)
    response.writeHead(204).end()
  }
  const server = Https.createServer(certified(...names), answer)
  const { port } = new URL(await listenDuringTest(server))
  onTestFinished(() => server.closeAllConnections())
  return { port, asked }
}

// Names that only the proxy knows.
const addresses: Readonly<Record<string, string>> = {
  "receiver.test": "127.0.0.1",
  "intranet.test": "10.0.0.1",
}

/** A look-up that finds one address for each name. */
const lookupTo = (address: string): typeof lookup => {
  const find = (...args: ReadonlyArray<unknown>) => {
    const answer = args.at(-1)
    if (typeof answer === "function") answer(null, [{ address, family: 4 }])
  }
  return Object.assign(find, lookup)
}

const options = { host: "127.0.0.1", port: 0 }

/** Starts a proxy that refuses private addresses, other than loopback ones. */
const startProxy = async (
  tls?: ReturnType<typeof certified>,
  isKnown: (user: string, password: string) => boolean = () => true,
) => {
  const targets: Array<string> = []
  const prepareRequestFunction: ProxyChain.PrepareRequestFunction = (request) => {
    const { hostname, password, port, username } = request
    targets.push(`${hostname}:${port}`)
    if (!isKnown(username, password)) return { requestAuthentication: true }
    const address = addresses[hostname] ?? hostname
    if (address.startsWith("10.")) throw new ProxyChain.RequestError("private", 403)
    return { dnsLookup: lookupTo(address) }
  }
  const proxy = new ProxyChain.Server(
    tls === undefined
      ? { ...options, prepareRequestFunction }
      : { ...options, prepareRequestFunction, serverType: "https", httpsOptions: tls },
  )
  await proxy.listen()
  onTestFinished(() => proxy.close(true))
  return { proxy, port: proxy.port, targets }
}

describe("a proxy", () => {
  it.each(["http", "https"])(
    "with a URL in %s leads to receivers with and without TLS",
    async (scheme) => {
      const { port, targets } = await startProxy(
        scheme === "https" ? certified("localhost") : undefined,
      )
      const url = `${scheme}://localhost:${port}`
      const receiver = await receiverDuringTest()
      expect(await sendBy(url, receiver.url)).toBe(204)
      expect(receiver.received[0]).toMatchObject({ body: '{"ü":1}', headers: { "x-test": "1" } })
      const secure = await startSecureReceiver("receiver.test")
      expect(await sendBy(url, `https://receiver.test:${secure.port}/`)).toBe(204)
      expect(secure.asked).toEqual(["receiver.test"])
      expect(targets).toEqual([new URL(receiver.url).host, `receiver.test:${secure.port}`])
    },
  )

  it("keeps tunnels alive, one for each receiver", async () => {
    const { port, proxy } = await startProxy(certified("127.0.0.1"))
    const { asked, port: to } = await startSecureReceiver("receiver.test", "127.0.0.1")
    const test = (one: SendOne) =>
      Effect.all([
        one(`https://receiver.test:${to}/`),
        one(`https://127.0.0.1:${to}/`),
        one(`https://receiver.test:${to}/other`),
      ])
    expect(await sendingBy(`https://127.0.0.1:${port}`, test)).toEqual([204, 204, 204])
    expect(asked).toEqual(["receiver.test", false, "receiver.test"])
    expect(proxy.stats.connectRequestCount).toBe(2)
  })

  it("is also used for the connection that replaces a closed one", async () => {
    const { port, proxy } = await startProxy()
    let requests = 0
    const receiver = await receiverDuringTest((response) => {
      requests++
      if (requests === 2) response.socket?.resetAndDestroy()
      else response.writeHead(204).end()
    })
    const test = (one: SendOne) => Effect.all([one(receiver.url), one(receiver.url)])
    expect(await sendingBy(`http://127.0.0.1:${port}`, test)).toEqual([204, 204])
    expect(requests).toBe(3)
    expect(proxy.stats.connectRequestCount).toBe(2)
  })

  it("may close idle tunnels", async () => {
    const { port, proxy } = await startProxy(certified("127.0.0.1"))
    const secure = await startSecureReceiver("receiver.test")
    const url = `https://receiver.test:${secure.port}/`
    const test = (one: SendOne) =>
      Effect.gen(function* () {
        const before = yield* one(url)
        proxy.closeConnections()
        return [before, yield* one(url)]
      })
    expect(await sendingBy(`https://127.0.0.1:${port}`, test)).toEqual([204, 204])
    expect(proxy.stats.connectRequestCount).toBe(2)
  })

  it("gets the credentials of its URL", async () => {
    const { port } = await startProxy(
      undefined,
      (user, password) => user === "tenure" && password === "s:e/c ü",
    )
    const receiver = await receiverDuringTest()
    const by = (credentials: string) =>
      sendBy(`http://${credentials}127.0.0.1:${port}`, receiver.url)
    expect(await by("tenure:s%3Ae%2Fc%20%C3%BC@")).toBe(204)
    expect(await by("tenure:other@")).toBe("Proxy:407")
    expect(await by("")).toBe("Proxy:407")
    expect(receiver.received).toHaveLength(1)
    expect(receiver.received[0]?.headers).not.toHaveProperty("proxy-authorization")
  })

  it("refuses names of private addresses by its own rules", async () => {
    const { port, targets } = await startProxy()
    const sent = await sendBy(`http://127.0.0.1:${port}`, "https://intranet.test/")
    expect(sent).toBe("Proxy:403")
    expect(targets).toEqual(["intranet.test:443"])
  })

  it("is not asked for addresses that are not allowed, nor for names over http", async () => {
    const { port, targets } = await startProxy()
    const by = proxyTransport({ url: `http://127.0.0.1:${port}` })
    const hosts = ["127.0.0.1", "2130706433", "[::1]", "[::ffff:10.0.0.1]", "localhost"]
    for (const host of hosts) {
      expect(await send(`https://${host}/`, [], by)).toBe("AddressNotAllowed")
    }
    expect(await send("http://receiver.test/", allowed, by)).toBe("AddressNotAllowed")
    expect(targets).toEqual([])
  })

  it("has a certificate of its own name, and the receiver one of its", async () => {
    const { port } = await startProxy(certified("localhost", "receiver.test"))
    const { asked, port: to } = await startSecureReceiver("127.0.0.1", "localhost")
    const mismatch = "ERR_TLS_CERT_ALTNAME_INVALID"
    const url = `https://receiver.test:${to}/`
    expect(await sendBy(`https://127.0.0.1:${port}`, url)).toBe(`Proxy:${mismatch}`)
    expect(await sendBy(`https://localhost:${port}`, url)).toBe(mismatch)
    expect(asked).toEqual([])
  })
})

/** Starts a server that passes each request's head to `answer`. */
const rawProxy = (answer: (socket: Socket, head: string) => void) =>
  rawServer((socket) => socket.once("data", (head) => answer(socket, head.toString())))

type Sockets = Awaited<ReturnType<typeof rawProxy>>["sockets"]

/** Waits until all connections are closed. */
const allClosed = (sockets: Sockets) =>
  expect.poll(() => [...sockets].every(({ destroyed }) => destroyed)).toBe(true)

const target = "http://127.0.0.1:9/hook"

describe("a request for a tunnel", () => {
  it.each([
    ["http://127.0.0.1:8080/a?b", "127.0.0.1:8080"],
    ["http://127.0.0.1/", "127.0.0.1:80"],
    ["http://[::1]:8080/", "[::1]:8080"],
    ["https://[0:0::1]/", "[::1]:443"],
    ["https://Ünicode.test/", "xn--nicode-2ya.test:443"],
    ["https://a.test./", "a.test.:443"],
    ["https://user:password@a.test:1/", "a.test:1"],
    ["https://a!$&'()*+,;=b.test/", "a!$&'()*+,;=b.test:443"],
  ])("names the host and port alone: %s", async (url, host) => {
    const heads: Array<string> = []
    const proxy = await rawProxy((socket, head) => {
      heads.push(head)
      socket.end("HTTP/1.1 403 Forbidden\r\n\r\n")
    })
    expect(await sendBy(proxy.url, url)).toBe("Proxy:403")
    expect(heads).toEqual([
      `CONNECT ${host} HTTP/1.1\r\nhost: ${host}\r\nConnection: close\r\n\r\n`,
    ])
  })

  it.each<[string, string | RegExp, (socket: Socket) => unknown]>([
    ["refuses", "Proxy:403", (socket) => socket.write("HTTP/1.1 403 Forbidden\r\n\r\n")],
    ["refuses with a body", "Proxy:502", (socket) => socket.write("HTTP/1.1 502 A\r\n\r\nbody")],
    ["redirects", "Proxy:302", (socket) => socket.write("HTTP/1.0 302 A\r\nLocation: b\r\n\r\n")],
    [
      "switches protocols",
      "Proxy:101",
      (socket) => socket.write("HTTP/1.1 101 A\r\nConnection: Upgrade\r\nUpgrade: b\r\n\r\n"),
    ],
    ["closes at once", "Proxy:ECONNRESET", (socket) => socket.end()],
    ["resets", "Proxy:ECONNRESET", (socket) => socket.resetAndDestroy()],
    ["closes in the head", "Proxy:ECONNRESET", (socket) => socket.end("HTTP/1.1 200 OK\r\n")],
    ["answers garbage", /^Proxy:HPE_/, (socket) => socket.write("no HTTP at all\r\n\r\n")],
    [
      "confirms with a body",
      /^HPE_/,
      (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"),
    ],
    ["confirms and closes", "ECONNRESET", (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n")],
  ])("fails, and closes its connection, if the proxy %s", async (_name, reason, answer) => {
    const proxy = await rawProxy(answer)
    expect(await sendBy(proxy.url, target)).toEqual(
      typeof reason === "string" ? reason : expect.stringMatching(reason),
    )
    await allClosed(proxy.sockets)
    expect(proxy.sockets.size).toBe(1)
  })

  it("fails if the proxy confirms and closes, or resets, in the TLS handshake", async () => {
    const ends = [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]
    for (const end of ends) {
      const proxy = await rawProxy((socket) => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n")
        socket.once("data", () => end(socket))
      })
      expect(await sendBy(proxy.url, "https://receiver.test/")).toBe("ECONNRESET")
    }
  })

  it.each([
    ["long", "a".repeat(2000)],
    ["deep", `${"a.".repeat(900)}test`],
    ["of symbols", "a!$&'()*+,;=_~`{}b.test"],
    ["absolute", "a.test."],
    ["no name", "-"],
  ])("does no harm in the TLS handshake if the name is %s", async (_name, host) => {
    const proxy = await rawProxy((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      socket.once("data", () => socket.end())
    })
    expect(await sendBy(proxy.url, `https://${host}/`)).toBe("ECONNRESET")
  })

  it("fails if there is no proxy", async () => {
    const closed = `http://127.0.0.1:${await freePort()}`
    expect(await sendBy(closed, target)).toBe("Proxy:ECONNREFUSED")
    expect(await sendBy("http://does-not-exist.invalid", target)).toEqual(
      expect.stringMatching(/^Proxy:(ENOTFOUND|EAI_AGAIN)$/),
    )
    const plain = await receiverDuringTest()
    expect(await sendBy(new URL(plain.url).origin.replace("http:", "https:"), target)).toEqual(
      expect.stringMatching(/^Proxy:(EPROTO|ERR_SSL_)/),
    )
  })

  it("reads at most 16 KiB of the response's head", async () => {
    let written = 0
    const proxy = await rawProxy((socket) => {
      const pour = (): void => {
        while (!socket.destroyed && socket.write(`A: ${"x".repeat(1000)}\r\n`)) written += 1000
      }
      socket.write("HTTP/1.1 200 OK\r\n")
      socket.on("drain", pour)
      pour()
    })
    expect(await sendBy(proxy.url, target)).toBe("Proxy:HPE_HEADER_OVERFLOW")
    await allClosed(proxy.sockets)
    expect(written).toBeLessThan(50_000_000)
  })

  it.each([
    ["silent", ""],
    ["slow", "HTTP/1.1 200 OK\r\nA: "],
  ])("fails if the proxy is %s for ten seconds", async (_name, answer) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    onTestFinished(() => void vi.useRealTimers())
    const proxy = await rawProxy((socket) => {
      socket.write(answer)
      vi.advanceTimersByTime(9999)
      setImmediate(() => vi.advanceTimersByTime(1))
    })
    expect(await sendBy(proxy.url, target)).toBe("Proxy:ETIMEDOUT")
    const areClosed = () => [...proxy.sockets].every(({ destroyed }) => destroyed)
    while (!areClosed()) await new Promise((resolve) => setImmediate(resolve))
  })

  it("loses no bytes that follow the head at once", async () => {
    const proxy = await rawProxy((socket) =>
      socket.write("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
    )
    expect(await sendBy(proxy.url, target)).toBe(201)
  })

  it.each([
    ["answers nothing", "http", ""],
    ["answers half a head", "http", "HTTP/1.1 200 OK\r\nA: "],
    ["does not finish the TLS handshake", "https", ""],
  ])(
    "closes its connection when it is interrupted: the proxy %s",
    async (_name, scheme, answer) => {
      const arrival = gate()
      const closing = gate()
      const proxy = await rawProxy((socket) => {
        socket.on("close", closing.open).write(answer, arrival.open)
        if (answer === "") arrival.open()
      })
      await sendingBy(proxy.url.replace("http", scheme), (one) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(one(target))
          yield* Effect.promise(() => arrival.opened)
          yield* Fiber.interrupt(fiber)
          yield* Effect.promise(() => closing.opened)
        }),
      )
      expect(proxy.sockets.size).toBe(1)
    },
  )

  it("cannot be answered by the receiver", async () => {
    const { port } = await startProxy()
    const answers = [
      ["HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", 407],
      ["Proxy:407\r\n\r\n", expect.stringMatching(/^HPE_/)],
    ] as const
    for (const [answer, result] of answers) {
      const receiver = await rawServer((socket) => socket.once("data", () => socket.end(answer)))
      expect(await sendBy(`http://127.0.0.1:${port}`, receiver.url)).toEqual(result)
    }
  })
})

describe("the URL of a proxy", () => {
  it.each([
    "hidden",
    "//hidden@proxy",
    "proxy:4750",
    "ftp://user:hidden@proxy",
    "socks5://user:hidden@proxy",
    "http://user:hidden@proxy/path",
    "http://user:hidden@proxy?query",
    "http://user:hidden@proxy#hash",
    "http://user:%hidden@proxy",
    "http://user:hidden@",
    "http://user:hidden@proxy:65536",
    5,
    undefined,
  ])("that is invalid is refused without showing it: %s", (url) => {
    const read = proxyTransportOptions.read({ url }, "")
    expect(read).toMatchObject({ _tag: "Failure", failure: expect.any(InvalidInput) })
    expect(JSON.stringify(read)).toMatch(/url(: | )(must be|is missing)|problem/)
    expect(JSON.stringify(read)).not.toContain("hidden")
  })

  it("that is invalid makes the transport throw", () => {
    expect(() => proxyTransport({ url: "http://user:hidden@proxy/path" })).toThrow(
      "url must be the URL of a proxy without a path, such as http://user:password@proxy.internal:4750; received another text",
    )
  })
})
