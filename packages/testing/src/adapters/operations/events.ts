/** Publishing events, reading them, and finding their deliveries. */

import { knownEventTypes } from "@tenure/core/store"
import { describe, expect } from "vitest"
import { eventually } from "../../support/fixtures.ts"
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
import {
  type Fixture,
  type ServerTest,
  events,
  extend,
  extendOne,
  unknownId,
  webhooks,
} from "../harness.ts"

const data = { amount: "12.50", note: "für 日本 \u2028", list: [null, 1e21] }

/** Refused event bodies, and how the messages begin. The core tests all rules. */
const refused: ReadonlyArray<readonly [body: object | string, problem: string]> = [
  ...[undefined, "", "a b", ["a"], "a".repeat(129), "error", ...Object.values(knownEventTypes)].map(
    (type) => [{ type, data: {} }, "type "] as const,
  ),
  [{ type: "a" }, "data "],
  // It would be read differently than it was sent.
  ['{"type":"a","data":{"items":[{"id":1},{"id":9007199254740993}]}}', "data.items[1].id must "],
  ['{"type":"a","data":0.12345678901234567890}', "data must "],
  ['{"type":"a","data":[1e400]}', "data[0] must "],
  ['{"type":"a","data":{"a":1,"b":{"c":1,"c":2}}}', "data.b.c must "],
]

const publishingTests = (test: ServerTest): void => {
  test.with({ webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } })(
    "are published, and found with their delivery to each webhook",
    async (fixture) => {
      const { call, operate } = fixture
      const receiver = await fixture.receiver((response) => void response.writeHead(500).end())
      const created = await call("POST", webhooks, { body: { url: receiver.url } })
      const body = { type: "payment.completed", data }
      const response = await operate("POST", events, body)
      expectSuccess(response, { data: { id: expect.stringMatching(uuid) } })
      const { id } = dataOf(response)
      await receiver.until(1)
      const { body: sent, headers } = receiver.received[0] ?? expect.fail("nothing was sent")
      expect(headers["webhook-id"]).toBe(id)
      const notification = fieldsOf(JSON.parse(sent))
      expect(notification).toEqual({ ...body, timestamp: instant })
      const find = () => operate("GET", `${events}/${String(id)}`)
      await eventually(async () => (await find()).text.includes('"status":500'))
      const attempt = {
        at: instant,
        duration_ms: expect.any(Number),
        status: 500,
        error: expect.stringContaining("answered 500"),
      }
      const webhook_id = webhookOf(created).id
      expectSuccess(await find(), {
        data: {
          id,
          ...notification,
          deliveries: [{ webhook_id, state: "waiting", due_at: instant, attempts: [attempt] }],
        },
      })
    },
  )

  test("may have any JSON as data, and need no webhook", async ({ operate }) => {
    for (const any of [null, 0, "", false, [], {}, { data: { type: "x" } }]) {
      const body = { type: "a", data: any }
      const { id } = dataOf(await operate("POST", events, body))
      expectSuccess(await operate("GET", `${events}/${String(id)}`), {
        data: { id, ...body, timestamp: instant, deliveries: [] },
      })
    }
  })

  test("are refused with a type that is Tenure's own or none, and data that would change, by its path", async (fixture) => {
    const { operate, tenure } = fixture
    const before = await tenure.events.read({ projectId: "p1", after: "start" })
    for (const [body, problem] of refused) {
      const response = await operate("POST", events, body)
      expectInvalid(response, problem)
      const { error } = fieldsOf(response.body)
      expect(String(fieldsOf(error)["message"]).startsWith(problem)).toBe(true)
    }
    const after = await tenure.events.read({ projectId: "p1", after: "start" })
    expect(after.events).toEqual(before.events)
  })

  test.with({ webhooks: { maxEventBytes: 1000 } })(
    "are refused if they are longer than the host allows",
    async ({ operate }) => {
      const publish = (length: number) =>
        operate("POST", events, { type: "a", data: "x".repeat(length) })
      expectInvalid(await publish(2000), "1000 bytes")
      expect((await publish(900)).status).toBe(200)
      expectFailure(await publish(70_000), 413, "PAYLOAD_TOO_LARGE")
    },
  )
}

