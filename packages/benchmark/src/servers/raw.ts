/** The least that node:http can do: read and parse the body, and answer a constant. */

import { createServer } from "node:http"
import { listen } from "./server.ts"
import { envelope, headers } from "./workload.ts"

const length = Buffer.byteLength(envelope)

listen(
  createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      JSON.parse(Buffer.concat(chunks).toString())
      response.writeHead(200, { ...headers, "Content-Length": length })
      response.end(envelope)
    })
  }),
)
