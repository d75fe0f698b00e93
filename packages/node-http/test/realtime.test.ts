/** WebSocket connections, and upgrades that are ignored. */

import { once } from "node:events"
import * as Http from "node:http"
import * as Net from "node:net"
import { send } from "@tenure/testing/conformance"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { WebSocket, WebSocketServer } from "ws"
import { toNodeHandler } from "../src/handler.ts"
import { attachRealtime } from "../src/realtime.ts"
import { serve } from "../src/server.ts"
import { type Running, listenDuringTest, prepared, serving } from "./support.ts"
import { connect } from "./web-socket-client.ts"

const bearer = ({ token }: { readonly token: string }) => ({ authorization: `Bearer ${token}` })

const subscribe = { type: "subscribe", project: "p1" }

const publish = ({ tenure }: Running, type: string) =>
  tenure.events.publish({ projectId: "p1", type, data: { of: type } })

/** A connection's path, with a new ticket for the project. */
const ticketPath = async (running: Running): Promise<string> => {
  const { body } = await send(running.url, {
    method: "POST",
    path: "/v2/realtime/tickets",
    headers: { ...bearer(running), "content-type": "application/json" },
    body: JSON.stringify({ projects: ["p1"] }),
  })
  return `/v2/realtime?ticket=${Object(body).data.ticket}`
}

