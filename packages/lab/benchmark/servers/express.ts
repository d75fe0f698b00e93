/** Express with express-rate-limit and zod, in memory. */

import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import express from "express"
import { rateLimit } from "express-rate-limit"
import * as z from "zod"
import { authenticate, extend } from "./homemade.ts"
import { listen } from "./server.ts"
import { envelopeOf, highLimit, isRealInstant, route, tokenIn } from "./workload.ts"

const schema = z.object({
  extend: z.union([
    z.int().min(1_000_000_000_000).max(9_999_999_999_999),
    z.string().refine(isRealInstant),
  ]),
})

const app = express()

app.use(
  rateLimit({
    windowMs: 3_600_000,
    limit: highLimit,
    keyGenerator: ({ headers }) => headers.authorization ?? "",
  }),
)
app.use(express.json())

app.patch(route, (request, response) => {
  const refuse = (status: number) => void response.status(status).json({ ok: false })
  const { headers, method, params, path } = request
  const { project, user } = params
  const key = authenticate(tokenIn(headers.authorization))
  if (key === undefined) return refuse(401)
  const body = schema.safeParse(request.body)
  if (!body.success) return refuse(422)
  const endDate = new Date(body.data.extend)
  if (endDate.getTime() <= Date.now()) return refuse(422)
  if (!key.projects.includes(project)) return refuse(404)
  const requestId = randomUUID()
  const isFound = extend({ keyId: key.id, requestId, project, user, endDate })
  if (!isFound) return refuse(404)
  response.setHeader("Cache-Control", "no-store")
  return void response.json(envelopeOf(requestId, endDate.toISOString(), method, path))
})

await listen(createServer(app))
