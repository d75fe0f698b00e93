/** `tenure listen` follows a server on PostgreSQL that is away for a time. */

import { verifyWebhook } from "@tenure/client"
import { freePort, startReceiver } from "@tenure/testing/conformance"
import { expect, inject, it, onTestFinished } from "vitest"
import { startWith, tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

it("forwards events as a webhook sends them, and goes on after the server was away, without a gap", async () => {
  const port = await freePort()
  const start = () =>
    startServer({
      PORT: String(port),
      DATABASE_URL: inject("databaseUrl"),
      DATABASE_SCHEMA: "listening",
    })
  let server = await start()
  onTestFinished(() => server.stop())
  const environment = { TENURE_URL: server.url, TENURE_TOKEN: token, TENURE_PROJECT: "p" }
  const tenure = tenureWith(environment)
  await tenure("projects", "create", "p")
  const publish = (amount: number) =>
    tenure("trigger", "paid", "--data", JSON.stringify({ amount }))
  const { close, received, until, url } = await startReceiver()
  onTestFinished(close)
  const args = ["listen", "--forward-to", url, "--type", "paid"]
  const { interrupt, printed } = startWith({ ...environment, TENURE_WEBHOOK_SECRET: secret })(
    ...args,
  )
  onTestFinished(() => void interrupt())
  await expect.poll(() => printed.stderr).toContain("Listening")
  await publish(1)
  await until(1)
  await server.stop()
  server = await start()
  await publish(2)
  await until(2)
  const events = await Promise.all(
    received.map(({ body, headers }) => verifyWebhook({ headers, body }, [secret])),
  )
  expect(events).toMatchObject([
    { type: "paid", data: { amount: 1 } },
    { type: "paid", data: { amount: 2 } },
  ])
  await expect.poll(() => printed.stderr.match(/→ 204/g)).toHaveLength(2)
})
