/** Webhooks and their deliveries: creating, reading, changing, repairing and deleting them. */

import { maxWebhookUrlLength } from "@tenure/core/transport"
import { describe, expect } from "vitest"
import { type Answer, eventually, isSignedWith } from "../../support/fixtures.ts"
import {
  dataOf,
  expectFailure,
  expectInvalid,
  expectSuccess,
  fieldsOf,
  instant,
  itemsOf,
  uuid,
  webhookOf,
} from "../../support/http.ts"
import { type Fixture, type ServerTest, project, unknownId, webhooks } from "../harness.ts"

const options = { webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } }

const url = "https://receiver.example/"

/** Returns a URL with this many characters. */
const urlOf = (length: number): string => url.padEnd(length, "a")

const since = 1_000_000_000_000

/** Answers with the given statuses, one after another, and then with 204. */
const answering = (...statuses: ReadonlyArray<number>): Answer => {
  const left = [...statuses]
  return (response) => void response.writeHead(left.shift() ?? 204).end("the response")
}

/** Registers a receiver with the given answers as a webhook of `p1`. */
const register = async (fixture: Fixture, ...statuses: ReadonlyArray<number>) => {
  const { call, tenure } = fixture
  const receiver = await fixture.receiver(answering(...statuses))
  const { id, secret } = webhookOf(await call("POST", webhooks, { body: { url: receiver.url } }))
  const attempts = async () =>
    (await tenure.webhooks.deliveries({ projectId: "p1", webhookId: id })).flatMap(
      (delivery) => delivery.attempts,
    ).length
  return {
    receiver,
    id,
    secret,
    path: `${webhooks}/${id}`,
    /** Publishes an event, and waits until the webhook has answered. */
    publish: async (): Promise<string> => {
      const before = await attempts()
      const type = "payment.completed"
      const eventId = await tenure.events.publish({ projectId: "p1", type, data: {} })
      await eventually(async () => (await attempts()) > before)
      return eventId
    },
  }
}

/** Refused bodies for a new webhook, and the field in the message. The core tests all rules. */
const refused: ReadonlyArray<readonly [body: object, field: string]> = [
  ...[
    undefined,
    7,
    "/hooks",
    "ftp://receiver.example/",
    "https://user@receiver.example/",
    "https://receiver.example/\n",
    urlOf(maxWebhookUrlLength + 1),
    "http://2130706433/",
    "http://[::ffff:10.0.0.1]/",
    "http://localhost:3000/",
  ].map((invalid) => [{ url: invalid }, "url"] as const),
  ...[null, [], "a", ["a b"], ["a", 7], Array.from({ length: 101 }, () => "a")].map(
    (event_types) => [{ url, event_types }, "event_types"] as const,
  ),
  [{ url, ordered: "yes" }, "ordered"],
]

