/** The receiver in `docs/start.md` verifies what a webhook is sent. */

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { freePort } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"
import { environment } from "./programs.ts"

const folder = await writeExamples("start", examplesIn("docs/start.md"))
const projectId = "demo"

it("prints a verified event, and refuses another", async () => {
  const tenure = await createTenure({
    stores: memory(),
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  })
  onTestFinished(() => tenure.close())
  await tenure.memberships.createProject(projectId)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}/hooks`
  const { secret } = await tenure.webhooks.create({ projectId, url })
  const file = `${folder}/docs-start.md-1.ts`
  const receiver = spawn(process.execPath, ["-C", "@tenure/source", file], {
    env: environment({ PORT: String(port), WEBHOOK_SECRET: secret }),
    stdio: ["ignore", "pipe", "inherit"],
  })
  onTestFinished(() => void receiver.kill())
  const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]()
  expect((await lines.next()).value).toBe("waiting for webhooks")
  const forged = await fetch(url, { method: "POST", body: "{}" })
  expect(forged.status).toBe(400)
  await tenure.memberships.grant({ projectId, userId: "1001", endDate: "2099-01-01T00:00:00.000Z" })
  expect((await lines.next()).value).toMatch(/^verified membership\.granted .*"1001"/)
})
