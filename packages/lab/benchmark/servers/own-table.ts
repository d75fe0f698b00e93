/**
 * Fastify on a team's own tables, with a webhook job in the same process. Its one limit for each key is
 * in memory, so several processes would each admit as much; Tenure shares three limits on PostgreSQL.
 */

import { randomUUID } from "node:crypto"
import { openOwnTables } from "../alternatives/own-table.ts"
import { type ExtendRoute, extendSchema, makeApp } from "./fastify-app.ts"
import { announce } from "./server.ts"
import { memberCount, projectId, route, tokensOf } from "./workload.ts"

const [, , databaseUrl = "", schema = "", keys] = process.argv

const tables = openOwnTables(databaseUrl, schema)
await tables.addMembers(projectId, memberCount)
await tables.addKeys(tokensOf(Number(keys)), [projectId])

const app = await makeApp()

app.patch<ExtendRoute>(route, { schema: extendSchema }, async (request, reply) => {
  const { body: given, headers, method, params, url: path } = request
  const [, token = ""] = /^Bearer (.+)$/.exec(headers.authorization ?? "") ?? []
  const key = await tables.authenticate(token)
  if (key === undefined) return reply.code(401).send({ ok: false })
  const { project, user } = params
  const endDate = new Date(given.extend)
  if (endDate.getTime() <= Date.now()) return reply.code(422).send({ ok: false })
  if (!key.projects.includes(project)) return reply.code(404).send({ ok: false })
  const requestId = randomUUID()
  const isFound = await tables.extend({ keyId: key.id, requestId, project, user, endDate })
  if (!isFound) return reply.code(404).send({ ok: false })
  void reply.header("Cache-Control", "no-store")
  return {
    ok: true,
    request_id: requestId,
    method,
    path,
    code: 200,
    total: 1,
    message: "The membership was extended.",
    data: { new_end_date: endDate.toISOString() },
  }
})

tables.startJob()
const url = await app.listen({ port: 0, host: "127.0.0.1" })
announce(Number(new URL(url).port))
