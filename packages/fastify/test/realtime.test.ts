import { once } from "node:events"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { attachRealtime } from "@tenure/node-http"
import fastify from "fastify"
import { expect, it } from "vitest"
import { membershipPlugin } from "../src/index.ts"

it("the server of Fastify follows the feed by WebSocket, and closes with its connections", async () => {
  const tenure = await createTenure({
    stores: memory(),
    authenticate: () => ({ keyId: "ann", projects: ["p1"] }),
  })
  await tenure.memberships.createProject("p1")
  const app = fastify()
  await app.register(membershipPlugin, { tenure })
  const realtime = attachRealtime(app.server, tenure)
  app.addHook("preClose", async () => realtime.close())
  const url = await app.listen()
  const socket = new WebSocket(`${url.replace("http", "ws")}/v2/realtime`, "tenure.v1")
  await once(socket, "open")
  socket.send(JSON.stringify({ type: "subscribe", project: "p1" }))
  const [{ data }] = await once(socket, "message")
  expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
  const closed = once(socket, "close")
  await app.close()
  const [{ code }] = await closed
  expect(code).toBe(1001)
  await tenure.close()
})
