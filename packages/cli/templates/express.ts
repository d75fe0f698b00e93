import express from "express"
import { createTenure } from "tenure"
import { membershipMiddleware } from "tenure/express"
import { memory } from "tenure/memory"
import { nodeTransport } from "tenure/node"

const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
await tenure.memberships.createProject("p1")
// Any id of yours is fine as userId: a number as text, a UUID, auth0|…, an e-mail address.
await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })

const app = express()
app.use(membershipMiddleware(tenure))
app.get("/", (_request, response) => void response.send("the rest of your backend"))
app.listen(process.env["PORT"] ?? 3000, (error) => {
  if (error) throw error
  console.log(`Authorization: Bearer ${token}`)
})