const contractTests = (test: ServerTest): void => {
  test("are created with a unique id and secret, listed with it, oldest first, and deleted", async (fixture) => {
    const { call } = fixture
    expectSuccess(await call("GET", webhooks), { total: 0, data: [] })
    const created: Array<unknown> = []
    for (const name of ["a?b=c", "a?b=c", "d"]) {
      const body = { url: `${url}${name}` }
      const { data } = expectSuccess(await call("POST", webhooks, { body }), {
        data: {
          ...body,
          id: expect.stringMatching(uuid),
          secret: expect.stringMatching(/^whsec_/),
        },
      })
      expect(Object.keys(fieldsOf(data))).toEqual(["url", "id", "secret"])
      created.push(data)
    }
    expect(new Set(created.map((one) => fieldsOf(one)["secret"])).size).toBe(3)
    expectSuccess(await call("GET", webhooks), { total: 3, data: created })
    const path = `${webhooks}/${String(fieldsOf(created[0])["id"]).toUpperCase()}`
    expectSuccess(await call("DELETE", path), { data: null })
    expectFailure(await call("DELETE", path), 404, "WEBHOOK_NOT_FOUND")
    expectSuccess(await call("GET", webhooks), { total: 2, data: created.slice(1) })
  })

  test("are not created with invalid fields", async ({ call }) => {
    for (const [body, field] of refused) {
      expectInvalid(await call("POST", webhooks, { body }), field)
    }
    expectSuccess(await call("GET", webhooks), { total: 0, data: [] })
  })

  test("can have any public URL that is not too long", async ({ call }) => {
    for (const accepted of [
      "http://receiver.example",
      "https://8.8.8.8:8443/a/b?c=d#e",
      "https://例え.jp/フック",
      urlOf(maxWebhookUrlLength),
    ]) {
      const response = await call("POST", webhooks, { body: { url: accepted } })
      expect(response.body).toMatchObject({ code: 200, data: { url: accepted } })
    }
  })

  test.with({ webhooks: { requireHttps: true } })(
    "can be required to use https",
    async ({ call }) => {
      const http = await call("POST", webhooks, { body: { url: "http://receiver.example/" } })
      expectInvalid(http, "url")
      expect((await call("POST", webhooks, { body: { url } })).status).toBe(200)
    },
  )

  test("are limited to 50 for each project by default", async ({ call }) => {
    for (let count = 1; count <= 50; count++) {
      expect((await call("POST", webhooks, { body: { url } })).status).toBe(200)
    }
    expectInvalid(await call("POST", webhooks, { body: { url } }))
  })

  test("are not found if they are unknown or of another project", async ({ operate, tenure }) => {
    const { id } = await tenure.webhooks.create({ projectId: "p2", url })
    for (const path of [unknownId, id, "1", "%00", "__proto__"].map(
      (one) => `${webhooks}/${one}`,
    )) {
      for (const [method, suffix] of [
        ["GET", ""],
        ["POST", "/ping"],
        ["POST", "/enable"],
        ["POST", "/rotate"],
        ["GET", "/activity"],
        ["GET", "/deliveries"],
        ["POST", "/replay"],
        ["DELETE", ""],
      ] as const) {
        const body = suffix === "/replay" ? { since } : undefined
        const response = await operate(method, `${path}${suffix}`, body)
        expectFailure(response, 404, "WEBHOOK_NOT_FOUND")
      }
    }
    expect(await tenure.webhooks.list({ projectId: "p2" })).toHaveLength(1)
  })
}

/** Declares tests on servers with leave to send to this machine. */
type ReceivingTest = ReturnType<ServerTest["with"]>

