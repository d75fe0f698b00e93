import { NestFactory } from "@nestjs/core"
import { createTenure } from "tenure"
import { membershipMiddleware } from "tenure/express"
import { memory } from "tenure/memory"
import { nodeTransport } from "tenure/node"
import { AppModule } from "./app.module.js"

const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
await tenure.memberships.createProject("p1")
await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })

const app = await NestFactory.create(AppModule)
app.use(membershipMiddleware(tenure))
await app.listen(process.env["PORT"] ?? 3000)
console.log(`Authorization: Bearer ${token}`)
