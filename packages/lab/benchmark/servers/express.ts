/** Express with express-rate-limit and zod. */

import { createServer } from "node:http"
import express from "express"
import { rateLimit } from "express-rate-limit"
import * as z from "zod"
import { authenticate, extend } from "./homemade.ts"
import { listen } from "./server.ts"
import { highLimit, isRealInstant, route } from "./workload.ts"

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
  const key = authenticate(request.headers.authorization)
  if (key === undefined) return void response.status(401).json({ ok: false })
  const body = schema.safeParse(request.body)
  if (!body.success) return void response.status(422).json({ ok: false })
  const { method, params, path } = request
  const envelope = extend({ key, method, path, ...params, extend: body.data.extend })
  response.setHeader("Cache-Control", "no-store")
  return void (envelope === undefined
    ? response.status(404).json({ ok: false })
    : response.json(envelope))
})

listen(createServer(app))
