import { createServer } from "node:http"
import { createTenure } from "tenure"
import { memory } from "tenure/memory"
import { nodeTransport, toNodeHandler } from "tenure/node"

const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
await tenure.memberships.createProject("p1")
await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })

const api = toNodeHandler(tenure)
const server = createServer((request, response) => {
  api(request, response, () => response.end("the rest of your backend"))
})
server.listen(process.env["PORT"] ?? 3000, () => console.log(`Authorization: Bearer ${token}`))
