/** Publishing events, and finding their deliveries. */

import { knownEventTypes } from "@tenure/core/store"
import { describe, expect } from "vitest"
import { eventually, startReceiver } from "../../support/fixtures.ts"
import {
  type Incoming,
  expectFailure,
  expectSuccess,
  fieldsOf,
  instant,
  uuid,
  webhookOf,
  dataOf,
} from "../../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "../harness.ts"

const events = "/v2/projects/p1/events"

const options = { webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } }

const publicationTests = (test: ServerTest): void => {
  test("are read without their data, or by whom the audit trail names", async ({
    call,
    operatorToken: token,
    tenure,
  }) => {
    const type = "payment.completed"
    const id = await tenure.events.publish({ projectId: "p1", type, data: { amount: 5 } })
    const path = `${events}/${id}`
    const event = { id, type, timestamp: instant, data: null }
    const hidden = await call("GET", `${path}?data=false`, { token })
    expectSuccess(hidden, { data: { ...event, deliveries: [] } })
    const fed = await call("GET", `${events}?after=start&data=false`, { token })
    expect(fieldsOf(fed.body)["data"]).toContainEqual(event)
    expect(await tenure.memberships.history({ projectId: "p1", limit: 1 })).not.toMatchObject([
      { action: "data_shown" },
    ])
    const shown = await call("GET", path, { token })
    expect(shown.body).toMatchObject({ data: { ...event, data: { amount: 5 } } })
    expect(await tenure.memberships.history({ projectId: "p1", limit: 1 })).toMatchObject([
      {
        action: "data_shown",
        subject: id,
        origin: { requestId: fieldsOf(shown.body)["request_id"] },
      },
    ])
    expectFailure(await call("GET", `${path}?data=no`, { token }), 422, "VALIDATION_ERROR")
  })

  test("are listed newest first, page after page, with the member and the date alone", async ({
    call,
    operatorToken: token,
    tenure,
  }) => {
    const member = { projectId: "p1", userId: "u1", endDate: 4_070_908_800_000 }
    await tenure.memberships.grant({ ...member, reason: "a secret" })
    await tenure.events.publish({ projectId: "p1", type: "test.happened", data: { user_id: 1 } })
    const list = async (query: string) => {
      const { body } = await call("GET", `${events}?order=newest&${query}`, { token })
      return fieldsOf(body)
    }
    const first = await list("limit=1&data=summary")
    expect(first["data"]).toMatchObject([{ type: "test.happened", data: null }])
    const second = await list(`limit=1&data=summary&after=${String(first["next"])}`)
    expect(second["data"]).toMatchObject([
      {
        type: "membership.granted",
        data: { user_id: "u1", end_date: "2099-01-01T00:00:00.000Z" },
      },
    ])
    expect(JSON.stringify(second)).not.toContain("a secret")
    expect(await list("after=start")).toMatchObject({ data: [], next: "start" })
    for (const query of [
      "order=newest&wait=1",
      "order=newest&types=a.b",
      "order=latest",
      "order=newest&after=x",
    ]) {
      expectFailure(await call("GET", `${events}?${query}`, { token }), 422, "VALIDATION_ERROR")
    }
  })

  test.with(options)(
    "are published, and found with their delivery to each webhook",
    async ({ call, operatorToken: token }) => {
      const receiver = await startReceiver((response) => void response.writeHead(500).end())
      const created = await call("POST", webhooks, { body: { url: receiver.url } })
      const data = { amount: "12.50", note: "für 日本 \u2028", list: [null, 1e21] }
      const body = { type: "payment.completed", data }
      const response = await call("POST", events, { token, body })
      const published = expectSuccess(response, {
        data: { id: expect.stringMatching(uuid) },
      })
      const { id } = fieldsOf(published["data"])
      await receiver.until(1)
      const { body: sent, headers } = receiver.received[0] ?? expect.fail("nothing was sent")
      expect(headers["webhook-id"]).toBe(id)
      const notification = fieldsOf(JSON.parse(sent))
      expect(notification).toEqual({ ...body, timestamp: instant })
      const path = `${events}/${id}`
      const find = () => call("GET", path, { token })
      await eventually(async () => JSON.stringify((await find()).body).includes('"status":500'))
      expectSuccess(await find(), {
        data: {
          id,
          ...notification,
          deliveries: [
            {
              webhook_id: webhookOf(created).id,
              state: "waiting",
              due_at: instant,
              attempts: [
                {
                  at: instant,
                  duration_ms: expect.any(Number),
                  status: 500,
                  error: expect.stringContaining("answered 500"),
                },
              ],
            },
          ],
        },
      })
      receiver.close()
    },
  )

  test("may have any JSON as data, and need no webhook", async ({ call, operatorToken: token }) => {
    for (const data of [null, 0, "", false, [], {}, { data: { type: "x" } }]) {
      const body = { type: "a", data }
      const response = await call("POST", events, { token, body })
      const { id } = dataOf(response)
      const path = `${events}/${id}`
      expectSuccess(await call("GET", path, { token }), {
        data: { id, ...body, timestamp: instant, deliveries: [] },
      })
    }
  })

  const inexact = [
    ['{"order":12345678901234567890}', "data.order"],
    ['{"items":[{"id":1},{"id":9007199254740993}]}', "data.items[1].id"],
    ["0.12345678901234567890", "data"],
    ["[1e400]", "data[0]"],
    ['{"a":1,"b":{"c":1,"c":2}}', "data.b.c"],
  ]
  for (const [data, field] of inexact) {
    test(`are refused if they would not be what was sent, with the path: ${data}`, async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const before = await tenure.events.read({ projectId: "p1", after: "start" })
      const body = `{"type":"a","data":${data}}`
      const response = await call("POST", events, { token, body })
      const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
      expect(fieldsOf(error)["message"]).toMatch(/^\S+ must /)
      expect(String(fieldsOf(error)["message"]).split(" ")[0]).toBe(field)
      const after = await tenure.events.read({ projectId: "p1", after: "start" })
      expect(after.events).toEqual(before.events)
    })
  }

  test("need a type that is not one of Tenure's own, and data", async ({
    call,
    operatorToken: token,
  }) => {
    const own = Object.values(knownEventTypes).map((type) => ({ type, data: {} }))
    const invalid = [
      { data: {} },
      { type: "a" },
      { type: "", data: {} },
      { type: "a b", data: {} },
      { type: 7, data: {} },
      { type: ["a"], data: {} },
      { type: "a".repeat(129), data: {} },
      { type: "error", data: {} },
    ]
    for (const body of [...own, ...invalid]) {
      expectFailure(await call("POST", events, { token, body }), 422, "VALIDATION_ERROR")
    }
  })

  test.with({ webhooks: { maxEventBytes: 1000 } })(
    "are refused if they are longer than the host allows",
    async ({ call, operatorToken: token }) => {
      const publish = (length: number) =>
        call("POST", events, { token, body: { type: "a", data: "x".repeat(length) } })
      const response = await publish(2000)
      const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
      expect(fieldsOf(error)["message"]).toContain("1000 bytes")
      expect((await publish(900)).status).toBe(200)
      expectFailure(await publish(70_000), 413, "PAYLOAD_TOO_LARGE")
    },
  )
}

