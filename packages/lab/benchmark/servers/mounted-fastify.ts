/** Tenure mounted in Fastify. */

import { membershipPlugin } from "@tenure/fastify"
import fastify from "fastify"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const app = fastify()
await app.register(membershipPlugin, { tenure: await makeFilled() })
announcePort(await app.listen({ port: 0, host: "127.0.0.1" }))
