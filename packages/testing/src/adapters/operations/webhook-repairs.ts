/** Looking at webhooks and their deliveries, and repairing them. */

import { describe, expect } from "vitest"
import {
  type Answer,
  type Receiver,
  eventually,
  isSignedWith,
  startReceiver,
} from "../../support/fixtures.ts"
import {
  expectFailure,
  expectPage,
  expectSuccess,
  fieldsOf,
  instant,
  uuid,
  webhookOf,
  dataOf,
} from "../../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "../harness.ts"

const unknown = `${webhooks}/6ba7b810-9dad-41d1-80b4-00c04fd430c8`

const options = { webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } }

/** A webhook in p1, and requests about it with an operator's token. */
interface Subject extends Fixture {
  readonly receiver: Receiver
  readonly id: string
  readonly secret: string
  /** The webhook's path. */
  readonly path: string
  readonly operate: (method: string, path: string, body?: unknown) => ReturnType<Fixture["call"]>
  /** Publishes an event, and waits until the webhook has answered. */
  readonly publish: () => Promise<string>
}

/** Runs a test with a webhook and a receiver answering as given. */
const repairing =
  (test: (subject: Subject) => Promise<void>, answer?: Answer) =>
  async (fixture: Fixture): Promise<void> => {
    const { call, operatorToken: token, tenure } = fixture
    const receiver = await startReceiver(answer)
    const created = webhookOf(await call("POST", webhooks, { body: { url: receiver.url } }))
    const webhook = { projectId: "p1", webhookId: created.id }
    const attempts = async () =>
      (await tenure.webhooks.deliveries(webhook)).flatMap((delivery) => delivery.attempts).length
    try {
      await test({
        ...fixture,
        ...created,
        receiver,
        path: `${webhooks}/${created.id}`,
        operate: (method, path, body) => call(method, path, { token, body }),
        publish: async () => {
          const before = await attempts()
          const type = "payment.completed"
          const id = await tenure.events.publish({ projectId: "p1", type, data: {} })
          await eventually(async () => (await attempts()) > before)
          return id
        },
      })
    } finally {
      receiver.close()
    }
  }

/** Answers with the given statuses, one after another, and then with 204. */
const answering = (...statuses: ReadonlyArray<number>): Answer => {
  const left = [...statuses]
  return (response) => void response.writeHead(left.shift() ?? 204).end("the response")
}

const actionTests = (test: ServerTest): void => {
  test.with(options)(
    "receive an event on demand",
    repairing(async ({ operate, path, receiver }) => {
      const ping = `${path}/ping`
      const response = await operate("POST", ping)
      const { data } = expectSuccess(response, {
        data: { event_id: expect.stringMatching(uuid) },
      })
      await receiver.until(1)
      expect(receiver.received[0]?.headers["webhook-id"]).toBe(fieldsOf(data)["event_id"])
    }),
  )

  test.with(options)(
    "get a new secret, and sign with the previous one for a day, too",
    repairing(async ({ call, operate, path, receiver, secret }) => {
      const rotate = `${path}/rotate`
      const response = await operate("POST", rotate)
      const { data } = expectSuccess(response, {
        data: { secret: expect.stringMatching(/^whsec_/), previous_until: instant },
      })
      const rotated = fieldsOf(data)
      const until = Date.parse(String(rotated["previous_until"]))
      expect(Math.abs(until - Date.now() - 86_400_000)).toBeLessThan(60_000)
      const found = await call("GET", path)
      expect(found.body).toMatchObject({ data: { secret: rotated["secret"] } })
      await operate("POST", `${path}/ping`)
      await receiver.until(1)
      for (const one of [String(rotated["secret"]), secret]) {
        expect(receiver.received.every((sent) => isSignedWith(sent, one))).toBe(true)
      }
    }),
  )

  test.with(options)(
    "are enabled after their receiver has answered 410, and then sent what they missed",
    repairing(async ({ call, operate, path, publish, receiver }) => {
      await publish()
      const found = await call("GET", path)
      expect(found.body).toMatchObject({
        data: { disabled_at: instant, disabled_by: "failures", failures: 1 },
      })
      const body = { since: "2020-01-01T00:00:00.000Z" }
      for (const [suffix, sent] of [["/ping"], ["/replay", body]] as const) {
        const target = `${path}${suffix}`
        expectFailure(await operate("POST", target, sent), 409, "WEBHOOK_DISABLED")
      }
      const enable = `${path}/enable`
      expectSuccess(await operate("POST", enable), { data: null })
      const enabled = await call("GET", path)
      expect(enabled.body).toMatchObject({
        data: { disabled_at: null, failing_since: null, failures: 0 },
      })
      const replay = `${path}/replay`
      const given = { ...body, only: "failed" }
      const replayed = await operate("POST", replay, given)
      expectSuccess(replayed, { data: { replayed: 1, next: null } })
      await receiver.until(2)
      expectSuccess(await operate("POST", replay, given), { data: { replayed: 0, next: null } })
    }, answering(410)),
  )
}

