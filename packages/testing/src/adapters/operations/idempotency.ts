/** Requests with an idempotency key. */

import { type Operation, type PathParams, routes } from "@tenure/core/internal"
import * as Struct from "effect/Struct"
import { describe, expect } from "vitest"
import { expectFailure, fieldsOf, webhookOf as createdOf } from "../../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "../harness.ts"
import { validDate } from "./extending.ts"

const one = "/v2/projects/p1/memberships/1001/extend"
const all = "/v2/projects/p1/memberships/extend"

const keyed = (key: string | ReadonlyArray<string>) => ({ "idempotency-key": key })

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
  /** The body's content type, if it is not JSON. */
  readonly type?: string
}

const webhookOf = async ({ tenure }: Fixture): Promise<Prepared> => {
  const { id } = await tenure.webhooks.create({ projectId: "p1", url: "https://example.com/" })
  return { params: { webhook_id: id } }
}

/** Requests by operation. A missing one does not compile. */
const requests: { readonly [Of in Changing]: (fixture: Fixture) => Promise<Prepared> } = {
  "memberships.extend": async () => ({ body: { extend: validDate } }),
  "memberships.extendAll": async () => ({ body: { extend: validDate } }),
  "memberships.undoBulkExtension": async ({ tenure }) => {
    await tenure.memberships.extendAll({ projectId: "p1", endDate: validDate })
    const [bulk] = await tenure.memberships.bulkExtensions({ projectId: "p1" })
    return { params: { bulk_extension_id: bulk?.id ?? "" }, body: {} }
  },
  "memberships.import": async () => ({
    body: { user_id: "1001", end_date: validDate },
    type: "application/x-ndjson",
  }),
  "memberships.grant": async ({ tenure }) => {
    const metadata = { plan: "gold" }
    await tenure.memberships.update({ projectId: "p1", userId: "1001", metadata })
    return { body: { end_date: validDate } }
  },
  "memberships.update": async () => ({ body: { metadata: { plan: "gold" } } }),
  "memberships.end": async () => ({}),
  "projects.create": async () => ({}),
  "projects.delete": async () => ({}),
  "webhooks.create": async () => ({ body: { url: "https://example.com/" } }),
  "webhooks.update": async (fixture) => ({
    ...(await webhookOf(fixture)),
    body: { description: "The shop's mails" },
  }),
  "webhooks.delete": webhookOf,
  "webhooks.ping": webhookOf,
  "webhooks.enable": webhookOf,
  "webhooks.rotate": webhookOf,
  "webhooks.replay": async (fixture) => ({
    ...(await webhookOf(fixture)),
    body: { since: "2020-01-01T00:00:00.000Z" },
  }),
  "events.publish": async () => ({ body: { type: "payment.completed", data: { amount: 7 } } }),
  "apiKeys.issue": async () => ({ body: { projects: ["p1"], role: "client" } }),
  "apiKeys.revoke": async ({ tenure }) => {
    const { id } = await tenure.apiKeys.issue({ projects: "all" })
    return { params: { key_id: id } }
  },
}

