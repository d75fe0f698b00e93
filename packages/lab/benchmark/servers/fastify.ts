/**
 * Fastify with @fastify/rate-limit, and JSON schemas for the request and the response: in memory, or with a database's
 * URL, a schema and how many keys there are, on a team's own tables, with a webhook job in the same process. Its one limit for
 * each key is in memory, so several processes would each admit as much; Tenure shares three limits on PostgreSQL.
 */

import { randomUUID } from "node:crypto"
import rateLimit from "@fastify/rate-limit"
import fastify from "fastify"
import { openOwnTables } from "../alternatives/own-table.ts"
import * as homemade from "./homemade.ts"
import { announcePort } from "./server.ts"
import {
  envelopeOf,
  highLimit,
  isRealInstant,
  memberCount,
  projectId,
  route,
  tokenIn,
  tokensOf,
} from "./workload.ts"

const [, , databaseUrl, schema = "", keys] = process.argv

const openTables = async (url: string) => {
  const tables = openOwnTables(url, schema)
  await tables.addMembers(projectId, memberCount)
  await tables.addKeys(tokensOf(Number(keys)), [projectId])
  tables.startJob()
  return tables
}

const { authenticate, extend } =
  databaseUrl === undefined ? homemade : await openTables(databaseUrl)

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

interface ExtendRoute {
  readonly Params: { readonly project: string; readonly user: string }
  readonly Body: { readonly extend: number | string }
}

const formats = { "end-date": { validate: isRealInstant } }
const app = fastify({ ajv: { customOptions: { coerceTypes: false, formats } } })
await app.register(rateLimit, {
  max: highLimit,
  timeWindow: "1 hour",
  cache: 100_000,
  keyGenerator: ({ headers, ip }) => headers.authorization ?? ip,
})

app.patch<ExtendRoute>(route, { schema: { body, response } }, async (request, reply) => {
  const refuse = (status: number) => reply.code(status).send({ ok: false })
  const { body: given, headers, method, params, url: path } = request
  const { project, user } = params
  const key = await authenticate(tokenIn(headers.authorization))
  if (key === undefined) return refuse(401)
  const endDate = new Date(given.extend)
  if (endDate.getTime() <= Date.now()) return refuse(422)
  if (!key.projects.includes(project)) return refuse(404)
  const requestId = randomUUID()
  const isFound = await extend({ keyId: key.id, requestId, project, user, endDate })
  if (!isFound) return refuse(404)
  void reply.header("Cache-Control", "no-store")
  return envelopeOf(requestId, endDate.toISOString(), method, path)
})

announcePort(await app.listen({ port: 0, host: "127.0.0.1" }))
