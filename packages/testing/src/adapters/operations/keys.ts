/** Issuing, listing and revoking API keys. */

import { describe, expect } from "vitest"
import {
  type Incoming,
  expectFailure,
  expectSuccess,
  fieldsOf,
  instant,
  send,
  uuid,
  dataOf,
} from "../../support/http.ts"
import { type Fixture, type ServerTest, webhooks } from "../harness.ts"

const keys = "/v2/api-keys"
const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

/** Returns functions to send requests with an admin's key. */
const asAdmin = async (
  { call, tenure }: Fixture,
  projects: "all" | ReadonlyArray<string> = "all",
) => {
  const { id, token } = await tenure.apiKeys.issue({ projects, role: "admin" })
  const callWith = (method: string, path: string, body?: unknown) =>
    call(method, path, { token, ...(body !== undefined && { body }) })
  return {
    id,
    list: (query = "") => callWith("GET", `${keys}${query}`),
    issue: (body: unknown) => callWith("POST", keys, body),
    revoke: (keyId: string) => callWith("DELETE", `${keys}/${keyId}`),
  }
}

/** Returns the key's id and token in a response. */
const issuedIn = (response: Incoming) => {
  const { data } = expectSuccess(response, {
    data: { id: expect.stringMatching(uuid), token: expect.stringMatching(/^tnr_[\w-]{43}$/) },
  })
  const { id, token } = fieldsOf(data)
  return { id: String(id), token: String(token) }
}

const idsIn = ({ body }: Incoming): ReadonlyArray<unknown> => {
  const { data } = fieldsOf(body)
  return Array.isArray(data) ? data.map((key) => fieldsOf(key)["id"]) : []
}

