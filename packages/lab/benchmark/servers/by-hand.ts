/** A request that is read and parsed, and a response with a new id and the end date. No rule holds. */

import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { envelopeOf, headers } from "./workload.ts"

/** Reads the body of a request. */
export const read = (request: IncomingMessage, use: (body: Buffer) => void): void => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => use(Buffer.concat(chunks)))
}

/** Parses a body, and answers. */
export const answer = (body: Buffer, response: ServerResponse): void => {
  const { extend }: { readonly extend: string } = JSON.parse(body.toString())
  const envelope = envelopeOf(randomUUID(), new Date(extend).toISOString())
  response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(envelope) })
  response.end(envelope)
}
