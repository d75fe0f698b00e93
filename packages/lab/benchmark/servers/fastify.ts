/** Fastify with its usual plug-ins, in memory. */

import { type ExtendRoute, extendSchema, makeApp } from "./fastify-app.ts"
import { authenticate, extend } from "./homemade.ts"
import { announce } from "./server.ts"
import { route } from "./workload.ts"

const app = await makeApp()

app.patch<ExtendRoute>(route, { schema: extendSchema }, async (request, reply) => {
  const key = authenticate(request.headers.authorization)
  if (key === undefined) return reply.code(401).send({ ok: false })
  const { body: given, method, params, url } = request
  const envelope = extend({ key, method, path: url, ...params, extend: given.extend })
  void reply.header("Cache-Control", "no-store")
  return envelope ?? reply.code(404).send({ ok: false })
})

const url = await app.listen({ port: 0, host: "127.0.0.1" })
announce(Number(new URL(url).port))
