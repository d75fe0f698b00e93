import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ProjectId } from "../../src/base/values.ts"
import { EventId, EventType, makeEvent } from "../../src/events/event.ts"
import { type Tenure, createTenure } from "../../src/tenure.ts"

const projectId = "p1"
const url = "https://receiver.example/"

let tenure: Tenure

beforeAll(async () => {
  tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject(projectId)
})

afterAll(() => tenure.close())

/** Creates a webhook. Returns its project id and webhook id. */
const addWebhook = async () => {
  const { id } = await tenure.webhooks.create({ projectId, url })
  return { projectId, webhookId: id }
}

/** Expects a refusal with an error that names the argument. */
const expectInvalid = (call: Promise<unknown>, field: string, message = expect.any(String)) =>
  expect(call).rejects.toMatchObject({ _tag: "InvalidInput", field, message })

describe("creating a webhook", () => {
  it("with http is refused unless the transport can send to it", async () => {
    const httpUrl = "http://receiver.example/"
    await expect(tenure.webhooks.create({ projectId, url: httpUrl })).rejects.toMatchObject({
      _tag: "InvalidWebhookUrl",
      message: "url must use https: this service sends http to IP addresses only",
    })
    const other = await createTenure({ stores: memory(), transport: nodeTransport })
    await other.memberships.createProject(projectId)
    expect(await other.webhooks.create({ projectId, url: httpUrl })).toMatchObject({ url: httpUrl })
    await other.close()
  })

  it("takes 1 to 100 types of events, and nothing else", async () => {
    const create = (eventTypes: ReadonlyArray<string>) =>
      tenure.webhooks.create({ projectId, url, eventTypes })
    for (const json of ["[]", '"ab"', "{}", "null", '["a b"]', "[1]", "[null]"]) {
      await expectInvalid(create(JSON.parse(json)), "eventTypes")
    }
    const types = Array.from({ length: 100 }, () => "a.b")
    expect((await create(types)).eventTypes).toEqual(types)
    await expectInvalid(create([...types, "a.b"]), "eventTypes")
  })
})

describe("find", () => {
  it("returns a webhook with its secret and its failures", async () => {
    const { webhooks } = tenure
    const created = await webhooks.create({ projectId, url })
    expect(created.eventTypes).toBeUndefined()
    const webhookId = created.id.toUpperCase()
    expect(await webhooks.find({ projectId, webhookId })).toEqual({
      ...created,
      failures: 0,
      failingSince: undefined,
      latestAttempt: undefined,
      nextAttemptAt: undefined,
      problem: undefined,
      waiting: 0,
    })
  })

  it.each(["", "1", "__proto__", "00000000-0000-4000-8000-000000000001"])(
    "fails if there is no webhook %j",
    async (webhookId) => {
      await expect(tenure.webhooks.find({ projectId, webhookId })).rejects.toMatchObject({
        _tag: "WebhookNotFound",
        webhookId,
      })
    },
  )
})

it("update answers its repetition as before, also if the webhook was deleted", async () => {
  const webhook = await addWebhook()
  const update = { ...webhook, description: "The shop's mails", idempotencyKey: webhook.webhookId }
  const updated = await tenure.webhooks.update(update)
  await tenure.webhooks.delete(webhook)
  expect(await tenure.webhooks.update(update)).toEqual(updated)
  for (const [change, _tag] of [
    [{ description: "Other" }, "IdempotencyMismatch"],
    [{ idempotencyKey: "other" }, "WebhookNotFound"],
  ] as const) {
    await expect(tenure.webhooks.update({ ...update, ...change })).rejects.toMatchObject({ _tag })
  }
})

it("rotateSecret returns the new secret, and until when the old one signs", async () => {
  const { webhooks } = tenure
  const created = await webhooks.create({ projectId, url })
  const ids = { projectId, webhookId: created.id }
  const before = Date.now()
  const { previousUntil, secret } = await webhooks.rotateSecret({ ...ids, keepOldFor: "1 hour" })
  expect(await webhooks.find(ids)).toMatchObject({
    secret,
    previous: { secret: created.secret, until: previousUntil },
  })
  expect(previousUntil - before - 3_600_000).toBeLessThan(60_000)
  expect(previousUntil - before).toBeGreaterThanOrEqual(3_600_000)
})

