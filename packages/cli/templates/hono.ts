import { serve } from "@hono/node-server"
import { getConnInfo } from "@hono/node-server/conninfo"
import { Hono } from "hono"
import { createTenure } from "tenure"
import { fetchHandler } from "tenure/fetch"
import { memory } from "tenure/memory"
import { nodeTransport, orderRequests } from "tenure/node"

const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
await tenure.memberships.createProject("p1")
await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })

const api = fetchHandler(tenure)
const app = new Hono()
app.use(async (context, next) => {
  const remoteAddress = getConnInfo(context).remote.address
  return (await api(context.req.raw, { remoteAddress })) ?? next()
})
app.get("/", (context) => context.text("the rest of your backend"))
orderRequests(serve({ fetch: app.fetch, port: Number(process.env["PORT"] ?? 3000) }))
console.log(`Authorization: Bearer ${token}`)
