/** The transport: addresses, look-ups, and responses. */

import { createSocket } from "node:dgram"
import { Resolver } from "node:dns"
import { lookup } from "node:dns/promises"
import { once } from "node:events"
import * as Tls from "node:tls"
import { Setting, addressPolicyOptions } from "@tenure/core/internal"
import { AddressPolicy } from "@tenure/core/transport"
import { freePort } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { describe, expect, it } from "vitest"
import { type Resolve, makeDial } from "../src/dial.ts"
import { makeFindInHosts, makeResolve, makeVettedResolve, parseHosts } from "../src/transport.ts"
import { gate, onResponse, send, sending, withTransport } from "./sending.ts"
import { listenDuringTest, rawAnswer, rawServer, receiverDuringTest } from "./support.ts"

const loopback = { address: "127.0.0.1", family: 4 }

/** Returns a name's addresses, or the error's code. */
const resolved = (resolve: Resolve, name: string): Promise<unknown> =>
  new Promise((done) => resolve(name, (error, addresses) => done(error?.code ?? addresses)))

describe("the node transport", () => {
  it("posts the body unchanged, with the headers", async () => {
    const receiver = await receiverDuringTest()
    expect(await send(receiver.url)).toBe(204)
    expect(receiver.received[0]).toMatchObject({
      body: '{"ü":1}',
      headers: { "x-test": "1", "content-length": "8" },
    })
  })

  it("connects to no address outside the allowed networks, however it is written", async () => {
    const receiver = await receiverDuringTest()
    const { port } = new URL(receiver.url)
    const hosts = ["127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost"]
    for (const host of hosts) {
      expect(await send(`http://${host}:${port}/`, [])).toBe("AddressNotAllowed")
    }
    expect(receiver.received).toEqual([])
  })

  it("connects to localhost if its network is allowed, and names it in the Host header and the TLS handshake", async () => {
    const receiver = await receiverDuringTest()
    expect(await send(receiver.url.replace("127.0.0.1", "app.localhost"))).toBe(204)
    const { port } = new URL(receiver.url)
    expect(receiver.received[0]?.headers["host"]).toBe(`app.localhost:${port}`)
    const names: Array<string> = []
    const server = Tls.createServer({
      SNICallback: (name, done) => {
        names.push(name)
        done(new Error("no certificate"))
      },
    })
    const url = await listenDuringTest(server.on("tlsClientError", () => {}))
    const secure = url.replace("http://127.0.0.1", "https://app.localhost")
    expect(await send(secure)).toEqual(expect.any(String))
    expect(names).toEqual(["app.localhost"])
  })

  it("fails with the reason", async () => {
    expect(await send(`http://127.0.0.1:${await freePort()}/`)).toBe("ECONNREFUSED")
    expect(await send("http://does-not-exist.invalid/")).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/)
    const silent = await rawServer((socket) => socket.on("data", () => socket.destroy()))
    expect(await send(silent.url)).toBe("ECONNRESET")
    const invalid = await rawAnswer("no HTTP at all\r\n\r\n")
    expect(await send(invalid.url)).toMatch(/^HPE_/)
    const plain = await receiverDuringTest()
    expect(await send(plain.url.replace("http:", "https:"))).toMatch(/^(EPROTO|ERR_SSL_)/)
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
    expect(await send((await rawAnswer(response)).url)).toBe(status)
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
    expect(await send((await rawAnswer(response, false)).url)).toBe(status)
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
  })

  it("tells the status while the body has not arrived", async () => {
    const server = await rawAnswer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false)
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
  })

  const hints = "HTTP/1.1 103 Early Hints\r\n\r\n"

  it.each([
    [
      "does not follow redirects",
      302,
      "302 A\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0",
    ],
    [
      "skips informational responses",
      201,
      "100 Continue\r\n\r\nHTTP/1.1 201 A\r\nContent-Length: 0",
    ],
    [
      "fails if the receiver switches protocols",
      "NoAnswer",
      "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x",
    ],
  ])("%s: %s", async (_name, outcome, response) => {
    const server = await rawAnswer(`${hints}HTTP/1.1 ${response}\r\n\r\n`, outcome !== "NoAnswer")
    expect(await send(server.url)).toBe(outcome)
  })
})

describe("a hosts file", () => {
  const loopback6 = { address: "::1", family: 6 }

  it.each([
    [
      "several names for an address, and several addresses for a name",
      "127.0.0.1\tlocalhost  app\n::1 localhost\r\n10.0.0.1 db\n",
      {
        localhost: [loopback, loopback6],
        app: [loopback],
        db: [{ address: "10.0.0.1", family: 4 }],
      },
    ],
    [
      "comments, capitals and repeated names",
      "# 10.0.0.1 old\n127.0.0.1 App APP # 127.0.0.1 no\n  ::1 app",
      { app: [loopback, loopback6] },
    ],
    ["lines that are not valid", "localhost 127.0.0.1\n127.0.0.300 app\n127.0.0.1\n\n", {}],
  ])("may contain %s", (_name, text, table) => {
    expect(Object.fromEntries(parseHosts(text))).toEqual(table)
  })

  /** Finds names in files that are read one after another, by a clock that the test sets. */
  const changing = (...readings: ReadonlyArray<Promise<string>>) => {
    const clock = { now: 0 }
    const left = [...readings]
    const find = makeFindInHosts(
      () => left.shift() ?? Promise.resolve(""),
      () => clock.now,
    )
    return { clock, find, left }
  }

  it("is read once for all look-ups within five seconds, and then again", async () => {
    const { clock, find, left } = changing(
      Promise.resolve("127.0.0.1 a b"),
      Promise.resolve("::1 a"),
    )
    const found = await Promise.all([find("a"), find("b"), find("c")])
    expect(found).toEqual([[loopback], [loopback], []])
    clock.now = 4999
    expect(await find("a")).toEqual([loopback])
    expect(left).toHaveLength(1)
    clock.now = 5000
    expect(await find("a")).toEqual([loopback6])
  })

  it("that cannot be read is empty, and is read again after five seconds", async () => {
    const { clock, find } = changing(
      Promise.reject(new Error("EACCES")),
      Promise.resolve("127.0.0.1 a"),
    )
    expect(await find("a")).toEqual([])
    clock.now = 5000
    expect(await find("a")).toEqual([loopback])
  })
})

