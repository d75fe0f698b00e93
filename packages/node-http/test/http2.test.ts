import { once } from "node:events"
import * as Http2 from "node:http2"
import { text } from "node:stream/consumers"
import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { nodeTransport } from "../src/transport.ts"
import { answering, body, extendOne } from "./support.ts"

interface Listening {
  readonly server: Http2.Http2Server
  readonly client: Http2.ClientHttp2Session
}

let tenure: Tenure
let token: string
const open: Array<Listening> = []

beforeAll(async () => {
  tenure = await createTenure({ stores: memory(), transport: nodeTransport })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_000_000_000_000 })
  token = (await tenure.apiKeys.issue({ projects: ["p1"] })).token
})
afterAll(() => tenure.close())

afterEach(() => {
  for (const { client, server } of open.splice(0)) {
    client.close()
    server.close()
  }
})

/** Starts a server, and connects a client to it. */
const listen = async (server: Http2.Http2Server): Promise<Listening> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  const listening = { server, client: Http2.connect(`http://127.0.0.1:${port}`) }
  open.push(listening)
  return listening
}

const request = (
  client: Http2.ClientHttp2Session,
  more: Http2.OutgoingHttpHeaders = {},
): Http2.ClientHttp2Stream =>
  client.request({
    ":method": "PATCH",
    ":path": extendOne,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    ...more,
  })

/** Sends a request without a content length, and returns the parsed body of the response. */
const call = async (client: Http2.ClientHttp2Session, content: string): Promise<unknown> => {
  const stream = request(client)
  stream.end(content)
  return JSON.parse(await text(stream))
}

it("a body over HTTP/2 needs no content length", async () => {
  const { client } = await listen(Http2.createServer(toNodeHandler(tenure)))
  expect(await call(client, body)).toMatchObject({ code: 200, total: 1 })
  expect(await call(client, body.padEnd(100_000))).toMatchObject({ code: 413 })
  expect(await call(client, "")).toMatchObject({ code: 400 })
})

it("an import over HTTP/2 has up to ten thousand lines", async () => {
  const { client } = await listen(Http2.createServer(toNodeHandler(tenure)))
  const operator = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
  const stream = request(client, {
    ":method": "POST",
    ":path": "/v2/projects/p1/memberships/import",
    authorization: `Bearer ${operator.token}`,
    "content-type": "application/x-ndjson",
  })
  for (let user = 1001; user <= 11_000; user++) {
    stream.write(`{"user_id":"${user}","end_date":1000000000000}\n`)
  }
  stream.end()
  expect(JSON.parse(await text(stream))).toMatchObject({ code: 200, total: 10_000 })
})

it("a request over HTTP/2 that is cancelled changes nothing, although its JSON is complete", async () => {
  const { client, server } = await listen(Http2.createServer(toNodeHandler(tenure)))
  const before = await tenure.memberships.history({ projectId: "p1" })
  const cancelled = request(client, { "content-length": body.length + 40 })
  cancelled.on("error", () => {})
  cancelled.write(body)
  await once(server, "request")
  cancelled.close(Http2.constants.NGHTTP2_CANCEL)
  await once(cancelled, "close")
  expect(await call(client, "")).toMatchObject({ code: 400 })
  expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
})

it("middleware on HTTP/2 calls next for paths outside the API", async () => {
  const api = toNodeHandler(tenure)
  const { client } = await listen(
    Http2.createServer((incoming, response) => {
      api(incoming, response, () => response.end('{"own":true}'))
    }),
  )
  const stream = client.request({ ":path": "/own" })
  expect(JSON.parse(await text(stream))).toEqual({ own: true })
})

it("the host authenticates a request over HTTP/2 with all that the request has", async () => {
  const handler = toNodeHandler(tenure, {
    authenticate: ({ authority, headers }: Http2.Http2ServerRequest) =>
      headers.cookie === "session=1" ? { keyId: authority, projects: ["p1"] } : undefined,
  })
  const { client } = await listen(Http2.createServer(handler))
  const stream = request(client, { cookie: "session=1" })
  stream.end(body)
  expect(JSON.parse(await text(stream))).toMatchObject({ code: 200 })
  const [latest] = await tenure.memberships.history({ projectId: "p1" })
  expect(latest?.origin.keyId).toMatch(/^127\.0\.0\.1:[0-9]+$/)
  const refused = request(client)
  refused.end(body)
  expect(JSON.parse(await text(refused))).toMatchObject({ code: 401 })
})

it("a response over HTTP/2 does not close the connection", async () => {
  const closing = { status: 500, headers: { Connection: "close" }, body: "" }
  const handler = toNodeHandler(answering(async () => closing))
  const { client } = await listen(Http2.createServer(handler))
  for (const _ of [1, 2]) {
    const stream = request(client)
    stream.end(body)
    const [headers] = await once(stream, "response")
    expect(headers).toMatchObject({ ":status": 500 })
    expect(await text(stream)).toBe("")
  }
})

it("answers a request for a WebSocket, which HTTP/2 has not in this form", async () => {
  const { client } = await listen(Http2.createServer(toNodeHandler(tenure)))
  const stream = request(client, { ":method": "GET", ":path": "/v2/realtime" })
  stream.end()
  const [headers] = await once(stream, "response")
  expect(headers[":status"]).toBe(426)
  expect(JSON.parse(await text(stream))).toMatchObject({
    error: { error_code: "UPGRADE_REQUIRED" },
  })
})
