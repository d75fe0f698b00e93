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

describe("a webhook with http", () => {
  const httpUrl = "http://receiver.example/"

  it("is refused if the transport cannot send to it", async () => {
    await expect(tenure.webhooks.create({ projectId, url: httpUrl })).rejects.toMatchObject({
      _tag: "InvalidWebhookUrl",
      message: "url must use https: this service sends http to IP addresses only",
    })
  })

  it("is created if the transport can send to it", async () => {
    const other = await createTenure({ stores: memory(), transport: nodeTransport })
    await other.memberships.createProject(projectId)
    expect(await other.webhooks.create({ projectId, url: httpUrl })).toMatchObject({ url: httpUrl })
    await other.close()
  })
})

describe("the option eventTypes", () => {
  /** Types as plain JavaScript may have them. */
  const untyped = (text: string): ReadonlyArray<string> => JSON.parse(text)

  it.each(["[]", '"ab"', "{}", "null", '["a b"]', "[1]", "[null]"])(
    "cannot be %s",
    async (text) => {
      const creation = tenure.webhooks.create({ projectId, url, eventTypes: untyped(text) })
      await expect(creation).rejects.toMatchObject({ _tag: "InvalidInput", field: "eventTypes" })
    },
  )

  it("can name 100 types, and not more", async () => {
    const create = (length: number) =>
      tenure.webhooks.create({ projectId, url, eventTypes: Array.from({ length }, () => "a.b") })
    expect((await create(100)).eventTypes).toHaveLength(100)
    await expect(create(101)).rejects.toMatchObject({ _tag: "InvalidInput" })
  })

  it("is kept with the webhook; all types by default", async () => {
    const eventTypes = ["payment.completed", "membership.extended"]
    expect(await tenure.webhooks.create({ projectId, url })).toMatchObject({
      eventTypes: undefined,
    })
    expect(await tenure.webhooks.create({ projectId, url, eventTypes })).toMatchObject({
      eventTypes,
    })
  })
})

describe("find", () => {
  it("returns a webhook with its secret and its failures", async () => {
    const { webhooks } = tenure
    const created = await webhooks.create({ projectId, url, eventTypes: ["payment.completed"] })
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

describe("update", () => {
  it("answers its repetition as before, also if the webhook was deleted", async () => {
    const { id: webhookId } = await tenure.webhooks.create({ projectId, url })
    const webhook = { projectId, webhookId }
    const update = { ...webhook, description: "The shop's mails", idempotencyKey: webhookId }
    const updated = await tenure.webhooks.update(update)
    await tenure.webhooks.delete(webhook)
    expect(await tenure.webhooks.update(update)).toEqual(updated)
    const others = [{ description: "Other" }, { idempotencyKey: "other" }]
    for (const [index, _tag] of ["IdempotencyMismatch", "WebhookNotFound"].entries()) {
      const other = { ...update, ...others[index] }
      await expect(tenure.webhooks.update(other)).rejects.toMatchObject({ _tag })
    }
  })
})

describe("rotateSecret", () => {
  it("returns the new secret, and until when the old one signs", async () => {
    const { webhooks } = tenure
    const created = await webhooks.create({ projectId, url })
    const ids = { projectId, webhookId: created.id }
    const before = Date.now()
    const { previousUntil, secret } = await webhooks.rotateSecret({ ...ids, keepOldFor: "1 hour" })
    const { previous, ...found } = await webhooks.find(ids)
    expect(found.secret).toBe(secret)
    expect(previous).toEqual({ secret: created.secret, until: previousUntil })
    expect(previousUntil - before - 3_600_000).toBeLessThan(60_000)
    expect(previousUntil - before).toBeGreaterThanOrEqual(3_600_000)
  })
})

describe("deliveries", () => {
  it("are not listed by a state that does not exist", async () => {
    const { id } = await tenure.webhooks.create({ projectId, url })
    const page = { projectId, webhookId: id, ...JSON.parse('{ "state": "x" }') }
    await expect(tenure.webhooks.deliveries(page)).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "state",
      message: expect.stringContaining('"waiting", "delivered", "failed", "cancelled"'),
    })
    expect(await tenure.webhooks.deliveries({ ...page, state: "failed" })).toEqual([])
    expect(await tenure.webhooks.deliveries({ ...page, state: undefined })).toEqual([])
  })

  it("are not listed after an event that the webhook has no delivery of", async () => {
    const { id } = await tenure.webhooks.create({ projectId, url })
    const other = await tenure.webhooks.create({ projectId, url })
    const page = { projectId, webhookId: id }
    const own = await tenure.webhooks.ping(page)
    const foreign = await tenure.webhooks.ping({ projectId, webhookId: other.id })
    expect(await tenure.webhooks.deliveries({ ...page, olderThan: own })).toEqual([])
    for (const olderThan of [foreign, crypto.randomUUID()]) {
      await expect(tenure.webhooks.deliveries({ ...page, olderThan })).rejects.toMatchObject({
        _tag: "InvalidInput",
        field: "olderThan",
      })
    }
  })
})

describe("replayMany", () => {
  it("takes an instant as a Date, as text or in milliseconds, and nothing else", async () => {
    const { id } = await tenure.webhooks.create({ projectId, url })
    const webhook = { projectId, webhookId: id }
    for (const since of [new Date(Date.now() + 1), "2099-01-01T00:00:00.000Z", 4e12]) {
      expect(await tenure.webhooks.replayMany({ ...webhook, since })).toBe(0)
    }
    for (const since of [new Date(NaN), "yesterday", NaN, 0, 1_800_000_000, "2027-01-31"]) {
      await expect(tenure.webhooks.replayMany({ ...webhook, since })).rejects.toMatchObject({
        _tag: "InvalidInput",
        field: "since",
      })
    }
    for (const after of ["1", `${id}.${id}`]) {
      await expect(
        tenure.webhooks.replayPage({ ...webhook, since: new Date(0), after }),
      ).rejects.toMatchObject({ _tag: "InvalidInput", field: "after" })
    }
  })

  it("sends all pages, and with its key the same ones again without sending anything", async () => {
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
    const once = { ...events, idempotencyKey: "outage-1" }
    expect(await own.webhooks.replayMany(once)).toBe(10_001)
    expect(await own.webhooks.replayMany(once)).toBe(10_001)
    expect(await own.webhooks.replayMany(events)).toBe(0)
    await own.close()
  })
})

describe("an event of the host", () => {
  it.each([
    "membership.granted",
    "membership.extended",
    "memberships.extended",
    "membership.ended",
    "webhook.ping",
    "webhook.failing",
    "webhook.disabled",
  ])("cannot have the type %s", async (type) => {
    await expect(tenure.events.publish({ projectId, type, data: {} })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field: "type",
      message: `type must not be ${type}: only Tenure itself publishes events of this type`,
    })
  })

  it.each(["payment.completed", "membership.renewed", "webhook", "Membership.Extended"])(
    "can have the type %s",
    async (type) => {
      expect(await tenure.events.publish({ projectId, type, data: {} })).toEqual(expect.any(String))
    },
  )

  // What is around the data in the body.
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
    await expect(publish(longest + 1)).rejects.toMatchObject({
      _tag: "InvalidInput",
      message: "data must be short enough for an event of 262144 bytes of JSON",
    })
  })
})