const readingTests = (test: ReceivingTest): void => {
  test("are found by their id, with what they are for and how they fare", async (fixture) => {
    const { call, operate } = fixture
    const { id, path, publish, receiver, secret } = await register(fixture, 500)
    const well = {
      url: receiver.url,
      id,
      secret,
      event_types: null,
      ordered: false,
      rate: null,
      description: null,
      header_names: [],
      created_at: instant,
      disabled_at: null,
      disabled_by: null,
      failing_since: null,
      failures: 0,
      last_attempt: null,
      waiting: 0,
      next_attempt_at: null,
    }
    expectSuccess(await call("GET", path), { data: well })
    const event_id = await publish()
    const failing = {
      ...well,
      failing_since: instant,
      failures: 1,
      last_attempt: {
        at: instant,
        event_id,
        status: 500,
        error: null,
        duration_ms: expect.any(Number),
      },
      waiting: 1,
      next_attempt_at: instant,
    }
    expectSuccess(await call("GET", `${webhooks}/${id.toUpperCase()}`), { data: failing })
    const { secret: _, ...health } = failing
    const all = await call("GET", `${project}/integrations/health`)
    expectSuccess(all, { total: 1, data: [health] })
    const given = { event_types: ["payment.completed", "membership.extended"], ordered: true }
    const created = await operate("POST", webhooks, { url, ...given })
    expect(Object.keys(dataOf(created))).toEqual(["url", "id", "secret"])
    const found = await call("GET", `${webhooks}/${webhookOf(created).id}`)
    expect(dataOf(found)).toMatchObject(given)
  })

  test("show their secret to nobody whom the audit trail does not name", async (fixture) => {
    const { call, tenure } = fixture
    const { id, path } = await register(fixture)
    const shown = await call("GET", path)
    await call("GET", `${project}/integrations/health`)
    const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
    const requestId = fieldsOf(shown.body)["request_id"]
    expect(rows).toMatchObject([
      { action: "secret_shown", subject: id, origin: { keyId: expect.any(String), requestId } },
      { action: "webhook_created" },
    ])
  })

  const attempt = (status: number, error: unknown) => ({
    at: instant,
    duration_ms: expect.any(Number),
    status,
    error,
  })

  const failed = attempt(500, expect.stringContaining("answered 500"))

  /** A delivery as the list and the delivery's own page show it. */
  const shown = (event_id: string | undefined, more: object) => ({
    event_id,
    type: "payment.completed",
    created_at: instant,
    user_id: null,
    ...more,
  })

  test("list their deliveries with the status and the error of each attempt, page by page and by state", async (fixture) => {
    const { operate } = fixture
    const { path, publish, secret } = await register(fixture, 500)
    const [first, second] = [await publish(), await publish()]
    const delivered = shown(second, {
      state: "delivered",
      due_at: null,
      attempts: [attempt(204, null)],
    })
    const waiting = shown(first, { state: "waiting", due_at: instant, attempts: [failed] })
    for (const [query, data, next] of [
      ["", [delivered, waiting], null],
      ["limit=1", [delivered], expect.any(String)],
      [`limit=1&after=${second}`, [waiting], null],
      ["state=delivered&limit=1000", [delivered], null],
      ["state=failed", [], null],
    ] as const) {
      const response = await operate("GET", `${path}/deliveries?${query}`)
      expectSuccess(response, { total: data.length, next, data })
      expect(response.text).not.toContain(secret)
      expect(response.text).not.toContain("the response")
    }
  })

  test("list their deliveries by their latest attempt, page by page and by state", async (fixture) => {
    const { operate, tenure } = fixture
    const { path, publish } = await register(fixture)
    const [one, other] = [await publish(), await publish()]
    const endDate = "2099-01-01T00:00:00.000Z"
    await tenure.memberships.extend({ projectId: "p1", userId: "1001", endDate })
    const list = (query: string) =>
      operate("GET", `${path}/deliveries?order=latest_attempt&${query}`)
    const idsOf = async (query: string) =>
      itemsOf(await list(query)).map(({ event_id }) => event_id)
    await eventually(async () => (await idsOf("state=delivered")).length === 3)
    const [latest] = itemsOf(await list("limit=1"))
    expect(latest).toMatchObject({ type: "membership.extended", user_id: "1001" })
    await operate("POST", `${path}/replay`, { event_id: one })
    await eventually(async () => (await idsOf("limit=1"))[0] === one)
    const all = [one, latest?.["event_id"], other]
    expect(await idsOf("")).toEqual(all)
    const walked: Array<unknown> = []
    for (let after: unknown; after !== null && walked.length < 4;) {
      const page = await list(`limit=1${after === undefined ? "" : `&after=${String(after)}`}`)
      walked.push(...itemsOf(page).map(({ event_id }) => event_id))
      after = fieldsOf(page.body)["next"]
    }
    expect(walked).toEqual(all)
    expect(await idsOf("state=failed")).toEqual([])
  })

  test("refuse other parameters of the list", async (fixture) => {
    const { path } = await register(fixture)
    const nobody = "00000000-0000-4000-8000-000000000000"
    for (const [name, query] of [
      ["limit", "limit=0"],
      ["limit", "limit=1001"],
      ["state", "state=lost"],
      ["state", "state=failed&state=waiting"],
      ["after", "after=1"],
      ["after", `after=${nobody}`],
      ["order", "order=oldest"],
      ["after", `order=latest_attempt&after=${nobody}`],
      ["after", `after=1700000000000_${nobody}`],
      ["after", `order=latest_attempt&after=9999999999999999_${nobody}`],
    ] as const) {
      expectInvalid(await fixture.operate("GET", `${path}/deliveries?${query}`), name)
    }
  })

  test("show a delivery with its request and what was responded, to whom the audit trail names", async (fixture) => {
    const { operate, tenure } = fixture
    const { id, path, publish, receiver } = await register(fixture, 500)
    const eventId = await publish()
    const { body = "", headers = {} } = receiver.received[0] ?? {}
    expectSuccess(await operate("GET", `${path}/deliveries/${eventId}`), {
      data: shown(eventId, {
        state: "waiting",
        due_at: instant,
        attempts: [{ ...failed, response_body: "the response" }],
        request: {
          method: "POST",
          url: receiver.url,
          headers: {
            "content-type": headers["content-type"],
            "user-agent": headers["user-agent"],
            "webhook-id": eventId,
            "webhook-timestamp": null,
            "webhook-signature": null,
          },
          body,
        },
      }),
    })
    expect(await tenure.memberships.history({ projectId: "p1", limit: 1 })).toMatchObject([
      { action: "data_shown", subject: eventId },
    ])
    const other = await tenure.webhooks.create({ projectId: "p1", url: receiver.url })
    for (const missing of [
      `${path}/deliveries/${id}`,
      `${webhooks}/${other.id}/deliveries/${eventId}`,
    ]) {
      expectFailure(await operate("GET", missing), 404, "EVENT_NOT_FOUND")
    }
  })

  test("count their attempts by the quarter of an hour, and say how long these took", async (fixture) => {
    const { path, publish } = await register(fixture, 500)
    const get = async () => {
      const response = await fixture.call("GET", `${path}/activity`)
      expectSuccess(response, { data: expect.any(Object) })
      return dataOf(response)
    }
    expect(await get()).toMatchObject({ p50_ms: null, p99_ms: null })
    for (let count = 0; count < 2; count++) await publish()
    const { p50_ms, p99_ms, quarters } = await get()
    expect(quarters).toHaveLength(96)
    // Some may be in the quarter before.
    const counted = Array.isArray(quarters) ? quarters.slice(-2) : []
    for (const result of ["delivered", "failed"]) {
      expect(counted.reduce((sum, quarter) => sum + Number(quarter[result]), 0)).toBe(1)
    }
    expect([p50_ms, p99_ms]).toEqual([expect.any(Number), expect.any(Number)])
  })
}

