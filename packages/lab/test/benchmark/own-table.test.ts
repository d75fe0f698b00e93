/** The alternative keeps its promises, or a comparison with it would not be fair. */

import { WebhookSecret, verifySignature } from "@tenure/core/signature"
import { startReceiver } from "@tenure/testing/conformance"
import * as Result from "effect/Result"
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from "vitest"
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
  const answers = [500]
  const receiver = await startReceiver((response) =>
    response.writeHead(answers.shift() ?? 204).end(),
  )
  onTestFinished(receiver.close)
  await tables.addWebhook("p2", receiver.url, secret)
  const id = crypto.randomUUID()
  await tables.publish([{ id, projectId: "p2", body: "{}" }])
  const stop = tables.startJob()
  await expect.poll(() => countOf("deliveries WHERE delivered_at IS NOT NULL")).toBe(1)
  await stop()
  const { received } = receiver
  expect(received.map(({ headers }) => headers["webhook-id"])).toEqual([id, id])
  for (const { at, body, headers } of received) {
    const verdict = verifySignature({ headers, body, now: at }, [WebhookSecret(secret)])
    expect(Result.isSuccess(verdict)).toBe(true)
  }
})