describe("a connection", () => {
  it("gets the events of a project, each page with its cursor", () =>
    serving(async (running) => {
      const client = await connect(running.url, bearer(running))
      client.send({ ...subscribe, types: ["a.b"] })
      const [first] = await client.frames(1)
      expect(first).toEqual({ type: "cursor", cursor: expect.any(String) })
      await publish(running, "other")
      const id = await publish(running, "a.b")
      const [, event, cursor] = await client.frames(3)
      expect(event).toEqual({
        type: "event",
        event: { id, type: "a.b", timestamp: expect.any(String), data: { of: "a.b" } },
      })
      expect(cursor).toEqual({ type: "cursor", cursor: expect.any(String) })
    }))

  it("goes on exactly after the cursor of one that was cut", () =>
    serving(async (running) => {
      const before = await connect(running.url, bearer(running))
      before.send(subscribe)
      await before.frames(1)
      const ids = [await publish(running, "a")]
      const { cursor: after } = (await before.frames(3))[2] ?? expect.fail("there is no cursor")
      before.webSocket.terminate()
      for (const type of ["b", "c"]) ids.push(await publish(running, type))
      const later = await connect(running.url, bearer(running))
      later.send({ ...subscribe, after })
      const frames = await later.frames(3)
      expect(frames).toMatchObject([
        { event: { id: ids[1] } },
        { event: { id: ids[2] } },
        { type: "cursor" },
      ])
    }))

  it("is told to begin anew if its cursor has expired, and can do so", () =>
    serving(async (running) => {
      const client = await connect(running.url, bearer(running))
      client.send({ ...subscribe, after: "of.another.history" })
      expect(await client.frames(1)).toEqual([{ type: "reset", reason: "cursor_expired" }])
      client.send(subscribe)
      expect((await client.frames(2))[1]).toMatchObject({ type: "cursor" })
    }))

  it("opens with a ticket, once", () =>
    serving(async (running) => {
      const path = await ticketPath(running)
      const client = await connect(running.url, {}, path)
      client.send(subscribe)
      expect(await client.frames(1)).toMatchObject([{ type: "cursor" }])
      await expect(connect(running.url, {}, path)).rejects.toThrow("401")
    }))

  const pongs = Array.from({ length: 100 }, () => ({ type: "pong" }))

  it.each<readonly [string, ReadonlyArray<unknown>, number]>([
    ["a frame that is not JSON", ["{"], 4400],
    ["a frame that is no object", ["7"], 4400],
    ["an unknown type", [{ type: "unsubscribe" }], 4400],
    ["an unknown field", [{ ...subscribe, afterr: "start" }], 4422],
    ["a subscription without a project", [{ type: "subscribe" }], 4422],
    ["an invalid cursor", [{ ...subscribe, after: " " }], 4422],
    ["invalid types", [{ ...subscribe, types: [7] }], 4422],
    ["a project that the key does not open", [{ ...subscribe, project: "p2" }], 4404],
    ["a frame that is long", [{ ...subscribe, after: "x".repeat(17_000) }], 1009],
    ["a binary frame", [new Uint8Array(3)], 1003],
    ["a second subscription", [subscribe, subscribe], 4400],
    ["too many frames", pongs, 4429],
  ])("is closed after %s", async (_name, frames, code) => {
    await serving(async (running) => {
      const client = await connect(running.url, bearer(running))
      for (const frame of frames) client.send(frame)
      expect(await client.closed).toBe(code)
    })
  })

  it("is closed after too many pings or pongs, and cut if they go on", () =>
    serving(async (running) => {
      for (const kind of ["ping", "pong"] as const) {
        const some = await connect(running.url, bearer(running))
        for (let count = 0; count < 20; count++) some.webSocket[kind]()
        some.send(subscribe)
        expect(await some.closed).toBe(4429)
      }
      const flood = await openRaw(running)
      const ping = Buffer.concat([Buffer.from([0x89, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125)])
      // Nothing else ends the connection: the time in which a client has to close, too, does not pass.
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
      flood.on("error", () => {}).write(Buffer.alloc(1_000_000, ping))
      await new Promise((resolve) => flood.resume().on("close", resolve))
      vi.useRealTimers()
    }))
})

/** Sends a request with some header fields, and returns the response and its text. */
const respond = async (
  url: string,
  headers: Http.OutgoingHttpHeaders,
  method = "GET",
  body?: string,
) => {
  const request = Http.request(url, { method, headers })
  request.end(body)
  const [response]: Array<Http.IncomingMessage> = await once(request, "response")
  return { response, text: (await response?.toArray())?.join("") ?? "" }
}

/** Sends a request for a connection, and returns the response that refuses it. */
const refused = async (
  url: string,
  headers: Http.OutgoingHttpHeaders,
  path = "/v2/realtime",
  method = "GET",
) => {
  const upgrade = { connection: "upgrade", upgrade: "websocket" }
  const key = { "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==", "sec-websocket-version": "13" }
  const fields = { ...upgrade, ...key, ...headers }
  const { response, text } = await respond(new URL(path, url).href, fields, method)
  const body: unknown = JSON.parse(text)
  return { status: response?.statusCode, headers: response?.headers, body: Object(body) }
}

describe("a request for a connection", () => {
  it("is answered as all others before it is one", () =>
    serving(async (running) => {
      const stranger = await refused(running.url, { "sec-websocket-protocol": "tenure.v1" })
      expect(stranger).toMatchObject({
        status: 401,
        headers: { "www-authenticate": "Bearer", "x-ratelimit-limit": "300" },
        body: { ok: false, code: 401, path: "/v2/realtime", error: { error_code: "UNAUTHORIZED" } },
      })
      const other = await refused(running.url, {
        ...bearer(running),
        "sec-websocket-protocol": "soap",
      })
      expect([other.status, other.body.error.error_code]).toEqual([400, "MALFORMED_REQUEST"])
      const http = await refused(running.url, { ...bearer(running), upgrade: "h2c" })
      expect(http).toMatchObject({ status: 426, headers: { upgrade: "websocket" } })
      const plain = await send(running.url, { method: "GET", path: "/v2/realtime", headers: {} })
      expect(plain).toMatchObject({ status: 426, headers: { upgrade: "websocket" } })
    }))

  it("is refused if the key has ten connections", () =>
    serving(async (running) => {
      const open = () => connect(running.url, bearer(running))
      const clients = await Promise.all(Array.from({ length: 10 }, open))
      const eleventh = await refused(running.url, {
        ...bearer(running),
        "sec-websocket-protocol": "tenure.v1",
      })
      expect(eleventh).toMatchObject({ status: 429, headers: { "retry-after": "20" } })
      clients[0]?.webSocket.terminate()
      await expect.poll(() => open().then(({ webSocket }) => webSocket.terminate())).toBeUndefined()
    }))

  it("that is no handshake is answered with an envelope, and uses up no ticket", () =>
    serving(async (running) => {
      const path = await ticketPath(running)
      const cases: ReadonlyArray<readonly [Http.OutgoingHttpHeaders, object, string?]> = [
        [{ "sec-websocket-key": "" }, { status: 400 }],
        [{ "sec-websocket-key": "AAAA" }, { status: 400 }],
        [{ "sec-websocket-protocol": "tenure.v1, tenure.v1" }, { status: 400 }],
        [{ "sec-websocket-protocol": "tenure.v1,, a" }, { status: 400 }],
        [{ "sec-websocket-version": "8" }, { headers: { "sec-websocket-version": "13" } }],
        [{ upgrade: "websocket, h2c" }, { status: 426 }],
        [{}, { status: 405, headers: { allow: "GET" } }, "POST"],
      ]
      for (const [headers, expected, method] of cases) {
        const fields = { "sec-websocket-protocol": "tenure.v1", ...headers }
        const response = await refused(running.url, fields, path, method)
        expect(response).toMatchObject({ body: { ok: false, code: response.status }, ...expected })
      }
      // The host's own parameter does not hurt.
      await connect(running.url, {}, `${path}&as=ann`)
    }))

  it("that cannot be read is answered so", () =>
    serving(async (running) => {
      const long = { method: "GET", path: "/v2/realtime", headers: { a: "a".repeat(20_000) } }
      expect(await send(running.url, long)).toMatchObject({ status: 431 })
    }))

  it("leaves no slot taken if the handshake fails", () =>
    serving(async (running) => {
      const headers = { ...bearer(running), "sec-websocket-protocol": "tenure.v1" }
      for (let count = 0; count < 12; count++) {
        const fields = { ...headers, connection: "upgrade", upgrade: "websocket" }
        const { response } = await respond(`${running.url}/v2/realtime`, fields)
        expect(response?.statusCode).toBe(426)
      }
      await connect(running.url, bearer(running))
    }))
})

/** Runs a test on a host's server with its own path. */
const onHost = async (test: (server: Http.Server, running: Running) => Promise<void>) => {
  const { tenure, token } = await prepared()
  const handler = toNodeHandler(tenure)
  const server = Http.createServer((request, response) =>
    handler(request, response, () => {
      void request.toArray().then((chunks) => response.end(`own ${chunks.join("")}`))
    }),
  )
  const attached = attachRealtime(server, tenure)
  const url = await listenDuringTest(server)
  onTestFinished(() => attached.close())
  await test(server, { url, token, tenure })
}

it("a server that drains asks clients to connect again, and accepts further connections", async () => {
  const { tenure, token } = await prepared()
  const server = await serve(tenure)
  const before = await connect(server.url, bearer({ token }))
  server.drain()
  expect(await before.closed).toBe(1001)
  const later = await connect(server.url, bearer({ token }))
  later.send(subscribe)
  expect(await later.frames(1)).toMatchObject([{ type: "cursor" }])
  await server.close()
  expect(await later.closed).toBe(1001)
})

describe("the server of a host", () => {
  it("answers requests that ask for other protocols as if they had not", () =>
    onHost(async (_server, { url }) => {
      for (const [method, body] of [
        ["GET", undefined],
        ["POST", "a body"],
      ] as const) {
        const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c" }
        const { text } = await respond(url, headers, method, body)
        expect(text).toBe(`own ${body ?? ""}`)
      }
    }))

  it("keeps the upgrades of its own", () =>
    onHost(async (server, running) => {
      server.on("upgrade", ({ url }, socket) => {
        if (url === "/own")
          socket.end(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\nown",
          )
      })
      const request = Http.request(new URL("/own", running.url), {
        headers: { connection: "upgrade", upgrade: "own" },
      })
      request.end()
      const [response]: Array<Http.IncomingMessage> = await once(request, "upgrade")
      expect(response?.headers.upgrade).toBe("own")
      const client = await connect(running.url, bearer(running))
      client.send(subscribe)
      expect(await client.frames(1)).toMatchObject([{ type: "cursor" }])
      client.webSocket.close()
      expect(await client.closed).toBe(1005)
    }))
})

const requestOf = (line: string, ...fields: ReadonlyArray<string>): string =>
  `${[`${line} HTTP/1.1`, "Host: x", ...fields].join("\r\n")}\r\n\r\n`

const upgradeTo = (protocol: string) => ["Connection: Upgrade", `Upgrade: ${protocol}`]

/** A request for a connection. */
const opening = (token: string): string =>
  requestOf(
    "GET /v2/realtime",
    ...upgradeTo("websocket"),
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: tenure.v1",
    `Authorization: Bearer ${token}`,
  )

/** Answers with the request in a header, and with a body that exceeds what a socket takes at once. */
const echo: Http.RequestListener = (request, response) => {
  request.resume().on("end", async () => {
    if (request.url === "/later") await new Promise((resolve) => setImmediate(resolve))
    if (request.url === "/closing") response.setHeader("connection", "close")
    response.writeHead(200, { "x-request": `${request.method} ${request.url}` })
    response.write("x".repeat(100_000))
    response.once("drain", () => response.end("x".repeat(100_000)))
    if (request.method === "HEAD") response.end()
  })
}

/** Runs a test with both kinds, which answer all requests by `echo`. */
const withEcho = async (test: (running: Running) => Promise<void>): Promise<void> => {
  await serving(test, { listener: echo })
  await onHost(async (server, running) => {
    server.removeAllListeners("request").on("request", echo)
    await test(running)
  })
}

/** Sends a text at once, and returns the requests that are answered until the connection closes. */
const answered = async (
  url: string,
  sent: string,
  isEnd = false,
): Promise<ReadonlyArray<string | undefined>> => {
  const socket = Net.connect(Number(new URL(url).port), "127.0.0.1")
  if (isEnd) socket.end(sent)
  else socket.write(sent)
  const received = (await socket.toArray()).join("")
  return [...received.matchAll(/^x-request: (.*)\r$/gm)].map(([, request]) => request)
}

describe("an upgrade that is ignored", () => {
  const last = requestOf("GET /last", "Connection: close")

  it.each([
    ["for HTTP/2", requestOf("GET /a", ...upgradeTo("h2c"))],
    ["for a WebSocket elsewhere", requestOf("GET /a", ...upgradeTo("websocket"))],
    ["for TLS", requestOf("OPTIONS /a", ...upgradeTo("TLS/1.0"))],
    ["in a HEAD", requestOf("HEAD /a", ...upgradeTo("h2c"))],
    ["with a body", `${requestOf("POST /a", "Content-Length: 2", ...upgradeTo("h2c"))}ab`],
    [
      "with a body in chunks",
      `${requestOf("POST /a", "Transfer-Encoding: chunked", ...upgradeTo("h2c"))}1\r\na\r\n0\r\n\r\n`,
    ],
    [
      "with a body that it announces",
      `${requestOf("PUT /a", "Expect: 100-continue", "Content-Length: 2", ...upgradeTo("h2c"))}ab`,
    ],
    ["to a path of the API", requestOf("GET /v2/projects", ...upgradeTo("h2c"))],
  ])("is answered in its order behind others, and those behind it are: %s", (_name, request) =>
    withEcho(async ({ url }) => {
      const get = requestOf("GET /b")
      const sent = [request, get, get, request, request, get, request, last]
      const lines = sent.map((one) => one.slice(0, one.indexOf(" HTTP/1.1")))
      expect(await answered(url, sent.join(""))).toEqual(lines)
    }),
  )

  it("is answered, too, with a long body after a connection has sent many requests at once", () =>
    withEcho(async ({ url }) => {
      const many = Array.from({ length: 200 }, () => requestOf("HEAD /a"))
      expect(await answered(url, many.join("") + last)).toHaveLength(201)
      const upgrade = requestOf("PUT /a", "Content-Length: 5000", ...upgradeTo("h2c"))
      const sent = requestOf("GET /b") + upgrade + "x".repeat(5000) + last
      expect(await answered(url, sent)).toEqual(["GET /b", "PUT /a", "GET /last"])
      const alone = upgrade + "x".repeat(5000) + last
      expect(await answered(url, alone)).toEqual(["PUT /a", "GET /last"])
    }))

  it("is answered behind another, too, if the client ends behind it", () =>
    withEcho(async ({ url }) => {
      const head = requestOf("HEAD /later")
      const upgrade = requestOf("HEAD /later", ...upgradeTo("h2c"))
      for (const sent of [head + upgrade, head + upgrade + head]) {
        const count = sent.split("HEAD").length - 1
        expect(await answered(url, sent, true)).toEqual(Array(count).fill("HEAD /later"))
      }
    }))

  it("leaves the earlier response, and no other, if that closes the connection", () =>
    withEcho(async ({ url }) => {
      const sent = requestOf("GET /closing") + requestOf("GET /a", ...upgradeTo("h2c"))
      expect(await answered(url, sent)).toEqual(["GET /closing"])
    }))

  it("is answered by HTTP/1.0, too, which closes the connection", () =>
    withEcho(async ({ url }) => {
      const sent = requestOf("GET /a", ...upgradeTo("h2c")).replace("HTTP/1.1", "HTTP/1.0")
      expect(await answered(url, sent)).toEqual(["GET /a"])
    }))

  it("is ignored, too, beside listeners of the host, if it is to a path of the API", () =>
    onHost(async (server, running) => {
      const others = new WebSocketServer({ server, path: "/chat" })
      const headers = { connection: "Upgrade", upgrade: "h2c" }
      const response = await send(running.url, { method: "GET", path: "/v2/projects", headers })
      expect(response.status).toBe(401)
      others.close()
    }))
})

describe("a connection", () => {
  it("opens after the earlier requests on it are answered", () =>
    withEcho(async ({ token, url }) => {
      const socket = Net.connect(Number(new URL(url).port), "127.0.0.1")
      socket.write(requestOf("GET /a") + requestOf("GET /b") + opening(token))
      let received = ""
      for await (const chunk of socket) {
        received += String(chunk)
        if (received.includes("HTTP/1.1 101")) break
      }
      expect(received.match(/^(x-request: .*|HTTP\/1\.1 101 .*)\r$/gm)).toHaveLength(3)
      expect(received.lastIndexOf("x-request: GET /b")).toBeLessThan(
        received.indexOf("HTTP/1.1 101"),
      )
      socket.destroy()
    }))

  it("opens beside another server of WebSockets for a path of its own", () =>
    onHost(async (server, running) => {
      const others = new WebSocketServer({ server, path: "/chat" })
      await connect(running.url, bearer(running))
      const chat = new WebSocket(`${running.url.replace("http", "ws")}/chat`)
      await once(chat, "open")
      chat.terminate()
      others.close()
    }))

  it("opens at each of several APIs on one server", () =>
    onHost(async (server, running) => {
      const { tenure: other, token } = await prepared()
      const attached = attachRealtime(server, other, { mountPath: "/other" })
      await connect(running.url, bearer(running))
      await connect(running.url, bearer({ token }), "/other/v2/realtime")
      const { response } = await respond(running.url, { connection: "Upgrade", upgrade: "x" })
      expect(response?.statusCode).toBe(200)
      attached.close()
    }))
})

it("a connection whose upgrades are ignored gathers no listeners, and is closed after a hundred", () =>
  serving(async ({ url }) => {
    const socket = Net.connect(Number(new URL(url).port), "127.0.0.1")
    const ended = once(socket, "close")
    const warnings: Array<Error> = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on("warning", onWarning)
    for (let count = 1; count <= 100; count++) {
      socket.write(
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
      )
      const [response]: Array<Buffer> = await once(socket, "data")
      expect(String(response)).toMatch(/^HTTP\/1.1 404 /)
      expect(/^Connection: close\r$/im.test(String(response))).toBe(count === 100)
    }
    await ended
    process.off("warning", onWarning)
    // Node warns about more than ten listeners.
    expect(warnings).toEqual([])
  }))

/** Opens a connection by hand, and returns its socket after the handshake. */
const openRaw = async ({ token, url }: Running): Promise<Net.Socket> => {
  const socket = Net.connect(Number(new URL(url).port), "127.0.0.1")
  socket.write(opening(token))
  const [head]: Array<Buffer> = await once(socket, "data")
  expect(String(head)).toMatch(/^HTTP\/1.1 101 /)
  return socket
}

/** A frame whose mask is zeros. */
const masked = (first: number, payload: Buffer): Buffer => {
  const head = Buffer.from([first, 0x80 | 126, 0, 0, 0, 0, 0, 0])
  head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, payload])
}