/** Declares the tests. */
export const apiKeyTests = (test: ServerTest): void => {
  describe("API keys", () => {
    test("are issued with a token that works at once, until they are revoked", async (fixture) => {
      const { issue, revoke } = await asAdmin(fixture)
      const { id, token } = issuedIn(await issue({ projects: ["p1"], role: "client" }))
      const statusOf = async () => (await fixture.call("GET", webhooks, { token })).status
      expect(await statusOf()).toBe(200)
      expectSuccess(await revoke(id), { data: null })
      expect(await statusOf()).toBe(401)
      expect((await revoke(id)).status).toBe(200)
    })

    test("are listed as they were issued, without their tokens", async (fixture) => {
      const { issue, list, revoke } = await asAdmin(fixture, ["p1"])
      const before = idsIn(await list())
      const named = { projects: ["p1"], role: "operator", name: "nightly import" }
      const { id, token } = issuedIn(
        await issue({ ...named, expires_at: "2099-01-01T00:00:00.000Z" }),
      )
      await revoke(id)
      const response = await list()
      expect(idsIn(response)).toEqual([...before, id])
      expect(fieldsOf(response.body)["data"]).toContainEqual({
        id,
        ...named,
        created_at: expect.stringMatching(time),
        expires_at: "2099-01-01T00:00:00.000Z",
        revoked_at: expect.stringMatching(time),
        last_used_at: null,
      })
      expect(response.text).not.toContain(token)
    })

    test("are listed with their projects in the order of the ids, as for the holder", async (fixture) => {
      const { issue, list } = await asAdmin(fixture)
      const issued = issuedIn(await issue({ projects: ["p2", "p1", "p2"], role: "client" }))
      const { data } = fieldsOf((await list()).body)
      const sorted = expect.objectContaining({ id: issued.id, projects: ["p1", "p2"] })
      expect(data).toContainEqual(sorted)
      const { body } = await fixture.call("GET", "/v2/identity", { token: issued.token })
      expect(fieldsOf(fieldsOf(body)["data"])["projects"]).toEqual(["p1", "p2"])
    })

    test("are listed in pages", async (fixture) => {
      const { issue, list } = await asAdmin(fixture)
      for (let count = 0; count < 3; count++) await issue({ projects: ["p1"], role: "client" })
      const all = idsIn(await list())
      const found: Array<unknown> = []
      let next: unknown = ""
      while (next !== null) {
        const page = await list(next === "" ? "?limit=2" : `?limit=2&after=${String(next)}`)
        expect(fieldsOf(page.body)).toMatchObject({ total: idsIn(page).length })
        found.push(...idsIn(page))
        next = fieldsOf(page.body)["next"]
      }
      expect(found).toEqual(all)
      for (const query of ["?limit=0", "?limit=2&limit=3", "?page=2", "?after=", "?after=x"]) {
        expectFailure(await list(query), 422, "VALIDATION_ERROR")
      }
    })

    test("are not issued from an invalid body, and the error names the field", async (fixture) => {
      const { issue, list } = await asAdmin(fixture)
      const before = idsIn(await list())
      const valid = { projects: ["p1"], role: "client" }
      const invalid: ReadonlyArray<readonly [field: string, body: object]> = [
        ["projects", { role: "client" }],
        ["projects", { ...valid, projects: [] }],
        ["projects", { ...valid, projects: "p1" }],
        ["projects[1]", { ...valid, projects: ["p1", ""] }],
        ["role", { projects: ["p1"] }],
        ["role", { ...valid, role: "root" }],
        ["name", { ...valid, name: "" }],
        ["name", { ...valid, name: 7 }],
        ["expires_at", { ...valid, expires_at: "2001-01-01T00:00:00.000Z" }],
        ["expires_at", { ...valid, expires_at: "2099-01-01" }],
        ["expires_at", { ...valid, expires_at: null }],
        ["expiresAt", { ...valid, expiresAt: "2099-01-01T00:00:00.000Z" }],
        ["token", { ...valid, token: "a token" }],
      ]
      for (const [field, body] of invalid) {
        const response = await issue(body)
        expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(fieldsOf(response.body)["error"])["message"]).toMatch(
          new RegExp(`^${field.replaceAll(/[[\]]/g, "\\$&")} `),
        )
      }
      const unclear = await issue({ ...valid, expires_at: "2099-01-01" })
      expect(fieldsOf(fieldsOf(unclear.body)["error"])["message"]).toContain(
        "expires_at must be a time, as YYYY-MM-DDTHH:mm:ss.sssZ or whole milliseconds",
      )
      expectFailure(await issue({ ...valid, projects: ["p1", "p9"] }), 404, "PROJECT_NOT_FOUND")
      expect(idsIn(await list())).toEqual(before)
    })

    test("that do not exist are not revoked", async (fixture) => {
      const { revoke } = await asAdmin(fixture)
      for (const id of ["unknown", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "%00"]) {
        expectFailure(await revoke(id), 404, "API_KEY_NOT_FOUND")
      }
      expectFailure(await revoke("%"), 400, "MALFORMED_REQUEST")
    })

    test("are managed by an admin of certain projects only within these", async (fixture) => {
      const { apiKeys } = fixture.tenure
      const wider = await Promise.all([
        apiKeys.issue({ projects: ["p2"] }),
        apiKeys.issue({ projects: ["p1", "p2"] }),
        apiKeys.issue({ projects: "all" }),
      ])
      const admin = await asAdmin(fixture, ["p1"])
      for (const { id, token } of wider) {
        expect(idsIn(await admin.list())).not.toContain(id)
        expectFailure(await admin.revoke(id), 404, "API_KEY_NOT_FOUND")
        expect(await fixture.tenure.apiKeys.authenticate(token)).toBeDefined()
      }
      const role = "client"
      for (const projects of [["p2"], ["p1", "p2"], ["p9"]]) {
        expectFailure(await admin.issue({ projects, role }), 404, "PROJECT_NOT_FOUND")
      }
      expectFailure(await admin.issue({ projects: "all", role }), 403, "FORBIDDEN")
      const { id } = issuedIn(await admin.issue({ projects: ["p1"], role: "admin" }))
      expect(idsIn(await admin.list())).toContain(id)
      expect((await admin.revoke(id)).status).toBe(200)
    })

    test("are all managed by an admin of all projects", async (fixture) => {
      const admin = await asAdmin(fixture)
      const { id } = issuedIn(await admin.issue({ projects: "all", role: "admin" }))
      expect(idsIn(await admin.list())).toContain(id)
      expect((await admin.revoke(id)).status).toBe(200)
      expect((await admin.revoke(admin.id)).status).toBe(200)
      expect((await admin.list()).status).toBe(401)
    })
  })
}

