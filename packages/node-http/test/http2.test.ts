/** The API over HTTP/2. */

import { once } from "node:events"
import * as Http2 from "node:http2"
import { text } from "node:stream/consumers"
import type { Tenure } from "@tenure/core"
import { expect, it, onTestFinished } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { answering, body, extendOne, listenDuringTest, prepared } from "./support.ts"

/** Starts a server, and connects a client to it. */
const connected = async (server: Http2.Http2Server): Promise<Http2.ClientHttp2Session> => {
  const client = Http2.connect(await listenDuringTest(server))
  onTestFinished(() => client.close())
  return client
}

/** Starts Tenure and its server, connects a client, and returns a function to send requests. */
const serving = async (
  toServer: (tenure: Tenure) => Http2.Http2Server = (tenure) =>
    Http2.createServer(toNodeHandler(tenure)),
) => {
  const { tenure, token } = await prepared()
  const server = toServer(tenure)
  const client = await connected(server)
  const request = (more: Http2.OutgoingHttpHeaders = {}): Http2.ClientHttp2Stream =>
    client.request({
      ":method": "PATCH",
      ":path": extendOne,
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...more,
    })
  /** Sends a request without a content length, and returns the response's parsed body. */
  const call = async (content?: string, more: Http2.OutgoingHttpHeaders = {}): Promise<unknown> =>
    JSON.parse(await text(request(more).end(content)))
  return { call, client, request, server, tenure }
}

it("a body over HTTP/2 needs no content length, and has the same limits", async () => {
  const { call, tenure } = await serving()
  expect(await call(body)).toMatchObject({ code: 200, total: 1 })
  expect(await call(body.padEnd(100_000))).toMatchObject({ code: 413 })
  expect(await call("")).toMatchObject({ code: 400 })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
  const rows = Array.from(
    { length: 10_000 },
    (_, index) => `{"user_id":"${1001 + index}","end_date":1000000000000}\n`,
  )
  const imported = await call(rows.join(""), {
    ":method": "POST",
    ":path": "/v2/projects/p1/memberships/import",
    authorization: `Bearer ${token}`,
    "content-type": "application/x-ndjson",
  })
  expect(imported).toMatchObject({ code: 200, total: 10_000 })
})

it("a request over HTTP/2 that is cancelled changes nothing, although its JSON is complete", async () => {
  const { call, request, server, tenure } = await serving()
  const before = await tenure.memberships.history({ projectId: "p1" })
  const cancelled = request({ "content-length": body.length + 40 })
  cancelled.on("error", () => {})
  cancelled.write(body)
  await once(server, "request")
  cancelled.close(Http2.constants.NGHTTP2_CANCEL)
  await once(cancelled, "close")
  expect(await call("")).toMatchObject({ code: 400 })
  expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
})

it("middleware on HTTP/2 calls next for paths outside the API", async () => {
  const { client } = await serving((tenure) => {
    const api = toNodeHandler(tenure)
    return Http2.createServer((incoming, response) =>
      api(incoming, response, () => response.end('{"own":true}')),
    )
  })
  expect(JSON.parse(await text(client.request({ ":path": "/own" })))).toEqual({ own: true })
})

it("the host authenticates a request over HTTP/2 with all that the request has", async () => {
  const { call, tenure } = await serving((mounted) =>
    Http2.createServer(
      toNodeHandler(mounted, {
        authenticate: ({ authority, headers }: Http2.Http2ServerRequest) =>
          headers.cookie === "session=1" ? { keyId: authority, projects: ["p1"] } : undefined,
      }),
    ),
  )
  expect(await call(body, { cookie: "session=1" })).toMatchObject({ code: 200 })
  const [latest] = await tenure.memberships.history({ projectId: "p1" })
  expect(latest?.origin.keyId).toMatch(/^127\.0\.0\.1:[0-9]+$/)
  expect(await call(body)).toMatchObject({ code: 401 })
})

it("a response over HTTP/2 does not close the connection", async () => {
  const closing = { status: 500, headers: { Connection: "close" }, body: "" }
  const client = await connected(Http2.createServer(toNodeHandler(answering(async () => closing))))
  for (const _ of [1, 2]) {
    const stream = client.request({ ":method": "PATCH", ":path": extendOne })
    stream.end(body)
    const [headers] = await once(stream, "response")
    expect(headers).toMatchObject({ ":status": 500 })
    expect(await text(stream)).toBe("")
  }
})

it("a request for a WebSocket is answered 426, because HTTP/2 has none in this form", async () => {
  const { request } = await serving()
  const stream = request({ ":method": "GET", ":path": "/v2/realtime" }).end()
  const [headers] = await once(stream, "response")
  expect(headers).toMatchObject({ ":status": 426 })
  expect(JSON.parse(await text(stream))).toMatchObject({
    code: 426,
    error: { error_code: "UPGRADE_REQUIRED" },
  })
})