describe("deliveries", () => {
  it("are not listed by a state that does not exist", async () => {
    const page = { ...(await addWebhook()), ...JSON.parse('{ "state": "x" }') }
    const states = '"waiting", "delivered", "failed", "cancelled"'
    const message = expect.stringContaining(states)
    await expectInvalid(tenure.webhooks.deliveries(page), "state", message)
    expect(await tenure.webhooks.deliveries({ ...page, state: "failed" })).toEqual([])
    expect(await tenure.webhooks.deliveries({ ...page, state: undefined })).toEqual([])
  })

  it("are not listed after an event that the webhook has no delivery of", async () => {
    const page = await addWebhook()
    const own = await tenure.webhooks.ping(page)
    const foreign = await tenure.webhooks.ping(await addWebhook())
    expect(await tenure.webhooks.deliveries({ ...page, olderThan: own })).toEqual([])
    for (const olderThan of [foreign, crypto.randomUUID()]) {
      await expectInvalid(tenure.webhooks.deliveries({ ...page, olderThan }), "olderThan")
    }
  })
})

it("replayMany sends all pages, and with its key the same ones again without sending anything", async () => {
  const own = await createTenure({
    stores: memory({ history: 30_000 }),
    webhooks: { dispatch: false },
  })
  await own.memberships.createProject(projectId)
  for (let n = 0; n < 10_001; n++) await own.events.publish({ projectId, type: "a.b", data: n })
  const { id } = await own.webhooks.create({ projectId, url })
  const events = { projectId, webhookId: id, since: new Date(0) }
  expect(await own.webhooks.replayMany({ ...events, dryRun: true })).toBe(10_001)
  expect((await own.status()).backlog?.waiting).toBe(0)
  const page = await own.webhooks.replayPage({ ...events, dryRun: true })
  expect(page).toEqual({ replayed: 10_000, next: expect.any(String) })
  const idempotency = { ...events, idempotencyKey: "outage-1" }
  expect(await own.webhooks.replayMany(idempotency)).toBe(10_001)
  expect(await own.webhooks.replayMany(idempotency)).toBe(10_001)
  expect(await own.webhooks.replayMany(events)).toBe(0)
  await own.close()
})

describe("an event of the host", () => {
  it("cannot have a type of events that only Tenure publishes", async () => {
    const membership = ["granted", "extended", "ended"].map((name) => `membership.${name}`)
    const webhook = ["ping", "failing", "disabled"].map((name) => `webhook.${name}`)
    for (const type of ["memberships.extended", ...membership, ...webhook]) {
      const message = `type must not be ${type}: only Tenure itself publishes events of this type`
      await expectInvalid(tenure.events.publish({ projectId, type, data: {} }), "type", message)
    }
    for (const type of [
      "payment.completed",
      "membership.renewed",
      "webhook",
      "Membership.Extended",
    ]) {
      expect(await tenure.events.publish({ projectId, type, data: {} })).toEqual(expect.any(String))
    }
  })

  // The fields around the data in the body.
  const around = makeEvent({
    id: EventId("00000000-0000-4000-8000-000000000001"),
    projectId: ProjectId(projectId),
    type: EventType("t"),
    at: 0,
    data: "",
  }).body.length

  it.each([
    ["ASCII", "x", 1],
    ["characters of two bytes", "ü", 2],
    ["characters of four bytes", "🎈", 4],
  ])("may have 256 KiB, in %s, and not more", async (_name, character, bytes) => {
    const publish = (length: number) =>
      tenure.events.publish({ projectId, type: "t", data: character.repeat(length) })
    const longest = Math.floor((262_144 - around) / bytes)
    expect(await publish(longest)).toEqual(expect.any(String))
    const message = "data must be short enough for an event of 262144 bytes of JSON"
    await expectInvalid(publish(longest + 1), "data", message)
  })
})