const findingTests = (test: ServerTest): void => {
  test("are read without their data, or by whom the audit trail names", async (fixture) => {
    const { operate, tenure } = fixture
    const type = "payment.completed"
    const id = await tenure.events.publish({ projectId: "p1", type, data: { amount: 5 } })
    const path = `${events}/${id}`
    const event = { id, type, timestamp: instant, data: null }
    expectSuccess(await operate("GET", `${path}?data=false`), {
      data: { ...event, deliveries: [] },
    })
    expect(itemsOf(await operate("GET", `${events}?after=start&data=false`))).toContainEqual(event)
    const latest = async () => (await tenure.memberships.history({ projectId: "p1", limit: 1 }))[0]
    expect((await latest())?.action).not.toBe("data_shown")
    const shown = await operate("GET", path)
    expect(dataOf(shown)).toMatchObject({ ...event, data: { amount: 5 } })
    const requestId = fieldsOf(shown.body)["request_id"]
    expect(await latest()).toMatchObject({
      action: "data_shown",
      subject: id,
      origin: { requestId },
    })
    expectInvalid(await operate("GET", `${path}?data=no`), "data")
  })

  test("of Tenure are found, by their id in upper case too, and none of another project", async (fixture) => {
    const { call, operate, tenure } = fixture
    const extended = await call("PATCH", extendOne, { body: { extend } })
    const id = String(itemsOf(await call("GET", `${events}?after=start`)).at(-1)?.["id"])
    expect(dataOf(await operate("GET", `${events}/${id.toUpperCase()}`))).toMatchObject({
      id,
      type: "membership.extended",
      data: { new_end_date: extend, request_id: fieldsOf(extended.body)["request_id"] },
    })
    const foreign = await tenure.events.publish({ projectId: "p2", type: "a", data: {} })
    for (const missing of [
      foreign,
      unknownId,
      `%7B${id}%7D`,
      id.replaceAll("-", ""),
      "1",
      "%00",
      "__proto__",
    ]) {
      const response = await operate("GET", `${events}/${missing}`)
      expectFailure(response, 404, "EVENT_NOT_FOUND")
    }
  })

  test("are listed newest first, page after page, with the member and the date alone", async (fixture) => {
    const { operate, tenure } = fixture
    const member = { projectId: "p1", userId: "u1", endDate: Date.parse(extend) }
    await tenure.memberships.grant({ ...member, reason: "a secret" })
    await tenure.events.publish({ projectId: "p1", type: "test.happened", data: { user_id: 1 } })
    const list = async (query: string) =>
      fieldsOf((await operate("GET", `${events}?order=newest&${query}`)).body)
    const first = await list("limit=1&data=summary")
    expect(first["data"]).toMatchObject([{ type: "test.happened", data: null }])
    const second = await list(`limit=1&data=summary&after=${String(first["next"])}`)
    expect(second["data"]).toMatchObject([
      { type: "membership.granted", data: { user_id: "u1", end_date: extend } },
    ])
    expect(JSON.stringify(second)).not.toContain("a secret")
    expect(await list("after=start")).toMatchObject({ data: [], next: "start" })
  })
}

/** Refused feed queries. The core tests all rules. */
const refusedQueries = [
  "after=%20",
  "limit=0",
  "wait=21",
  "types=a,,b",
  "order=latest",
  "order=newest&wait=1",
  "order=newest&types=a.b",
  "order=newest&after=x",
]

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

const pollingTests = (test: ServerTest): void => {
  test("are read by clients, page by page, as they were published", async ({ call, tenure }) => {
    const { cursor } = await tenure.events.read({ projectId: "p1" })
    const id = await tenure.events.publish({ projectId: "p1", type: "a", data })
    await tenure.events.publish({ projectId: "p2", type: "other", data })
    for (const type of ["b", "c"]) {
      await tenure.events.publish({ projectId: "p1", type, data: {} })
    }
    const read = (query: string) => call("GET", `${events}?${query}`)
    const { next } = expectSuccess(await read(`after=${cursor}&limit=2`), {
      total: 2,
      next: expect.any(String),
      data: [
        { id, type: "a", timestamp: instant, data },
        { id: expect.stringMatching(uuid), type: "b", timestamp: instant, data: {} },
      ],
    })
    const second = await read(`after=${String(next)}`)
    const end = String(fieldsOf(second.body)["next"])
    for (const [query, types] of [
      [`after=${String(next)}`, ["c"]],
      [`after=${end}`, []],
      [`after=${cursor}&types=c,a`, ["a", "c"]],
      ["after=start&limit=1000", ["a", "b", "c"]],
      ["", []],
    ] as const) {
      const found = itemsOf(await read(query)).map(({ type }) => type)
      expect([query, found.slice(-3)]).toEqual([query, types])
    }
  })

  test("are not read with an invalid cursor or invalid parameters", async ({ call }) => {
    expectFailure(await call("GET", `${events}?after=never-was`), 410, "CURSOR_EXPIRED")
    for (const query of refusedQueries) expectInvalid(await call("GET", `${events}?${query}`))
  })

  test("are waited for, by a bounded number of requests of one key", async ({ call, tenure }) => {
    const waiting = Array.from({ length: 11 }, () => call("GET", `${events}?wait=20`))
    const { body, headers, status } = await Promise.race(waiting)
    expect(status).toBe(429)
    expect(headers["retry-after"]).toBe("20")
    expect(fieldsOf(fieldsOf(body)["error"])["code"]).toBe("RATE_LIMIT_EXCEEDED")
    const all = Promise.all(waiting)
    await publishUntil(tenure, all)
    const answered = (await all).filter((one) => one.status === 200)
    expect(answered).toHaveLength(10)
    for (const one of answered) expect(itemsOf(one)[0]).toMatchObject({ type: "a" })
  })
}

export const eventTests = (test: ServerTest): void => {
  describe("events", () => {
    publishingTests(test)
    findingTests(test)
    pollingTests(test)
  })
}
