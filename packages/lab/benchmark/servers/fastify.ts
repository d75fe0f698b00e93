/** Fastify with @fastify/rate-limit and JSON schemas, for the request and for the response. */

import rateLimit from "@fastify/rate-limit"
import fastify from "fastify"
import { authenticate, extend } from "./homemade.ts"
import { announce } from "./server.ts"
import { highLimit, isRealInstant, route } from "./workload.ts"

const body = {
  type: "object",
  required: ["extend"],
  properties: {
    extend: {
      anyOf: [
        { type: "integer", minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 },
        { type: "string", format: "end-date" },
      ],
    },
  },
} as const

const text = { type: "string" } as const

const response = {
  200: {
    type: "object",
    properties: {
      ok: { type: "boolean" },
      request_id: text,
      method: text,
      path: text,
      code: { type: "integer" },
      total: { type: "integer" },
      message: text,
      data: { type: "object", properties: { new_end_date: text } },
    },
  },
} as const

interface Route {
  readonly Params: { readonly project: string; readonly user: string }
  readonly Body: { readonly extend: number | string }
}

const app = fastify({
  ajv: {
    customOptions: { coerceTypes: false, formats: { "end-date": { validate: isRealInstant } } },
  },
})

await app.register(rateLimit, {
  max: highLimit,
  timeWindow: "1 hour",
  cache: 100_000,
  keyGenerator: ({ headers, ip }) => headers.authorization ?? ip,
})

app.patch<Route>(route, { schema: { body, response } }, async (request, reply) => {
  const key = authenticate(request.headers.authorization)
  if (key === undefined) return reply.code(401).send({ ok: false })
  const { body: given, method, params, url } = request
  const envelope = extend({ key, method, path: url, ...params, extend: given.extend })
  void reply.header("Cache-Control", "no-store")
  return envelope ?? reply.code(404).send({ ok: false })
})

const url = await app.listen({ port: 0, host: "127.0.0.1" })
announce(Number(new URL(url).port))