/** Runs a test with a name server that receives questions and never answers. */
const withSilentServer = async (
  test: (
    find: (name: string) => Promise<unknown>,
    received: () => Promise<unknown>,
  ) => Promise<void>,
): Promise<void> => {
  const server = createSocket("udp4").bind(0, "127.0.0.1")
  await once(server, "listening")
  const resolver = new Resolver({ timeout: 200, tries: 1 })
  resolver.setServers([`127.0.0.1:${server.address().port}`])
  try {
    const resolve = makeResolve(resolver)
    await test(
      (name) => resolved(resolve, name),
      () => once(server, "message"),
    )
  } finally {
    resolver.cancel()
    server.close()
  }
}

describe("resolving a name", () => {
  it("finds names of the hosts file without asking a name server", () =>
    withSilentServer(async (find) => {
      expect(await find("LOCALHOST.")).toContainEqual(loopback)
    }))

  it("fails if no name server answers", () =>
    withSilentServer(async (find) => {
      expect(await find("name.example")).toBe("ETIMEOUT")
    }))

  it("does not hold up other look-ups while many are unanswered", () =>
    withSilentServer(async (find, received) => {
      const unanswered = Array.from({ length: 64 }, (_, index) => find(`name-${index}.example`))
      await received()
      let isWaiting = true
      const all = Promise.all(unanswered).then(() => (isWaiting = false))
      expect(await find("localhost")).toContainEqual(loopback)
      // A look-up that needs a thread gets one.
      await lookup("localhost")
      expect(isWaiting).toBe(true)
      await all
    }))
})

const policyOf = (...allowedNetworks: ReadonlyArray<string>) =>
  Effect.runSync(
    Effect.provide(
      AddressPolicy.use((policy) => Effect.succeed(policy)),
      AddressPolicy.layer(Setting.parse(addressPolicyOptions, { allowedNetworks })),
    ),
  )

/** A resolver that returns the given answers, one for each look-up. */
const resolver = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const names: Array<string> = []
  const resolve: Resolve = (hostname, callback) => {
    const addresses = answers[names.length] ?? []
    names.push(hostname)
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    )
  }
  return { names, resolve }
}

const lookUp = (allowed: ReadonlyArray<string>, resolve: Resolve, name = "name.example") =>
  resolved(makeVettedResolve(policyOf(...allowed), resolve), name)

describe("a host name", () => {
  it("resolves to all its addresses if each is public", async () => {
    const { resolve } = resolver(["93.184.216.34", "2606:2800::1"])
    expect(await lookUp([], resolve)).toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "2606:2800::1", family: 6 },
    ])
  })

  it("is refused if any of its addresses is not public, or it has none", async () => {
    const others = ["127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1", "fe80::1%eth0", "x"]
    for (const address of others) {
      const { resolve } = resolver(["93.184.216.34", address])
      expect(await lookUp([], resolve)).toBe("AddressNotAllowed")
    }
    expect(await lookUp([], resolver([]).resolve)).toBe("AddressNotAllowed")
  })

  it("is checked again for each connection", async () => {
    const { resolve } = resolver(["93.184.216.34"], ["127.0.0.1"])
    expect(await lookUp([], resolve)).toHaveLength(1)
    expect(await lookUp([], resolve)).toBe("AddressNotAllowed")
  })

  it("fails with the error of its look-up", async () => {
    const resolve: Resolve = (_hostname, callback) =>
      callback(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), [])
    expect(await lookUp([], resolve)).toBe("ENOTFOUND")
  })

  it("under localhost is not looked up, and resolves to the permitted loopback addresses", async () => {
    const { names, resolve } = resolver()
    const both = ["127.0.0.0/8", "::1/128"]
    expect(await lookUp(both, resolve, "localhost")).toHaveLength(2)
    expect(await lookUp(["127.0.0.0/8"], resolve, "app.localhost")).toEqual([loopback])
    expect(await lookUp([], resolve, "localhost")).toBe("AddressNotAllowed")
    expect(names).toEqual([])
  })

  it("is resolved once for a connection, which uses that address", async () => {
    const receiver = await receiverDuringTest()
    const { names, resolve } = resolver(["127.0.0.1"], ["10.0.0.1"])
    const dial = makeDial(makeVettedResolve(policyOf("127.0.0.0/8"), resolve))
    const { port } = new URL(receiver.url)
    const address = await new Promise((done) =>
      dial("name.example", Number(port), (error, socket) => {
        done(error ?? socket?.remoteAddress)
        socket?.destroy()
      }),
    )
    expect(address).toBe("127.0.0.1")
    expect(names).toEqual(["name.example"])
  })
})