/** Tickets for browsers to follow the feed. */

const tickets = "/v2/realtime/tickets"
const feedOf = (project: string) => `/v2/projects/${project}/events`

/** Issues a ticket for the feed in `p1`. */
const ticketsIssue = async ({ call }: Fixture, token?: string): Promise<string> => {
  const response = await call("POST", tickets, { token, body: { projects: ["p1"] } })
  const { data } = expectSuccess(response, {
    data: { ticket: expect.stringMatching(/^tkt_[\w-]{43}$/), expires_at: instant },
  })
  return String(fieldsOf(data)["ticket"])
}

/** Sends a request with a ticket instead of a key. */
const by = ({ url }: Fixture, ticket: string, path: string, method = "GET") =>
  send(url, { method, path: `${path}?ticket=${ticket}` })

/** Declares the tests. */
export const ticketTests = (test: ServerTest): void => {
  describe("a ticket", () => {
    test("opens the feed of its project once", async (fixture) => {
      const ticket = await ticketsIssue(fixture)
      expect((await by(fixture, ticket, feedOf("p1"))).status).toBe(200)
      expectFailure(await by(fixture, ticket, feedOf("p1")), 401, "UNAUTHORIZED")
    })

    test("opens nothing else", async (fixture) => {
      const foreign = await by(fixture, await ticketsIssue(fixture), feedOf("p2"))
      expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
      for (const [method, path] of [
        ["GET", "/v2/projects/p1/memberships"],
        ["PATCH", "/v2/projects/p1/memberships/extend"],
        ["POST", feedOf("p1")],
        ["POST", tickets],
      ] as const) {
        const response = await by(fixture, await ticketsIssue(fixture), path, method)
        expectFailure(response, 401, "UNAUTHORIZED")
      }
    })

    test("is not known if it was made up", async (fixture) => {
      for (const ticket of ["", "x", fixture.token, `tkt_${"A".repeat(43)}`]) {
        expectFailure(await by(fixture, ticket, feedOf("p1")), 401, "UNAUTHORIZED")
      }
    })

    test("ends with its key", async (fixture) => {
      const { apiKeys } = fixture.tenure
      const { id, token } = await apiKeys.issue({ projects: ["p1"] })
      const ticket = await ticketsIssue(fixture, token)
      await apiKeys.revoke(id)
      expectFailure(await by(fixture, ticket, feedOf("p1")), 401, "UNAUTHORIZED")
    })

    test.with({
      authenticate: ({ headers }) =>
        headers["authorization"] === undefined
          ? undefined
          : { keyId: "user-7", projects: ["p1"], role: "operator" },
    })("is issued by the authentication of the host, too", async (fixture) => {
      const ticket = await ticketsIssue(fixture)
      expect((await by(fixture, ticket, feedOf("p1"))).status).toBe(200)
      expectFailure(await by(fixture, ticket, feedOf("p1")), 401, "UNAUTHORIZED")
    })

    test("needs projects that the key opens", async ({ call }) => {
      const foreign = await call("POST", tickets, { body: { projects: ["p1", "p2"] } })
      expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
    })

    test("may open all projects that its key opens", async (fixture) => {
      for (const [projects, statuses] of [
        ["all", [200, 200]],
        [["p2"], [404, 200]],
      ] as const) {
        const { token } = await fixture.tenure.apiKeys.issue({ projects })
        const found: Array<number> = []
        for (const project of ["p1", "p2"]) {
          const issued = await fixture.call("POST", tickets, { token, body: { projects: "all" } })
          const ticket = String(dataOf(issued)["ticket"])
          found.push((await by(fixture, ticket, feedOf(project))).status)
        }
        expect(found).toEqual(statuses)
      }
    })

    test("is not issued for other projects than a list of ids", async ({ call }) => {
      for (const body of [
        {},
        { projects: [] },
        { projects: [7] },
        { projects: "p1" },
        { project: "p1" },
      ]) {
        expectFailure(await call("POST", tickets, { body }), 422, "VALIDATION_ERROR")
      }
    })
  })
}
