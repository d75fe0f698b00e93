/** A request that is read and parsed, and a response that is always the same. */

import type { IncomingMessage, ServerResponse } from "node:http"
import { envelope, headers } from "./workload.ts"

/** Reads the body of a request. */
export const read = (request: IncomingMessage, use: (body: Buffer) => void): void => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => use(Buffer.concat(chunks)))
}

const length = Buffer.byteLength(envelope)

/** Parses a body, and answers. */
export const answer = (body: Buffer, response: ServerResponse): void => {
  JSON.parse(body.toString())
  response.writeHead(200, { ...headers, "Content-Length": length })
  response.end(envelope)
}