const text = (frame: unknown): Buffer => masked(0x81, Buffer.from(JSON.stringify(frame)))

/** Returns the code in the close frame that a socket receives at its end. */
const codeOf = async (socket: Net.Socket): Promise<number> => {
  const chunks = Buffer.concat(await socket.toArray())
  return chunks.subarray(chunks.lastIndexOf(0x88)).readUInt16BE(2)
}

describe("bytes that are no protocol", () => {
  it.each<readonly [string, Buffer, number]>([
    ["a frame without a mask", Buffer.from([0x81, 0x01, 0x61]), 1002],
    ["a reserved opcode", Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ["a long control frame", masked(0x89, Buffer.alloc(200)), 1002],
    ["text that is not UTF-8", masked(0x81, Buffer.alloc(2, 0xff)), 1007],
    ["the head of a frame of 2 GB", Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x80, 0, 0, 0]), 1009],
    [
      "a long message in many fragments",
      Buffer.concat([
        masked(0x01, Buffer.alloc(1000, 0x61)),
        ...Array.from({ length: 40 }, () => masked(0x00, Buffer.alloc(1000, 0x61))),
      ]),
      1009,
    ],
  ])("%s closes the connection", async (_name, bytes, code) => {
    await serving(async (running) => {
      const socket = await openRaw(running)
      socket.write(bytes)
      expect(await codeOf(socket)).toBe(code)
    })
  })

  it("do not disturb other connections, and neither does one that reads nothing", () =>
    serving(async (running) => {
      const reader = await connect(running.url, bearer(running))
      reader.send(subscribe)
      await reader.frames(1)
      const deaf = await openRaw(running)
      deaf.write(text({ ...subscribe, after: "start" }))
      deaf.pause()
      for (let count = 0; count < 50; count++) deaf.write(masked(0x89, Buffer.alloc(100)))
      const data = "x".repeat(60_000)
      for (let count = 0; count < 60; count++) {
        await running.tenure.events.publish({ projectId: "p1", type: "a", data })
      }
      const frames = await reader.frames(61)
      expect(frames.filter(({ type }) => type === "event").length).toBeGreaterThan(29)
      deaf.destroy()
      const half = await openRaw(running)
      half.end()
      await once(half.resume(), "close")
    }))
})

it("a WebSocket of the runtime needs no library", () =>
  serving(async (running) => {
    expect(globalThis.WebSocket).not.toBe(WebSocket)
    const url = running.url.replace("http", "ws") + (await ticketPath(running))
    const socket = new globalThis.WebSocket(url, "tenure.v1")
    socket.addEventListener("open", () => socket.send(JSON.stringify(subscribe)))
    const [{ data }] = await once(socket, "message")
    expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
    socket.close()
  }))
