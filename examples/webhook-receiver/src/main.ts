/** A webhook receiver: verifies each notification and prints it. */

import { createServer } from "node:http"
import { WebhookSecret } from "@tenure/core/signature"
import { verifyWebhook } from "@tenure/node-http"

const { PORT = "4000", WEBHOOK_SECRET = "" } = process.env

if (!WebhookSecret.is(WEBHOOK_SECRET)) {
  process.stderr.write(
    "WEBHOOK_SECRET must be the secret of a webhook: whsec_ followed by base64.\n",
  )
  process.exit(1)
}
const secrets = [WEBHOOK_SECRET]

const print = (text: string) => process.stdout.write(`${text}\n`)

createServer(async (request, response) => {
  try {
    print(JSON.stringify(await verifyWebhook(request, secrets)))
    response.writeHead(204).end()
  } catch (error) {
    print(`refused: ${error instanceof Error ? error.message : String(error)}`)
    response.writeHead(400).end()
  }
}).listen(Number(PORT), "127.0.0.1", () =>
  print(`The receiver listens on http://127.0.0.1:${PORT}`),
)
