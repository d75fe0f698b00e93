import { once } from "node:events"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { attachRealtime } from "@tenure/node-http"
import express from "express"
import { expect, it } from "vitest"
import { membershipMiddleware } from "../src/index.ts"

it("the server of Express follows the feed by WebSocket, below the path of the mount", async () => {
  const tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
  const app = express().use("/members", membershipMiddleware(tenure))
  const server = app.listen(0, "127.0.0.1")
  await once(server, "listening")
  const realtime = attachRealtime(server, tenure, {
    mountPath: "/members",
    authenticate: ({ url }) =>
      url === "/members/v2/realtime?as=ann" ? { keyId: "ann", projects: ["p1"] } : undefined,
  })
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  const socket = new WebSocket(`ws://127.0.0.1:${port}/members/v2/realtime?as=ann`, "tenure.v1")
  await once(socket, "open")
  socket.send(JSON.stringify({ type: "subscribe", project: "p1" }))
  const [{ data }] = await once(socket, "message")
  expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
  realtime.close()
  const [{ code }] = await once(socket, "close")
  expect(code).toBe(1001)
  server.close()
  await tenure.close()
})