/** Changes what an operation may have answered, if it is still there. Secrets are read again, so they stay. */
const changeAnswered = async ({ tenure }: Fixture): Promise<void> => {
  const member = { projectId: "p1", userId: "1001" }
  const url = "https://example.com/other"
  const registered = await tenure.webhooks.list({ projectId: "p1" }).catch(() => [])
  const changes = [
    () => tenure.memberships.update({ ...member, metadata: { plan: "silver" } }),
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

/** Declares the tests. */
export const idempotencyTests = (test: ServerTest): void => {
  describe("an idempotency key", () => {
    for (const operation of Struct.keys(requests)) {
      test(`makes the change of ${operation} once, and answers the same after other changes`, async (fixture) => {
        const { call, tenure } = fixture
        const { body, params = {}, type } = await requests[operation](fixture)
        const { method, pattern } = routes[operation]
        const named: Readonly<Record<string, string>> = {
          project_id: "p1",
          user_id: "1001",
          ...params,
        }
        const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => named[name] ?? name)
        const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
        const typed = type === undefined ? {} : { "content-type": type }
        const options = { token, body, headers: { ...typed, ...keyed("k-1") } }
        const first = await call(method, path, options)
        await changeAnswered(fixture)
        const second = await call(method, path, options)
        expect([first.status, second.status]).toEqual([200, 200])
        expect(first.headers["idempotent-replayed"]).toBeUndefined()
        expect(second.headers["idempotent-replayed"]).toBe("true")
        const data = fieldsOf(first.body)["data"]
        const expected = {
          ...lasting(first.body),
          data: data && { ...data, ...forgotten[operation] },
        }
        expect(lasting(second.body)).toEqual(expected)
        expect(fieldsOf(second.body)["request_id"]).not.toBe(fieldsOf(first.body)["request_id"])
        const other = { token, headers: { ...typed, ...keyed("k-2") } }
        await call("PUT", "/v2/projects/new", other)
        // Otherwise, the missing project would be the first error.
        await tenure.memberships.createProject("p1")
        expectFailure(await call(method, path, { ...other, body }), 422, "IDEMPOTENCY_MISMATCH")
      })
    }

    test("of the creation of a project is refused for that of another", async ({
      call,
      tenure,
    }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      const options = { token, headers: keyed("k-1") }
      await call("PUT", "/v2/projects/new", options)
      const path = "/v2/projects/another"
      expectFailure(await call("PUT", path, options), 422, "IDEMPOTENCY_MISMATCH")
      expectFailure(await call("GET", path, { token }), 404, "PROJECT_NOT_FOUND")
    })

    test("shows a secret again only to whom the audit trail names", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const body = { url: "https://example.com/hook" }
      const create = { token, body, headers: keyed("k-1") }
      const { id: webhookId } = createdOf(await call("POST", webhooks, create))
      const rotate = `${webhooks}/${webhookId.toUpperCase()}/rotate`
      const rotation = { token, headers: keyed("k-2") }
      await call("POST", rotate, rotation)
      const { secret } = await tenure.webhooks.rotateSecret({ projectId: "p1", webhookId })
      for (const [path, options] of [
        [webhooks, create],
        [rotate, rotation],
      ] as const) {
        expect((await call("POST", path, options)).body).toMatchObject({ data: { secret } })
      }
      const history = await tenure.memberships.history({ projectId: "p1", limit: 5 })
      const rows = history.map(({ action, subject }) => [action, subject])
      expect(rows).toEqual([
        ["secret_shown", webhookId],
        ["secret_shown", webhookId],
        ["secret_rotated", webhookId],
        ["secret_rotated", webhookId],
        ["webhook_created", webhookId],
      ])
    })

    test("creates and deletes a webhook once", async ({ call, tenure }) => {
      const body = { url: "https://example.com/hook" }
      const create = { body, headers: keyed("k-1") }
      const first = await call("POST", webhooks, create)
      const second = await call("POST", webhooks, create)
      expect(lasting(second.body)).toEqual(lasting(first.body))
      expect(second.headers["idempotent-replayed"]).toBe("true")
      const [webhook, ...others] = await tenure.webhooks.list({ projectId: "p1" })
      expect(others).toEqual([])
      const path = `${webhooks}/${webhook?.id}`
      for (const replayed of [undefined, "true"]) {
        const deleted = await call("DELETE", path, { headers: keyed("k-2") })
        expect([deleted.status, deleted.headers["idempotent-replayed"]]).toEqual([200, replayed])
      }
      expectFailure(await call("DELETE", path, { headers: keyed("k-3") }), 404, "WEBHOOK_NOT_FOUND")
      expectFailure(await call("POST", webhooks, create), 404, "WEBHOOK_NOT_FOUND")
    })

    test("changes something once if the requests come at the same time", async ({
      call,
      tenure,
    }) => {
      const options = { body: { extend: validDate }, headers: keyed("k-1") }
      const calls = Array.from({ length: 6 }, () => call("PATCH", one, options))
      const responses = await Promise.all(calls)
      expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
      const replays = responses.filter(({ headers }) => headers["idempotent-replayed"])
      expect(replays).toHaveLength(5)
      const history = await tenure.memberships.history({ projectId: "p1", userId: "1001" })
      expect(history.filter(({ action }) => action === "extended")).toHaveLength(1)
    })

    test("is refused for another request", async ({ call }) => {
      const headers = keyed("k-1")
      await call("PATCH", one, { body: { extend: validDate }, headers })
      const later = await call("PATCH", one, { body: { extend: 4_000_000_000_000 }, headers })
      expectFailure(later, 422, "IDEMPOTENCY_MISMATCH")
      const other = await call("PATCH", all, { body: { extend: validDate }, headers })
      expectFailure(other, 422, "IDEMPOTENCY_MISMATCH")
    })

    test("is the client's own", async ({ call, otherToken }) => {
      const headers = keyed("k-1")
      await call("PATCH", all, { body: { extend: validDate }, headers })
      const path = "/v2/projects/p2/memberships/extend"
      const other = await call("PATCH", path, {
        body: { extend: validDate },
        headers,
        token: otherToken,
      })
      expect(other.body).toMatchObject({ total: 0 })
    })

    test("is not used up by a request that fails", async ({ call, tenure }) => {
      const path = "/v2/projects/p1/memberships/9/extend"
      const options = { body: { extend: validDate }, headers: keyed("k-1") }
      expectFailure(await call("PATCH", path, options), 404, "MEMBERSHIP_NOT_FOUND")
      await tenure.memberships.grant({ projectId: "p1", userId: "9", endDate: validDate })
      const made = await call("PATCH", path, options)
      expect([made.status, made.headers["idempotent-replayed"]]).toEqual([200, undefined])
    })

    test("must be 1 to 255 visible characters, once", async ({ call }) => {
      for (const key of ["", "a b", "x".repeat(256), ["a", "b"], "\u00e9"]) {
        const response = await call("PATCH", one, {
          body: { extend: validDate },
          headers: keyed(key),
        })
        expectFailure(response, 400, "MALFORMED_REQUEST")
      }
      const longest = keyed("~".repeat(255))
      const response = await call("PATCH", one, { body: { extend: validDate }, headers: longest })
      expect(response.status).toBe(200)
    })

    test("is the same with and without quotation marks", async ({ call }) => {
      const extend = (key: string) =>
        call("PATCH", one, { body: { extend: validDate }, headers: keyed(key) })
      expect((await extend('k-"1\\')).status).toBe(200)
      const second = await extend('"k-\\"1\\\\"')
      expect(second.headers["idempotent-replayed"]).toBe("true")
      for (const key of ['"', '""', '"k', '"k"1', '"k";a=1', '"a b"', '"\\k"']) {
        expectFailure(await extend(key), 400, "MALFORMED_REQUEST")
      }
    })

    test.with({}, { isBehindParser: true })(
      "counts behind a parser of the host too",
      async ({ call }) => {
        const headers = keyed("k-1")
        await call("PATCH", one, { body: { extend: validDate }, headers })
        const second = await call("PATCH", one, { body: { extend: validDate }, headers })
        expect(second.headers["idempotent-replayed"]).toBe("true")
        const other = { body: { extend: 4_000_000_000_000 }, headers }
        expectFailure(await call("PATCH", one, other), 422, "IDEMPOTENCY_MISMATCH")
      },
    )
  })
}
