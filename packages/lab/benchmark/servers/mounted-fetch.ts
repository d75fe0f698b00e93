/** Tenure by fetch: web requests and responses, on node:http. */

import { createServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import { fetchHandler } from "@tenure/fetch"
import { makeFilled } from "./filled.ts"
import { listen } from "./server.ts"

const api = fetchHandler(await makeFilled())
const elsewhere = new Response(null, { status: 404 })

listen(createServer(getRequestListener((request) => api(request) ?? elsewhere.clone())))
