/** Requests with an idempotency key. */

import { type Operation, type PathParams, routes } from "@tenure/core/internal"
import * as Struct from "effect/Struct"
import { describe, expect } from "vitest"
import { dataOf, expectFailure, fieldsOf, webhookOf as createdOf } from "../../support/http.ts"
import { type Fixture, type ServerTest, asLines, extendOne, keyed, webhooks } from "../harness.ts"
import { validDate } from "./extending.ts"

/** Removes the fields unique to each response. */
const lasting = (body: unknown) => ({ ...fieldsOf(body), request_id: undefined })

/** Operations with an effect. Tickets are always new. */
type Changing = Exclude<
  {
    readonly [Of in Operation]: (typeof routes)[Of]["method"] extends "GET" ? never : Of
  }[Operation],
  "realtime.issueTicket"
>

/** A request without its key. */
interface Prepared {
  /** Path parameters besides the project and the user. */
  readonly params?: Partial<PathParams>
  readonly body?: object
  /** The body's type, if it is not JSON. */
  readonly type?: typeof asLines
}

const webhookOf = async ({ tenure }: Fixture): Promise<Prepared> => {
  const { id } = await tenure.webhooks.create({ projectId: "p1", url: "https://example.com/" })
  return { params: { webhook_id: id } }
}

/** Requests by operation. A missing one does not compile. */
const requests: { readonly [Of in Changing]: (fixture: Fixture) => Promise<Prepared> } = {
  "memberships.extend": async () => ({ body: { extend: validDate } }),
  "memberships.extendAll": async () => ({ body: { extend: validDate } }),
  "memberships.extendSome": async () => ({
    body: { where: { state: "active" }, extend: validDate },
  }),
  "memberships.undoBulkExtension": async ({ tenure }) => {
    await tenure.memberships.extendAll({ projectId: "p1", endDate: validDate })
    const [bulk] = await tenure.memberships.bulkExtensions({ projectId: "p1" })
    return { params: { bulk_extension_id: bulk?.id ?? "" }, body: {} }
  },
  "memberships.import": async () => ({
    body: { user_id: "1001", end_date: validDate },
    type: asLines,
  }),
  "memberships.grant": async ({ tenure }) => {
    const metadata = { plan: "gold" }
    await tenure.memberships.update({ projectId: "p1", userId: "1001", metadata })
    return { body: { end_date: validDate } }
  },
  "memberships.update": async () => ({ body: { metadata: { plan: "gold" } } }),
  "memberships.end": async () => ({}),
  "memberships.move": async () => ({ body: { to: "1002" } }),
  "memberships.pause": async () => ({ body: {} }),
  "memberships.resume": async ({ tenure }) => {
    await tenure.memberships.pause({ projectId: "p1", userId: "1001" })
    return { body: {} }
  },
  "projects.create": async () => ({ params: { project_id: "fresh" } }),
  "projects.update": async () => ({ body: { time_zone: "Europe/Berlin" } }),
  "projects.delete": async () => ({}),
  "webhooks.create": async () => ({ body: { url: "https://example.com/" } }),
  "webhooks.update": async (fixture) => ({
    ...(await webhookOf(fixture)),
    body: { description: "The shop's mails" },
  }),
  "webhooks.delete": webhookOf,
  "webhooks.ping": webhookOf,
  "webhooks.enable": async (fixture) => {
    const { webhooks: own } = fixture.tenure
    const { id } = await own.create({ projectId: "p1", url: "https://example.com/" })
    await own.update({ projectId: "p1", webhookId: id, disabled: true })
    return { params: { webhook_id: id } }
  },
  "webhooks.rotate": webhookOf,
  "webhooks.replay": async (fixture) => ({
    ...(await webhookOf(fixture)),
    body: { since: "2020-01-01T00:00:00.000Z" },
  }),
  "webhooks.cancel": async ({ tenure }) => {
    const url = "https://example.com/"
    const { id } = await tenure.webhooks.create({ projectId: "p1", url, ordered: true })
    // The second event waits for the first one.
    for (const amount of [1, 2]) {
      const data = { user_id: "1001", amount }
      await tenure.events.publish({ projectId: "p1", type: "payment.completed", data })
    }
    return { params: { webhook_id: id }, body: {} }
  },
  "events.publish": async () => ({ body: { type: "payment.completed", data: { amount: 7 } } }),
  "apiKeys.issue": async () => ({ body: { projects: ["p1"], role: "client" } }),
  "apiKeys.revoke": async ({ tenure }) => {
    const { id } = await tenure.apiKeys.issue({ projects: "all" })
    return { params: { key_id: id } }
  },
}

/** Changes a former answer, if it is still there. Secrets are read again, so they stay. */
const changeAnswered = async ({ tenure }: Fixture): Promise<void> => {
  const member = { projectId: "p1", userId: "1001" }
  const url = "https://example.com/other"
  const registered = await tenure.webhooks.list({ projectId: "p1" }).catch(() => [])
  const changes = [
    () => tenure.memberships.update({ ...member, metadata: { plan: "silver" } }),
    () => tenure.memberships.updateProject({ projectId: "p1", timeZone: "Asia/Kathmandu" }),
    () => tenure.memberships.extendAll({ projectId: "p1", by: "P1D", idempotencyKey: "k-1" }),
    () => tenure.memberships.end(member),
    ...registered.map(({ id }) => async () => {
      const changed = { projectId: "p1", webhookId: id, url, description: "Other", disabled: true }
      await tenure.webhooks.update(changed)
    }),
  ]
  for (const change of changes) await change().catch(() => undefined)
}

/** Replayed fields that differ from the first response. */
const forgotten: { readonly [Of in Changing]?: object } = { "apiKeys.issue": { token: null } }