/** Returns the events in a feed page. */
const pageOf = ({ body, status }: Incoming) => {
  expect(status).toBe(200)
  const { data, next, total } = fieldsOf(body)
  const list: ReadonlyArray<unknown> = Array.isArray(data) ? data : expect.fail("data is no list")
  expect(total).toBe(list.length)
  return { next: String(next), types: list.map((one) => fieldsOf(one)["type"]) }
}

/** Publishes events until the work is done, because only later events count. */
const publishUntil = async (
  { events: { publish } }: Fixture["tenure"],
  done: Promise<unknown>,
): Promise<void> => {
  let isDone = false
  void done.then(() => (isDone = true))
  await eventually(async () => {
    await publish({ projectId: "p1", type: "a", data: {} })
    return isDone
  })
}

/** Declares the tests. */
export const eventTests = (test: ServerTest): void => {
  describe("events", () => {
    publicationTests(test)

    test("of Tenure are found, too", async ({ call, operatorToken: token, tenure }) => {
      await call("POST", webhooks, { body: { url: "https://receiver.example/" } })
      const extend = "2099-01-01T00:00:00.000Z"
      const extended = await call("PATCH", "/v2/projects/p1/memberships/1001/extend", {
        body: { extend },
      })
      const [webhook] = await tenure.webhooks.list({ projectId: "p1" })
      const [delivery] = await tenure.webhooks.deliveries({
        projectId: "p1",
        webhookId: webhook?.id ?? "",
      })
      const path = `${events}/${delivery?.eventId.toUpperCase()}`
      expect((await call("GET", path, { token })).body).toMatchObject({
        data: {
          id: delivery?.eventId,
          type: "membership.extended",
          data: { new_end_date: extend, request_id: fieldsOf(extended.body)["request_id"] },
        },
      })
    })

    test("are not found if they are unknown or of another project", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const foreign = await tenure.events.publish({ projectId: "p2", type: "a", data: {} })
      for (const id of [foreign, crypto.randomUUID(), "1", "%00", "__proto__"]) {
        const path = `${events}/${id}`
        expectFailure(await call("GET", path, { token }), 404, "EVENT_NOT_FOUND")
      }
    })

    test("are read by clients, page by page, as they were published", async ({ call, tenure }) => {
      const { cursor } = await tenure.events.read({ projectId: "p1" })
      const data = { amount: "12.50", note: "für 日本 \u2028" }
      const id = await tenure.events.publish({ projectId: "p1", type: "a", data })
      await tenure.events.publish({ projectId: "p2", type: "other", data })
      for (const type of ["b", "c"]) {
        await tenure.events.publish({ projectId: "p1", type, data: {} })
      }
      const read = (query: string) => call("GET", `${events}?${query}`)
      const first = await read(`after=${cursor}&limit=2`)
      expectSuccess(first, {
        total: 2,
        next: expect.any(String),
        data: [
          { id, type: "a", timestamp: instant, data },
          { id: expect.stringMatching(uuid), type: "b", timestamp: instant, data: {} },
        ],
      })
      const second = pageOf(await read(`after=${pageOf(first).next}`))
      expect(second.types).toEqual(["c"])
      expect(pageOf(await read(`after=${second.next}`)).types).toEqual([])
      expect(pageOf(await read(`after=${cursor}&types=c,a`)).types).toEqual(["a", "c"])
      expect(pageOf(await read("after=start&limit=1000")).types.slice(-3)).toEqual(["a", "b", "c"])
      expect(pageOf(await read("")).types).toEqual([])
    })

    test("are waited for", async ({ call, tenure }) => {
      const waiting = call("GET", `${events}?wait=20`)
      await publishUntil(tenure, waiting)
      const { types } = pageOf(await waiting)
      expect(types[0]).toBe("a")
    })

    test("are not read with an invalid cursor or invalid parameters", async ({ call }) => {
      expectFailure(await call("GET", `${events}?after=never-was`), 410, "CURSOR_EXPIRED")
      for (const query of [
        "after=%20",
        "limit=0",
        "wait=21",
        "wait=x",
        "types=",
        "types=a,,b",
        "a=b",
      ]) {
        expectFailure(await call("GET", `${events}?${query}`), 422, "VALIDATION_ERROR")
      }
    })

    test("are waited for by a bounded number of requests of one key", async ({ call, tenure }) => {
      const wait = () => call("GET", `${events}?wait=20`)
      const waiting = Array.from({ length: 11 }, wait)
      const { body, headers, status } = await Promise.race(waiting)
      expect(status).toBe(429)
      expect(headers["retry-after"]).toBe("20")
      expect(fieldsOf(fieldsOf(body)["error"])["code"]).toBe("RATE_LIMIT_EXCEEDED")
      const all = Promise.all(waiting)
      await publishUntil(tenure, all)
      const answers = await all
      expect(answers.filter((one) => one.status === 200)).toHaveLength(10)
    })
  })
}
