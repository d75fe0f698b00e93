/** Express that reads and parses the body, and answers a constant of the same size. */

import { createServer } from "node:http"
import express from "express"
import { listen } from "./server.ts"
import { envelope, headers, route } from "./workload.ts"

const app = express()
app.patch(route, express.json(), (_request, response) => {
  response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(envelope) })
  response.end(envelope)
})
listen(createServer(app))
