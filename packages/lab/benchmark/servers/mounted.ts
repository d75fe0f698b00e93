/**
 * Hosts with Tenure mounted in them, or without: then they read and parse the body, and answer a constant with the same
 * size. The arguments are the host, and `bare` for the second.
 */

import { createServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import { membershipMiddleware } from "@tenure/express"
import { membershipPlugin } from "@tenure/fastify"
import { fetchHandler } from "@tenure/fetch"
import express from "express"
import fastify from "fastify"
import { makeFilled } from "./filled.ts"
import { announcePort, listen } from "./server.ts"
import { answerWith, endDate, envelopeOf, headers, route } from "./workload.ts"

const [, , host = "", mode] = process.argv
const tenure = mode === "bare" ? undefined : await makeFilled()
const envelope = JSON.stringify(envelopeOf("b9019cc1-e966-4695-ad2c-6caf64a8431f", endDate))

const answer = async (request: Request): Promise<Response> => {
  await request.json()
  return new Response(envelope, { headers })
}

const hosts: Readonly<Record<string, () => unknown>> = {
  Express: () => {
    const app = express()
    if (tenure !== undefined) app.use(membershipMiddleware(tenure))
    else app.patch(route, express.json(), (_, response) => answerWith(response, envelope))
    return listen(createServer(app))
  },
  Fastify: async () => {
    const app = fastify()
    if (tenure !== undefined) await app.register(membershipPlugin, { tenure })
    else
      app.patch(route, (_, reply) => {
        reply.headers(headers).send(Buffer.from(envelope))
      })
    announcePort(await app.listen({ port: 0, host: "127.0.0.1" }))
  },
  fetch: () => {
    const api = tenure && fetchHandler(tenure)
    const elsewhere = new Response(null, { status: 404 })
    const handle = api && ((request: Request) => api(request) ?? elsewhere.clone())
    return listen(createServer(getRequestListener(handle ?? answer)))
  },
}

await hosts[host]?.()
