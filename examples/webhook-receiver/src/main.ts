/** A receiver of webhooks: verifies each notification, and prints it. */

import { createServer } from "node:http"
import { buffer } from "node:stream/consumers"
import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"

const secret = WebhookSignature.Secret(process.env["WEBHOOK_SECRET"] ?? "")
const port = Number(process.env["PORT"] ?? 4000)

const print = (text: string) => process.stdout.write(`${text}\n`)

createServer(async (request, response) => {
  const body = await buffer(request)
  const verdict = WebhookSignature.verify({ headers: request.headers, body, now: Date.now() }, [
    secret,
  ])
  print(Result.isSuccess(verdict) ? body.toString() : `refused: ${verdict.failure.message}`)
  response.writeHead(Result.isSuccess(verdict) ? 204 : 400).end()
}).listen(port, "127.0.0.1", () => print(`The receiver listens on http://127.0.0.1:${port}`))
