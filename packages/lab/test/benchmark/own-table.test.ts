/** The alternative keeps its promises, or a comparison with it would not be fair. */

import { type IncomingMessage, createServer } from "node:http"
import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import * as Result from "effect/Result"
import { afterAll, beforeAll, expect, inject, it } from "vitest"
import { createOwnTables, openOwnTables } from "../../benchmark/alternatives/own-table.ts"
import { newSecret } from "../../benchmark/receiving.ts"

const schema = "lab_own_tables"
const [keyId, requestId] = [crypto.randomUUID(), crypto.randomUUID()]
const endDate = new Date("2099-01-01T00:00:00.000Z")

let tables: ReturnType<typeof openOwnTables>

const countOf = async (from: string): Promise<number> => {
  const { rows } = await tables.pool.query(`SELECT count(*)::int AS count FROM ${from}`)
  return rows[0]?.count
}

beforeAll(async () => {
  await createOwnTables(inject("databaseUrl"), schema)
  tables = openOwnTables(inject("databaseUrl"), schema)
  await tables.addMembers("p1", 2)
})

afterAll(async () => {
  await tables.pool.query(`DROP SCHEMA ${schema} CASCADE`)
  await tables.pool.end()
})

it("writes an extension with its audit row, event and delivery, or nothing", async () => {
  await tables.addWebhook("p1", "http://127.0.0.1:1/", newSecret())
  const extend = (user: string) => tables.extend({ keyId, requestId, project: "p1", user, endDate })
  expect(await extend("1")).toBe(true)
  expect(await extend("nobody")).toBe(false)
  const counts = ["memberships WHERE end_date > '2090-01-01'", "audit", "events", "deliveries"]
  expect(await Promise.all(counts.map(countOf))).toEqual([1, 1, 1, 1])
})

it("finds keys by their digest", async () => {
  await tables.addKeys(["a token"], ["p1"])
  expect((await tables.authenticate("a token"))?.projects).toEqual(["p1"])
  expect(await tables.authenticate("another")).toBeUndefined()
})

it("signs notifications, and repeats those that failed", async () => {
  const secret = newSecret()
  const answers = [500, 204]
  const received: Array<{ readonly headers: IncomingMessage["headers"]; readonly body: Buffer }> =
    []
  const receiver = createServer(async (request, response) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ headers: request.headers, body: Buffer.concat(chunks) })
    response.writeHead(answers[received.length - 1] ?? 204).end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
  const address = receiver.address()
  const port = typeof address === "object" ? address?.port : undefined
  await tables.addWebhook("p2", `http://127.0.0.1:${port}/`, secret)
  const id = crypto.randomUUID()
  await tables.publish([{ id, projectId: "p2", body: "{}" }])
  const stop = tables.startJob()
  await expect.poll(() => countOf("deliveries WHERE delivered_at IS NOT NULL")).toBe(1)
  await stop()
  receiver.closeAllConnections()
  receiver.close()
  expect(received.map(({ headers }) => headers["webhook-id"])).toEqual([id, id])
  for (const one of received) {
    const verdict = verifySignature({ ...one, now: Date.now() }, [WebhookSecret(secret)])
    expect(Result.isSuccess(verdict)).toBe(true)
  }
})