/** Refused changes, with the field in the message. */
const refusedChanges: ReadonlyArray<readonly [body: object, field: string]> = [
  [{}, ""],
  [{ secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }, "secret"],
  [{ description: "" }, "description"],
  [{ description: "two\nlines" }, "description"],
  [{ description: "x".repeat(201) }, "description"],
  [{ event_types: [] }, "event_types"],
  [{ disabled: null }, "disabled"],
  [{ headers: { "Webhook-Id": "1" } }, "headers"],
  [{ headers: { "x-a": "1", "X-A": "2" } }, "headers"],
  [{ headers: { "x-a": "line\r\nx-b: 2" } }, "headers"],
  [{ ordered: null }, "ordered"],
  ...[0, 10_001, 1.5].map((rate) => [{ rate }, "rate"] as const),
  ...[null, "ftp://receiver.example", "http://10.0.0.1/"].map(
    (invalid) => [{ url: invalid, description: "not this either" }, "url"] as const,
  ),
]

/** Replays that select no events. */
const refusedReplays: ReadonlyArray<object> = [
  {},
  { event_id: "1" },
  { event_id: null },
  { event_id: [unknownId] },
  { since: "yesterday" },
  { event_id: unknownId, since },
  { event_id: unknownId, dry_run: true },
  { since, only: "delivered" },
  { since, types: [] },
  { since, after: "1" },
  { since, after: `${unknownId}.${unknownId}` },
  // An ignored `dryRun` would protect nobody.
  { since, dryRun: true },
]