/** Operations without a row in the history. */
const unrecorded: ReadonlySet<Changing> = new Set([
  "events.publish",
  "webhooks.ping",
  "webhooks.replay",
])

/** Returns the latest changes' origins, in the projects and outside projects. */
const latestOrigins = async ({ tenure }: Fixture): Promise<ReadonlyArray<unknown>> => {
  const histories = [{ projectId: "p1" }, { projectId: "fresh" }, { projectId: null }].map(
    (which) => tenure.memberships.history(which).catch(() => []),
  )
  return (await Promise.all(histories)).flatMap(([latest]) => latest?.origin ?? [])
}

const operationTests = (test: ServerTest): void => {
  for (const operation of Struct.keys(requests)) {
    test(`makes the change of ${operation} once, and answers the same after other changes`, async (fixture) => {
      const { administer, tenure } = fixture
      const { body, params = {}, type } = await requests[operation](fixture)
      const { method, pattern } = routes[operation]
      const named: Readonly<Record<string, string>> = {
        project_id: "p1",
        user_id: "1001",
        ...params,
      }
      const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => named[name] ?? name)
      const headers = (key: string) => ({ ...type, ...keyed(key) })
      const first = await administer(method, path, body, headers("k-1"))
      if (!unrecorded.has(operation)) {
        const { key_id: keyId } = dataOf(await administer("GET", "/v2/identity"))
        const { request_id: requestId } = fieldsOf(first.body)
        expect(await latestOrigins(fixture)).toContainEqual({ keyId, requestId })
      }
      await changeAnswered(fixture)
      const second = await administer(method, path, body, headers("k-1"))
      expect([first.status, second.status]).toEqual([200, 200])
      expect(first.headers["idempotent-replayed"]).toBeUndefined()
      expect(second.headers["idempotent-replayed"]).toBe("true")
      const data = fieldsOf(first.body)["data"]
      expect(lasting(second.body)).toEqual({
        ...lasting(first.body),
        data: data && { ...data, ...forgotten[operation] },
      })
      expect(fieldsOf(second.body)["request_id"]).not.toBe(fieldsOf(first.body)["request_id"])
      await administer("PUT", "/v2/projects/new", undefined, keyed("k-2"))
      // Otherwise, the missing project would be the first error.
      await tenure.memberships.createProject("p1")
      const other = await administer(method, path, body, headers("k-2"))
      expectFailure(other, 422, "IDEMPOTENCY_MISMATCH")
    })
  }
}

export const idempotencyTests = (test: ServerTest): void => {
  describe("an idempotency key", () => {
    operationTests(test)

    test("shows a secret again only to whom the audit trail names, and not after the deletion of its webhook", async (fixture) => {
      const { operate, tenure } = fixture
      const create = () =>
        operate("POST", webhooks, { url: "https://example.com/hook" }, keyed("k-1"))
      const { id: webhookId } = createdOf(await create())
      const path = `${webhooks}/${webhookId.toUpperCase()}`
      const rotate = () => operate("POST", `${path}/rotate`, undefined, keyed("k-2"))
      await rotate()
      const { secret } = await tenure.webhooks.rotateSecret({ projectId: "p1", webhookId })
      for (const repeat of [create, rotate]) {
        expect((await repeat()).body).toMatchObject({ data: { secret } })
      }
      const history = await tenure.memberships.history({ projectId: "p1", limit: 5 })
      expect(history.map(({ action, subject }) => [action, subject])).toEqual([
        ["secret_shown", webhookId],
        ["secret_shown", webhookId],
        ["secret_rotated", webhookId],
        ["secret_rotated", webhookId],
        ["webhook_created", webhookId],
      ])
      for (const [key, status] of [
        ["k-3", 200],
        ["k-3", 200],
        ["k-4", 404],
      ] as const) {
        expect((await operate("DELETE", path, undefined, keyed(key))).status).toBe(status)
      }
      expectFailure(await create(), 404, "WEBHOOK_NOT_FOUND")
    })

    test("changes something once if the requests come at the same time", async (fixture) => {
      const { call, tenure } = fixture
      const options = { body: { extend: validDate }, headers: keyed("k-1") }
      const calls = Array.from({ length: 6 }, () => call("PATCH", extendOne, options))
      const responses = await Promise.all(calls)
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
      const replays = responses.filter(({ headers }) => headers["idempotent-replayed"])
      expect(replays).toHaveLength(5)
      const history = await tenure.memberships.history({ projectId: "p1", userId: "1001" })
      expect(history.filter(({ action }) => action === "extended")).toHaveLength(1)
    })

    test("is visible characters, sent once, the same with and without quotation marks", async (fixture) => {
      const { call } = fixture
      const send = (key: string | ReadonlyArray<string>) =>
        call("PATCH", extendOne, { body: { extend: validDate }, headers: keyed(key) })
      for (const key of ["", "a b", "x".repeat(256), ["a", "b"], "\u00e9", '"k']) {
        expectFailure(await send(key), 400, "MALFORMED_REQUEST")
      }
      expect((await send("~".repeat(255))).status).toBe(200)
      expect((await send('k-"1\\')).status).toBe(200)
      expect((await send('"k-\\"1\\\\"')).headers["idempotent-replayed"]).toBe("true")
    })

    test.with({}, { isBehindParser: true })(
      "counts behind a parser of the host too",
      async ({ call }) => {
        const send = (extend: unknown) =>
          call("PATCH", extendOne, { body: { extend }, headers: keyed("k-1") })
        await send(validDate)
        expect((await send(validDate)).headers["idempotent-replayed"]).toBe("true")
        expectFailure(await send(4_000_000_000_000), 422, "IDEMPOTENCY_MISMATCH")
      },
    )
  })
}
