/** Tenure on PostgreSQL with as many projects as it is told, each with as many keys as follow it. */

import { createTenure } from "@tenure/core"
import { nodeTransport, serve } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { limit } from "./filled.ts"
import { followed } from "./followed.ts"
import { announce } from "./server.ts"

const [, , url = "", schema, projects] = process.argv

const tenure = await createTenure({
  stores: postgres({ url, schema }),
  transport: nodeTransport,
  rateLimits: { perKey: limit, perAddress: limit, burst: limit },
})
for (const { projectId, tokens } of followed(Number(projects))) {
  await tenure.memberships.createProject(projectId)
  await Promise.all(tokens.map((token) => tenure.apiKeys.issue({ projects: [projectId], token })))
}

const server = await serve(tenure)
announce(Number(new URL(server.url).port), () => process.memoryUsage())