const changingTests = (test: ReceivingTest): void => {
  test("are changed in what is asked for, and disabled without a loss until they are enabled", async (fixture) => {
    const { call, operate, tenure } = fixture
    const { path, publish, receiver, secret } = await register(fixture)
    const moved = await fixture.receiver()
    const described = {
      url: moved.url,
      description: "The shop's mails",
      event_types: ["payment.completed"],
      ordered: true,
      rate: 500,
    }
    const change = async (body: object) => {
      const response = await operate("PATCH", path, body)
      expect(response.status).toBe(200)
      expect(response.body).not.toHaveProperty("data.secret")
      return dataOf(response)
    }
    expect(await change(described)).toMatchObject({ ...described, disabled_by: null })
    const headers = { "X-Tenant": "hidden 1", Authorization: "Bearer hidden-2" }
    const header_names = ["authorization", "x-tenant"]
    expect(await change({ headers })).toMatchObject({ header_names })
    await change({ headers: { "x-tenant": null } })
    const none = { event_types: null, rate: null, description: null }
    expect(await change({ ...none, disabled: true })).toMatchObject({
      ...none,
      url: moved.url,
      disabled_by: "request",
      disabled_at: instant,
    })
    const enabled = { disabled_by: null, disabled_at: null }
    expect(await change({ disabled: false })).toMatchObject(enabled)
    await publish()
    expect(moved.received.map((sent) => isSignedWith(sent, secret))).toEqual([true])
    expect(moved.received[0]?.headers).toMatchObject({ authorization: "Bearer hidden-2" })
    expect(moved.received[0]?.headers).not.toHaveProperty("x-tenant")
    expect(receiver.received).toEqual([])
    expect(dataOf(await call("GET", path))).toMatchObject({ url: moved.url, secret })
    const rows = await tenure.memberships.history({ projectId: "p1", limit: 100 })
    const changes = rows.filter(({ action }) => action === "webhook_changed")
    expect(changes.map((row) => row.changes.map(({ field }) => field))).toEqual([
      ["disabledBy"],
      ["eventTypes", "rate", "description", "disabledBy"],
      ["headers"],
      ["headers"],
      ["url", "eventTypes", "ordered", "rate", "description"],
    ])
  })

  test("refuse a change that is empty, unknown or invalid", async ({ call, operate, tenure }) => {
    const { id } = await tenure.webhooks.create({ projectId: "p1", url })
    const path = `${webhooks}/${id}`
    const before = dataOf(await call("GET", path))
    for (const [body, field] of refusedChanges) {
      expectInvalid(await operate("PATCH", path, body), field)
    }
    expect(dataOf(await call("GET", path))).toEqual(before)
  })

  test("get a new secret, and sign an event on demand with the previous one, too, for a day", async (fixture) => {
    const { call, operate } = fixture
    const { path, receiver, secret } = await register(fixture)
    const response = await operate("POST", `${path}/rotate`)
    expectSuccess(response, {
      data: { secret: expect.stringMatching(/^whsec_/), previous_until: instant },
    })
    const { previous_until, secret: fresh } = dataOf(response)
    const until = Date.parse(String(previous_until))
    expect(Math.abs(until - Date.now() - 86_400_000)).toBeLessThan(60_000)
    expect(dataOf(await call("GET", path))["secret"]).toBe(fresh)
    const ping = await operate("POST", `${path}/ping`)
    expectSuccess(ping, { data: { event_id: expect.stringMatching(uuid) } })
    await receiver.until(1)
    const [sent] = receiver.received
    expect(sent?.headers["webhook-id"]).toBe(dataOf(ping)["event_id"])
    for (const one of [String(fresh), secret]) {
      expect(sent && isSignedWith(sent, one)).toBe(true)
    }
  })

  test("are enabled after their receiver has answered 410, and then sent what they missed", async (fixture) => {
    const { call, operate } = fixture
    const { path, publish, receiver } = await register(fixture, 410)
    await publish()
    expect(dataOf(await call("GET", path))).toMatchObject({
      disabled_at: instant,
      disabled_by: "failures",
      failures: 1,
    })
    for (const [suffix, sent] of [["/ping"], ["/replay", { since }]] as const) {
      const response = await operate("POST", `${path}${suffix}`, sent)
      expectFailure(response, 409, "WEBHOOK_DISABLED")
    }
    expectSuccess(await operate("POST", `${path}/enable`), { data: null })
    expect(dataOf(await call("GET", path))).toMatchObject({
      disabled_at: null,
      failing_since: null,
      failures: 0,
    })
    const given = { since, only: "failed" }
    for (const replayed of [1, 0]) {
      const response = await operate("POST", `${path}/replay`, given)
      expectSuccess(response, { data: { replayed, next: null } })
      await receiver.until(2)
    }
  })

  test("are sent again an event by its id, or what they have missed by type, and nothing by a dry run", async (fixture) => {
    const { operate } = fixture
    const { path, publish, receiver } = await register(fixture)
    const replay = async (to: string, body: object, replayed: number) => {
      const response = await operate("POST", `${to}/replay`, body)
      expectSuccess(response, { data: { replayed, next: null } })
    }
    const event_id = await publish()
    await replay(path, { event_id: event_id.toUpperCase() }, 1)
    await replay(path, { event_id: unknownId }, 0)
    const body = { url: receiver.url, event_types: ["other.happened"] }
    const other = `${webhooks}/${webhookOf(await operate("POST", webhooks, body)).id}`
    const types = ["payment.completed"]
    await replay(other, { since }, 0)
    await replay(other, { since, types, only: "failed" }, 0)
    await replay(other, { since, types, only: "missed", dry_run: true }, 1)
    await replay(other, { since, types }, 1)
    await receiver.until(3)
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"])
    expect(ids).toEqual([event_id, event_id, event_id])
    for (const invalid of refusedReplays) {
      expectInvalid(await operate("POST", `${path}/replay`, invalid))
    }
  })
}

export const webhookTests = (test: ServerTest): void => {
  describe("webhooks", () => {
    contractTests(test)
    readingTests(test.with(options))
    changingTests(test.with(options))
  })
}
