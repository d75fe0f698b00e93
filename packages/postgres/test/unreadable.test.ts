/** Rows that nobody can read, because something else than Tenure has written them. */

import { type Tenure, createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest"
import { postgres } from "../src/index.ts"
import { emptied, execute, recordingTransport } from "./harness.ts"

const schema = "unreadable"
const projectId = "p1"
const url = "https://receiver.example/well"
const otherUrl = "https://receiver.example/other"

let tenure: Tenure

const { sent, transport } = recordingTransport()

const run = (...statements: ReadonlyArray<string>) => Effect.runPromise(execute(...statements))

const empty = emptied(schema)
beforeEach(async () => {
  sent.length = 0
  await Effect.runPromise(empty)
  const stores = postgres({ url: inject("databaseUrl"), schema, maxConnections: 3 })
  tenure = await createTenure({ stores, transport })
  await tenure.memberships.createProject(projectId)
})

afterEach(() => tenure.close())

const addWebhook = async (to: string) => {
  const { id } = await tenure.webhooks.create({ projectId, url: to })
  return { projectId, webhookId: id }
}

const publish = () => tenure.events.publish({ projectId, type: "test", data: {} })

/** Waits until a webhook has received this many notifications. */
const arrived = (to: string, count: number) =>
  expect.poll(() => sent.filter((request) => request.url === to).length).toBe(count)

const eventId = "00000000-0000-4000-8000-000000000001"

/** Adds an event with its deliveries, as a large publication would. */
const insertEvent = (project: string, body: string) =>
  run(
    `INSERT INTO ${schema}.events (id, project_number, type, at, body)
     SELECT '${eventId}', number, 'test', now(), ${body} FROM ${schema}.projects WHERE id = '${project}'`,
    `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
     SELECT '${eventId}', w.id, now() - interval '1 minute' FROM ${schema}.webhooks w
     JOIN ${schema}.projects p ON p.number = w.project_number WHERE p.id = '${project}'`,
  )

describe("an event that is too long for a message of the protocol", () => {
  it("fails visibly, and stops no other delivery", async () => {
    const webhook = await addWebhook(url)
    await insertEvent(projectId, "repeat('x', 20 * 1024 * 1024)")
    await publish()
    await arrived(url, 1)
    const failed = () => tenure.webhooks.deliveries({ ...webhook, state: "failed" })
    const reasons = async () =>
      (await failed()).flatMap(({ attempts }) => attempts.map(({ result }) => result))
    const unreadable = { _tag: "Failed", reason: "Unreadable" }
    await expect.poll(reasons).toEqual([unreadable])
    await tenure.webhooks.replay({ ...webhook, eventId })
    await expect.poll(reasons).toEqual([unreadable, unreadable])
    await publish()
    await arrived(url, 2)
  })
})

describe("a project whose id Tenure would not accept", () => {
  it("stops no delivery of another", async () => {
    await run(
      `INSERT INTO ${schema}.projects (id) VALUES ('not an id')`,
      `INSERT INTO ${schema}.webhooks (id, project_number, url, secret, created_at)
       SELECT gen_random_uuid(), number, '${otherUrl}', 'whsec_', now()
       FROM ${schema}.projects WHERE id = 'not an id'`,
    )
    await insertEvent("not an id", "'{}'")
    await addWebhook(url)
    await publish()
    await arrived(url, 1)
    await publish()
    await arrived(url, 2)
    expect(sent.map((request) => request.url)).toEqual([url, url])
  })
})

describe("a delivery whose event is gone", () => {
  it("stops no other", async () => {
    await addWebhook(url)
    await run(
      `INSERT INTO ${schema}.deliveries (event_id, webhook_id, next_attempt_at)
       SELECT '${eventId}', id, now() - interval '1 minute' FROM ${schema}.webhooks`,
    )
    await publish()
    await arrived(url, 1)
  })
})

describe.each([
  ["secret", "''"],
  ["secret", "'whsec_'"],
  ["secret", "'enc_k1_AAAA'"],
  ["secret", "repeat('x', 20 * 1024 * 1024)"],
  ["signing_key", "''"],
  ["signing_key", "'whsk_short'"],
])("a %s that is %s", (column, value) => {
  it("sends nothing to its webhook, shows why, and stops no other webhook", async () => {
    const webhook = await addWebhook(otherUrl)
    await run(`UPDATE ${schema}.webhooks SET ${column} = ${value}`)
    await addWebhook(url)
    await publish()
    await arrived(url, 1)
    const reasons = async () => {
      const [delivery] = await tenure.webhooks.deliveries(webhook)
      return delivery?.attempts.map(({ result }) => "reason" in result && result.reason)
    }
    const expected = value.startsWith("repeat") ? "Unreadable" : "SecretUnreadable"
    await expect.poll(reasons).toEqual([expected])
    expect(sent.map((request) => request.url)).toEqual([url])
  })
})
