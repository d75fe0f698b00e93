/** A web response that is a constant of the same size, to a web request whose body is parsed. */

import { createServer } from "node:http"
import { getRequestListener } from "@hono/node-server"
import { listen } from "./server.ts"
import { envelope, headers } from "./workload.ts"

listen(
  createServer(
    getRequestListener(async (request) => {
      await request.json()
      return new Response(envelope, { headers })
    }),
  ),
)
