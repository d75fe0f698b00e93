import { once } from "node:events"
import * as Http2 from "node:http2"
import { text } from "node:stream/consumers"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport, toNodeHandler } from "@tenure/node-http"
import { expect, it } from "vitest"
import { body, extendOne } from "./support.ts"

it("a request over HTTP/2 may have a body of which no length is announced", async () => {
  const tenure = await Tenure.make({ stores: memory(), transport: nodeTransport })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_000_000_000_000 })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const api = toNodeHandler(tenure)
  const server = Http2.createServer()
  server.on("request", (request, response) => Reflect.apply(api, undefined, [request, response]))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  const port = typeof address === "object" ? address?.port : 0
  const client = Http2.connect(`http://127.0.0.1:${port}`)
  const call = async (content: string) => {
    const stream = client.request({
      ":method": "PATCH",
      ":path": extendOne,
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
    })
    stream.end(content)
    return JSON.parse(await text(stream))
  }
  expect(await call(body)).toMatchObject({ code: 200, total: 1 })
  expect(await call(body.padEnd(100_000))).toMatchObject({ code: 413 })
  expect(await call("")).toMatchObject({ code: 400 })
  // A request that is cancelled halfway changes nothing, although what has come of it is whole.
  const before = await tenure.memberships.history({ projectId: "p1" })
  const cancelled = client.request({
    ":method": "PATCH",
    ":path": extendOne,
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "content-length": body.length + 40,
  })
  cancelled.on("error", () => {})
  cancelled.write(body)
  await once(server, "request")
  cancelled.close(Http2.constants.NGHTTP2_CANCEL)
  await once(cancelled, "close")
  expect(await call("")).toMatchObject({ code: 400 })
  expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
  client.close()
  server.close()
  await tenure.close()
})
