import fastify from "fastify"
import { createTenure } from "tenure"
import { membershipPlugin } from "tenure/fastify"
import { memory } from "tenure/memory"
import { nodeTransport } from "tenure/node"

const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
await tenure.memberships.createProject("p1")
await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })

const app = fastify()
await app.register(membershipPlugin, { tenure })
app.addHook("onClose", () => tenure.close())
app.get("/", () => "the rest of your backend")
await app.listen({ port: Number(process.env["PORT"] ?? 3000) })
console.log(`Authorization: Bearer ${token}`)
