/**
 * The least that node:http can do: read and parse the body, and answer with a new id and the end date. No rule holds.
 * With the argument `batched`, requests that arrive together are answered together, as by Tenure.
 */

import { randomUUID } from "node:crypto"
import { type ServerResponse, createServer } from "node:http"
import { listen } from "./server.ts"
import { answerWith, envelopeOf } from "./workload.ts"

const answer = (chunks: ReadonlyArray<Buffer>, response: ServerResponse): void => {
  const { extend }: { readonly extend: string } = JSON.parse(Buffer.concat(chunks).toString())
  answerWith(response, JSON.stringify(envelopeOf(randomUUID(), new Date(extend).toISOString())))
}

let waiting: Array<() => void> = []

const answerAll = (): void => {
  const turns = waiting
  waiting = []
  for (const turn of turns) turn()
}

const isBatched = process.argv[2] === "batched"

await listen(
  createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      if (!isBatched) answer(chunks, response)
      else if (waiting.push(() => answer(chunks, response)) === 1) setImmediate(answerAll)
    })
  }),
)