const updateTests = (test: ServerTest): void => {
  test.with(options)(
    "are changed in what is asked for, and disabled without a loss until they are enabled",
    repairing(async ({ call, operate, path, publish, receiver, secret, tenure }) => {
      const moved = await startReceiver()
      const { url } = moved
      const described = {
        description: "The shop's mails",
        event_types: ["payment.completed"],
        ordered: true,
        rate: 500,
      }
      expectSuccess(await operate("PATCH", path, { url, ...described }), {
        data: expect.objectContaining({ url, ...described, disabled_by: null }),
      })
      const headers = { "X-Tenant": "hidden 1", Authorization: "Bearer hidden-2" }
      const headed = await operate("PATCH", path, { headers })
      expect(headed.body).toMatchObject({ data: { header_names: ["authorization", "x-tenant"] } })
      await operate("PATCH", path, { headers: { "x-tenant": null } })
      const all = { event_types: null, rate: null, description: null, disabled: true }
      const disabled = { event_types: null, rate: null, disabled_by: "request" }
      const stopped = await operate("PATCH", path, all)
      expect(stopped.body).toMatchObject({ data: { url, ...disabled, disabled_at: instant } })
      expect(stopped.body).not.toHaveProperty("data.secret")
      const enabled = await operate("PATCH", path, { disabled: false })
      expect(enabled.body).toMatchObject({ data: { disabled_by: null, disabled_at: null } })
      await publish()
      expect(moved.received.map((sent) => isSignedWith(sent, secret))).toEqual([true])
      expect(moved.received[0]?.headers).toMatchObject({ authorization: "Bearer hidden-2" })
      expect(moved.received[0]?.headers).not.toHaveProperty("x-tenant")
      expect(receiver.received).toEqual([])
      moved.close()
      expect((await call("GET", path)).body).toMatchObject({ data: { url, secret } })
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 100 })
      const changes = rows.filter(({ action }) => action === "webhook_changed")
      expect(changes.map((row) => row.changes.map(({ field }) => field))).toEqual([
        ["disabledBy"],
        ["eventTypes", "rate", "description", "disabledBy"],
        ["headers"],
        ["headers"],
        ["url", "eventTypes", "ordered", "rate", "description"],
      ])
    }),
  )

  test.with(options)(
    "refuse a change that is empty, unknown or invalid",
    repairing(async ({ call, operate, path }) => {
      const before = (await call("GET", path)).body
      for (const body of [
        {},
        { secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
        { description: "" },
        { description: "two\nlines" },
        { description: "x".repeat(201) },
        { event_types: [] },
        { disabled: null },
        { headers: { "Webhook-Id": "1" } },
        { headers: { "x-a": "1", "X-A": "2" } },
        { headers: { "x-a": "line\r\nx-b: 2" } },
        { ordered: null },
        { rate: 0 },
        { rate: 10_001 },
        { rate: 1.5 },
      ]) {
        expectFailure(await operate("PATCH", path, body), 422, "VALIDATION_ERROR")
      }
      for (const url of [null, "ftp://receiver.example", "http://10.0.0.1/"]) {
        const response = await operate("PATCH", path, { url, description: "not this either" })
        expectFailure(response, 422, "VALIDATION_ERROR")
      }
      expect((await call("GET", path)).body).toMatchObject({ data: { description: null } })
      expect(before).toMatchObject({ data: { description: null } })
    }),
  )
}

