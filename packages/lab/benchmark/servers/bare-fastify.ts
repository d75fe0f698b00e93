/** Fastify that reads and parses the body, and answers a constant of the same size. */

import fastify from "fastify"
import { announcePort } from "./server.ts"
import { envelope, headers, route } from "./workload.ts"

const app = fastify()
app.patch(route, (_request, reply) => {
  reply.headers(headers).send(Buffer.from(envelope))
})
announcePort(await app.listen({ port: 0, host: "127.0.0.1" }))
