/** A receiver of webhooks: verifies each notification, and prints it. */

import { createServer, type IncomingMessage } from "node:http"
import { buffer } from "node:stream/consumers"
import * as WebhookSignature from "@tenure/core/WebhookSignature"
import * as Result from "effect/Result"

const { PORT = "4000", WEBHOOK_SECRET = "" } = process.env

if (!WebhookSignature.Secret.is(WEBHOOK_SECRET)) {
  process.stderr.write("WEBHOOK_SECRET has to be the secret of a webhook: whsec_ and base64.\n")
  process.exit(1)
}
const secrets = [WEBHOOK_SECRET]

const print = (text: string) => process.stdout.write(`${text}\n`)

/** Verifies and prints a notification; gives the status to answer. */
const receive = async (request: IncomingMessage): Promise<number> => {
  const body = await buffer(request)
  const notification = { headers: request.headers, body, now: Date.now() }
  const verdict = WebhookSignature.verify(notification, secrets)
  print(Result.isSuccess(verdict) ? body.toString() : `refused: ${verdict.failure.message}`)
  return Result.isSuccess(verdict) ? 204 : 400
}

createServer(async (request, response) => {
  // A request that breaks off rejects.
  const status = await receive(request).catch(() => 400)
  response.writeHead(status).end()
}).listen(Number(PORT), "127.0.0.1", () =>
  print(`The receiver listens on http://127.0.0.1:${PORT}`),
)