const deliveryTests = (test: ServerTest): void => {
  test.with(options)(
    "show their deliveries, with the status and the error of each attempt",
    repairing(async ({ operate, path, publish, secret }) => {
      const ids = [await publish(), await publish()]
      const deliveries = `${path}/deliveries`
      const attempt = (status: number, error: unknown) => ({
        at: instant,
        duration_ms: expect.any(Number),
        status,
        error,
      })
      const response = await operate("GET", deliveries)
      expectPage(response, {
        next: null,
        data: [
          {
            event_id: ids[1],
            type: "payment.completed",
            created_at: instant,
            user_id: null,
            state: "delivered",
            due_at: null,
            attempts: [attempt(204, null)],
          },
          {
            event_id: ids[0],
            type: "payment.completed",
            created_at: instant,
            user_id: null,
            state: "waiting",
            due_at: instant,
            attempts: [attempt(500, expect.stringContaining("answered 500"))],
          },
        ],
      })
      const text = JSON.stringify(response.body)
      expect(text).not.toContain(secret)
      expect(text).not.toContain("the response")
    }, answering(500)),
  )

  test.with(options)(
    "show their deliveries page by page and by state",
    repairing(async ({ operate, path, publish }) => {
      const ids = [await publish(), await publish(), await publish()].toReversed()
      const deliveries = `${path}/deliveries`
      const list = async (query: string) => {
        const response = await operate("GET", `${deliveries}?${query}`)
        const { data, next } = expectPage(response, {
          next: expect.toBeOneOf([null, expect.any(String)]),
          data: expect.any(Array),
        })
        return { next, ids: data.map((one) => fieldsOf(one)["event_id"]) }
      }
      const first = await list("limit=2")
      expect(first.ids).toEqual(ids.slice(0, 2))
      expect(await list(`limit=2&after=${first.next}`)).toEqual({ next: null, ids: ids.slice(2) })
      expect(await list("limit=3")).toEqual({ next: null, ids })
      expect(await list("state=delivered")).toEqual({ next: null, ids })
      expect(await list("state=failed&limit=1000")).toEqual({ next: null, ids: [] })
    }),
  )

  test.with(options)(
    "show their deliveries by their latest attempt, page by page and by state",
    repairing(async ({ operate, path, publish, receiver, tenure }) => {
      const [one, other, third] = [await publish(), await publish(), await publish()]
      const member = { projectId: "p1", userId: "1001", endDate: "2099-01-01T00:00:00.000Z" }
      await tenure.memberships.extend(member)
      await receiver.until(4)
      const deliveries = `${path}/deliveries`
      const list = async (query: string) => {
        const response = await operate("GET", `${deliveries}?order=latest_attempt${query}`)
        return expectPage(response, {
          next: expect.toBeOneOf([null, expect.any(String)]),
          data: expect.any(Array),
        })
      }
      const idsOf = ({ data }: Awaited<ReturnType<typeof list>>) =>
        data.map((delivery) => fieldsOf(delivery)["event_id"])
      await eventually(async () => idsOf(await list("&state=delivered")).length === 4)
      const [latest] = (await list("&limit=1")).data
      expect(latest).toMatchObject({ type: "membership.extended", user_id: "1001" })
      await operate("POST", `${path}/replay`, { event_id: one })
      await eventually(async () => idsOf(await list("&limit=1"))[0] === one)
      const all = [one, fieldsOf(latest)["event_id"], third, other]
      expect(idsOf(await list(""))).toEqual(all)
      const walked: Array<unknown> = []
      let after = ""
      while (walked.length < 5) {
        const page = await list(`&limit=1${after}`)
        walked.push(...idsOf(page))
        if (page.next === null) break
        after = `&after=${page.next}`
      }
      expect(walked).toEqual(all)
      expect(idsOf(await list("&state=failed"))).toEqual([])
    }),
  )

  test.with(options)(
    "count their attempts by the quarter of an hour, and say how long these took",
    repairing(async ({ call, path, publish }) => {
      const activity = `${path}/activity`
      const get = async () => {
        const response = await call("GET", activity)
        return fieldsOf(fieldsOf(expectSuccess(response, { data: expect.any(Object) }))["data"])
      }
      expect(await get()).toMatchObject({ p50_ms: null, p99_ms: null })
      await publish()
      await publish()
      const { p50_ms, p99_ms, quarters } = await get()
      expect(quarters).toHaveLength(96)
      const counted = Array.isArray(quarters) ? quarters.slice(-2) : []
      // Some may be in the quarter before.
      expect(counted.reduce((sum, { delivered }) => sum + Number(delivered), 0)).toBe(1)
      expect(counted.reduce((sum, { failed }) => sum + Number(failed), 0)).toBe(1)
      expect([p50_ms, p99_ms]).toEqual([expect.any(Number), expect.any(Number)])
      const unknownWebhook = `${unknown}/activity`
      expectFailure(await call("GET", unknownWebhook), 404, "WEBHOOK_NOT_FOUND")
    }, answering(500)),
  )

  test.with(options)(
    "refuse other parameters of the list",
    repairing(async ({ operate, path }) => {
      const deliveries = `${path}/deliveries`
      for (const [name, query] of [
        ["limit", "limit=0"],
        ["limit", "limit=1001"],
        ["state", "state=lost"],
        ["state", "state="],
        ["state", "state=failed&state=waiting"],
        ["after", "after=1"],
        ["after", "after=00000000-0000-4000-8000-000000000000"],
        ["offset", "offset=1"],
        ["order", "order=oldest"],
        ["after", "order=latest_attempt&after=00000000-0000-4000-8000-000000000000"],
        ["after", "after=1700000000000_00000000-0000-4000-8000-000000000000"],
        [
          "after",
          "order=latest_attempt&after=9999999999999999_00000000-0000-4000-8000-000000000000",
        ],
      ] as const) {
        const response = await operate("GET", `${deliveries}?${query}`)
        const failure = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(failure["error"])["message"]).toContain(name)
      }
    }),
  )

  test.with(options)(
    "are sent an event again by its id",
    repairing(async ({ operate, path, publish, receiver }) => {
      const event_id = await publish()
      const replay = `${path}/replay`
      const replayed = await operate("POST", replay, { event_id: event_id.toUpperCase() })
      expectSuccess(replayed, { data: { replayed: 1, next: null } })
      await receiver.until(2)
      const ids = receiver.received.map(({ headers }) => headers["webhook-id"])
      expect(ids).toEqual([event_id, event_id])
      const missing = await operate("POST", replay, { event_id: crypto.randomUUID() })
      expectSuccess(missing, { data: { replayed: 0, next: null } })
    }),
  )

  test.with(options)(
    "are sent what they have missed, by type, and nothing by a dry run",
    repairing(async ({ call, operate, publish, receiver }) => {
      await publish()
      const { id } = webhookOf(
        await call("POST", webhooks, {
          body: { url: receiver.url, event_types: ["other.happened"] },
        }),
      )
      const replay = `${webhooks}/${id}/replay`
      const since = 1_000_000_000_000
      const send = async (body: object, replayed: number) => {
        const response = await operate("POST", replay, { since, ...body })
        expectSuccess(response, { data: { replayed, next: null } })
      }
      const types = ["payment.completed"]
      await send({}, 0)
      await send({ types, only: "failed" }, 0)
      await send({ types, only: "missed", dry_run: true }, 1)
      await send({ types }, 1)
      await receiver.until(2)
      const [one, other] = receiver.received.map(({ headers }) => headers["webhook-id"])
      expect(other).toBe(one)
    }),
  )

  test.with(options)(
    "are sent nothing again if the request does not say what",
    repairing(async ({ operate, path }) => {
      const replay = `${path}/replay`
      const event_id = crypto.randomUUID()
      for (const body of [
        {},
        { event_id: "1" },
        { event_id: null },
        { event_id: [event_id] },
        { since: "yesterday" },
        { since: 1 },
        { since: null },
        { event_id, since: 1_000_000_000_000 },
        { event_id, dry_run: true },
        { since: 1_000_000_000_000, only: "delivered" },
        { since: 1_000_000_000_000, types: [] },
        { since: 1_000_000_000_000, after: "1" },
        { since: 1_000_000_000_000, after: `${event_id}.${event_id}` },
        // A field that nobody reads would protect nobody.
        { since: 1_000_000_000_000, dryRun: true },
      ]) {
        expectFailure(await operate("POST", replay, body), 422, "VALIDATION_ERROR")
      }
    }),
  )
}

