/** The bundled server is killed and started again. All other tests of the process are in the system suite. */

import { randomUUID } from "node:crypto"
import { startReceiver } from "@tenure/testing/conformance"
import { afterEach, expect, inject, it, onTestFinished } from "vitest"
import { endAll, startServer } from "./programs.ts"
import { call, extend as endDate, temporaryFolder, writeJson } from "./world.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const folder = temporaryFolder()

afterEach(endAll)

it("a server that is killed has lost nothing when it is started again, and sends what it had begun to send", async () => {
  const receiver = await startReceiver((response) => {
    // The first attempt gets no response.
    if (receiver.received.length > 1) response.writeHead(204).end()
  })
  onTestFinished(receiver.close)
  // A new name, because the database may have projects and keys from an earlier run.
  const [id, token] = [randomUUID(), randomUUID()]
  const seed = { projects: [{ id, api_keys: [{ token, role: "operator" }] }] }
  const environment = {
    DATABASE_URL: inject("databaseUrl"),
    DATABASE_SCHEMA: "restart",
    SEED_FILE: await writeJson(folder, seed),
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  }
  const project = `/v2/projects/${id}`
  const member = `${project}/memberships/1001`

  const first = await startServer(environment)
  const webhook = { url: receiver.url }
  const created = await call(first, "POST", `${project}/integrations/webhooks`, webhook, token)
  expect(created).toMatchObject({ status: 200 })
  const granted = await call(first, "PUT", member, { end_date: endDate }, token)
  expect(granted).toMatchObject({ status: 200 })
  await receiver.until(1)
  first.kill("SIGKILL")
  await first.ended

  const second = await startServer(environment)
  const found = await call(second, "GET", member, undefined, token)
  expect(found).toMatchObject({ status: 200, body: { data: { end_date: endDate } } })
  const history = await call(second, "GET", `${member}/history`, undefined, token)
  expect(history.body).toMatchObject({ data: [{ action: "granted" }] })
  await receiver.until(2)
  const [begun, repeated] = receiver.received
  expect(repeated?.headers["webhook-id"]).toBe(begun?.headers["webhook-id"])
  second.kill("SIGTERM")
  expect(await second.ended).toMatchObject({ code: 0, stderr: "" })
})