/** Declares the tests. */
export const webhookRepairTests = (test: ServerTest): void => {
  describe("webhooks", () => {
    test.with(options)(
      "are found by their id, with what they are for and how they fare",
      repairing(async ({ call, id, path, publish, receiver, secret }) => {
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
        expectSuccess(await call("GET", path), { data: failing })
        const upper = `${webhooks}/${id.toUpperCase()}`
        expectSuccess(await call("GET", upper), { data: failing })
        const { secret: _, ...health } = failing
        const all = "/v2/projects/p1/integrations/health"
        expectSuccess(await call("GET", all), { total: 1, data: [health] })
      }, answering(500)),
    )

    test.with(options)(
      "show their secret to nobody whom the audit trail does not name",
      repairing(async ({ call, id, path, tenure }) => {
        const shown = await call("GET", path)
        await call("GET", "/v2/projects/p1/integrations/health")
        const [row, before] = await tenure.memberships.history({ projectId: "p1", limit: 2 })
        expect(row).toMatchObject({
          action: "secret_shown",
          subject: id,
          origin: {
            keyId: expect.any(String),
            requestId: fieldsOf(shown.body)["request_id"],
          },
        })
        expect(before).toMatchObject({ action: "webhook_created" })
      }),
    )

    test.with(options)(
      "show a delivery with its request and what was responded, to whom the audit trail names",
      repairing(async ({ id, operate, path, publish, receiver, tenure }) => {
        const eventId = await publish()
        const delivery = `${path}/deliveries/${eventId}`
        const found = await operate("GET", delivery)
        const { body: sent = "", headers = {} } = receiver.received[0] ?? {}
        expectSuccess(found, {
          data: {
            event_id: eventId,
            type: "payment.completed",
            created_at: instant,
            user_id: null,
            state: "waiting",
            due_at: instant,
            attempts: [
              {
                at: instant,
                duration_ms: expect.any(Number),
                status: 500,
                error: expect.stringContaining("answered 500"),
                response_body: "the response",
              },
            ],
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
              body: sent,
            },
          },
        })
        expect(await tenure.memberships.history({ projectId: "p1", limit: 1 })).toMatchObject([
          { action: "data_shown", subject: eventId },
        ])
        const missing = `${path}/deliveries/${id}`
        expectFailure(await operate("GET", missing), 404, "EVENT_NOT_FOUND")
        const other = await tenure.webhooks.create({ projectId: "p1", url: receiver.url })
        const elsewhere = `${webhooks}/${other.id}/deliveries/${eventId}`
        expectFailure(await operate("GET", elsewhere), 404, "EVENT_NOT_FOUND")
      }, answering(500)),
    )

    test.with(options)(
      "can be created for some types of events, and receive no others",
      async ({ call, tenure }) => {
        const receiver = await startReceiver()
        const event_types = ["payment.completed", "membership.extended"]
        const created = await call("POST", webhooks, {
          body: { url: receiver.url, event_types },
        })
        expect(Object.keys(dataOf(created))).toEqual(["url", "id", "secret"])
        const found = await call("GET", `${webhooks}/${webhookOf(created).id}`)
        expect(found.body).toMatchObject({ data: { event_types } })
        for (const type of ["payment.refunded", "payment.completed"]) {
          await tenure.events.publish({ projectId: "p1", type, data: {} })
        }
        await receiver.until(1)
        expect(receiver.received.map(({ body }) => fieldsOf(JSON.parse(body))["type"])).toEqual([
          "payment.completed",
        ])
        receiver.close()
      },
    )

    test.with(options)(
      "can be created to receive a member's events one after another",
      async ({ call, tenure }) => {
        const answers: Array<() => void> = []
        const receiver = await startReceiver((response) => {
          answers.push(() => void response.writeHead(204).end())
        })
        const body = { url: receiver.url, ordered: true }
        const created = await call("POST", webhooks, { body })
        const found = await call("GET", `${webhooks}/${webhookOf(created).id}`)
        expect(found.body).toMatchObject({ data: { ordered: true } })
        for (const [user_id, n] of [
          ["ada", 1],
          ["ada", 2],
          ["bob", 3],
        ] as const) {
          await tenure.events.publish({ projectId: "p1", type: "a.b", data: { user_id, n } })
        }
        const numbers = () =>
          receiver.received.map(({ body: sent }) => {
            const { data }: { readonly data: { readonly n: number } } = JSON.parse(sent)
            return data.n
          })
        await receiver.until(2)
        expect(numbers().toSorted()).toEqual([1, 3])
        for (const answer of answers) answer()
        await receiver.until(3)
        expect(numbers().at(-1)).toBe(2)
        answers.at(-1)?.()
        receiver.close()
        const invalid = { url: receiver.url, ordered: "yes" }
        const refused = await call("POST", webhooks, { body: invalid })
        const failure = expectFailure(refused, 422, "VALIDATION_ERROR")
        expect(fieldsOf(failure["error"])["message"]).toContain("ordered")
      },
    )

    test("cannot be created for types that are no array of event types", async ({ call }) => {
      const invalid = [
        null,
        [],
        "a",
        {},
        7,
        [""],
        ["a b"],
        ["a", 7],
        [null],
        [".a"],
        ["a".repeat(129)],
      ]
      for (const event_types of [...invalid, Array.from({ length: 101 }, () => "a")]) {
        const body = { url: "https://receiver.example/", event_types }
        const response = await call("POST", webhooks, { body })
        const failure = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(failure["error"])["message"]).toContain("event_types")
      }
      expectSuccess(await call("GET", webhooks), {
        total: 0,
        data: [],
      })
    })

    test("are not found if they are unknown or of another project", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const url = "https://receiver.example/"
      const { id } = await tenure.webhooks.create({ projectId: "p2", url })
      const body = { since: 1_000_000_000_000 }
      for (const path of [unknown, `${webhooks}/${id}`, `${webhooks}/1`]) {
        for (const [method, suffix] of [
          ["GET", ""],
          ["POST", "/ping"],
          ["POST", "/enable"],
          ["POST", "/rotate"],
          ["GET", "/activity"],
          ["GET", "/deliveries"],
          ["POST", "/replay"],
        ] as const) {
          const target = `${path}${suffix}`
          const response = await call(method, target, {
            token,
            ...(suffix === "/replay" && { body }),
          })
          expectFailure(response, 404, "WEBHOOK_NOT_FOUND")
        }
      }
    })

    actionTests(test)
    updateTests(test)
    deliveryTests(test)
  })
}
