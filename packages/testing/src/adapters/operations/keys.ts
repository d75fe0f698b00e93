/** API keys, the identity of a sender, and tickets for browsers. */

import { describe, expect } from "vitest"
import {
  type Incoming,
  dataOf,
  expectFailure,
  expectInvalid,
  expectSuccess,
  fieldsOf,
  instant,
  itemsOf,
  send,
  uuid,
} from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  events,
  extend,
  extendAll,
  members,
  unknownId,
  webhooks,
} from "../harness.ts"

const keys = "/v2/api-keys"
const otherEvents = "/v2/projects/p2/events"

/** Returns functions to send requests with a new admin's key. */
const asAdmin = async (
  { call, tenure }: Fixture,
  projects: "all" | ReadonlyArray<string> = "all",
) => {
  const { id, token } = await tenure.apiKeys.issue({ projects, role: "admin" })
  return {
    id,
    list: (query = "") => call("GET", `${keys}${query}`, { token }),
    issue: (body: unknown) => call("POST", keys, { token, body }),
    revoke: (keyId: string) => call("DELETE", `${keys}/${keyId}`, { token }),
  }
}

/** Returns the key's id and token in a response. */
const issuedIn = (response: Incoming) => {
  expectSuccess(response, {
    data: { id: expect.stringMatching(uuid), token: expect.stringMatching(/^tnr_[\w-]{43}$/) },
  })
  const { id, token } = dataOf(response)
  return { id: String(id), token: String(token) }
}

const idsIn = (response: Incoming): ReadonlyArray<unknown> => itemsOf(response).map(({ id }) => id)

const valid = { projects: ["p1"], role: "client" }

/** Refused bodies, and the first field in the message. */
const refusedKeys: ReadonlyArray<readonly [field: string, body: object]> = [
  ["projects", { role: "client" }],
  ["projects", { ...valid, projects: [] }],
  ["projects[1]", { ...valid, projects: ["p1", ""] }],
  ["role", { projects: ["p1"] }],
  ["role", { ...valid, role: "root" }],
  ["name", { ...valid, name: "" }],
  ["expires_at", { ...valid, expires_at: "2001-01-01T00:00:00.000Z" }],
  ["expires_at", { ...valid, expires_at: "2099-01-01" }],
  ["expires_at", { ...valid, expires_at: null }],
  ["expiresAt", { ...valid, expiresAt: extend }],
  ["token", { ...valid, token: "a token" }],
]

const apiKeyTests = (test: ServerTest): void => {
  test("are issued with a token that works at once until they are revoked, and listed without it", async (fixture) => {
    const { issue, list, revoke } = await asAdmin(fixture, ["p1"])
    const before = idsIn(await list())
    const given = { ...valid, role: "operator", name: "nightly import", expires_at: extend }
    const { id, token } = issuedIn(await issue(given))
    const listed = { id, ...given, created_at: instant, revoked_at: null, last_used_at: null }
    expect(itemsOf(await list())).toContainEqual(listed)
    const statusOf = async () => (await fixture.call("GET", webhooks, { token })).status
    expect(await statusOf()).toBe(200)
    expectSuccess(await revoke(id), { data: null })
    expect(await statusOf()).toBe(401)
    expect((await revoke(id)).status).toBe(200)
    const response = await list()
    expect(idsIn(response)).toEqual([...before, id])
    const revoked = expect.objectContaining({ id, name: given.name, revoked_at: instant })
    expect(itemsOf(response)).toContainEqual(revoked)
    expect(response.text).not.toContain(token)
  })

  test("are listed with their projects in the order of the ids, as for the holder", async (fixture) => {
    const { issue, list } = await asAdmin(fixture)
    const { id, token } = issuedIn(await issue({ ...valid, projects: ["p2", "p1", "p2"] }))
    const projects = ["p1", "p2"]
    expect(itemsOf(await list())).toContainEqual(expect.objectContaining({ id, projects }))
    const data = { key_id: id, role: "client", projects, read_only: false }
    expectSuccess(await fixture.call("GET", "/v2/identity", { token }), { data })
    for (const path of [events, otherEvents]) {
      expect((await fixture.call("GET", path, { token })).status).toBe(200)
    }
  })

  test("are listed in pages", async (fixture) => {
    const { list } = await asAdmin(fixture)
    const all = idsIn(await list())
    const found: Array<unknown> = []
    for (let next: unknown = ""; next !== null;) {
      const page = await list(`?limit=2${next === "" ? "" : `&after=${String(next)}`}`)
      expect(fieldsOf(page.body)["total"]).toBe(idsIn(page).length)
      found.push(...idsIn(page))
      next = fieldsOf(page.body)["next"]
    }
    expect(found.length).toBeGreaterThan(2)
    expect(found).toEqual(all)
    for (const query of ["?limit=0", "?limit=2&limit=3", "?after=", "?after=x"]) {
      expectInvalid(await list(query))
    }
  })

  test("are not issued from an invalid body, and the error names the field", async (fixture) => {
    const { issue, list } = await asAdmin(fixture)
    const before = idsIn(await list())
    for (const [field, body] of refusedKeys) {
      const name = field.replaceAll(/[[\]]/g, "\\$&")
      expectInvalid(await issue(body), new RegExp(`^${name} `))
    }
    expectInvalid(
      await issue({ ...valid, expires_at: "2099-01-01" }),
      "expires_at must be a time, as YYYY-MM-DDTHH:mm:ss.sssZ or whole milliseconds",
    )
    expectFailure(await issue({ ...valid, projects: ["p1", "p9"] }), 404, "PROJECT_NOT_FOUND")
    expect(idsIn(await list())).toEqual(before)
  })

  test("that do not exist are not revoked", async ({ administer }) => {
    for (const id of ["unknown", unknownId, "%00"]) {
      expectFailure(await administer("DELETE", `${keys}/${id}`), 404, "API_KEY_NOT_FOUND")
    }
    expectFailure(await administer("DELETE", `${keys}/%`), 400, "MALFORMED_REQUEST")
  })

  test("are managed by an admin of certain projects only within these", async (fixture) => {
    const { apiKeys } = fixture.tenure
    const admin = await asAdmin(fixture, ["p1"])
    for (const projects of [["p2"], ["p1", "p2"], "all"] as const) {
      const { id, token } = await apiKeys.issue({ projects })
      expect(idsIn(await admin.list())).not.toContain(id)
      expectFailure(await admin.revoke(id), 404, "API_KEY_NOT_FOUND")
      expect(await apiKeys.authenticate(token)).toBeDefined()
      const [status, code] = projects === "all" ? [403, "FORBIDDEN"] : [404, "PROJECT_NOT_FOUND"]
      expectFailure(await admin.issue({ ...valid, projects }), status, code)
    }
    const { id } = issuedIn(await admin.issue({ ...valid, role: "admin" }))
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
}

const tickets = "/v2/realtime/tickets"

/** Issues a ticket for the feed in `p1`. */
const issueTicket = async ({ call }: Fixture, token?: string): Promise<string> => {
  const response = await call("POST", tickets, { token, body: { projects: ["p1"] } })
  expectSuccess(response, {
    data: { ticket: expect.stringMatching(/^tkt_[\w-]{43}$/), expires_at: instant },
  })
  return String(dataOf(response)["ticket"])
}

/** Sends a request with a ticket instead of a key. */
const by = ({ url }: Fixture, ticket: string, path = events, method = "GET") =>
  send(url, { method, path: `${path}?ticket=${ticket}` })

const ticketTests = (test: ServerTest): void => {
  const opensOnce = async (fixture: Fixture) => {
    const ticket = await issueTicket(fixture)
    expect((await by(fixture, ticket)).status).toBe(200)
    expectFailure(await by(fixture, ticket), 401, "UNAUTHORIZED")
  }

  test("opens the feed of its project once", opensOnce)

  test.with({
    authenticate: ({ headers }) =>
      headers["authorization"] === undefined
        ? undefined
        : { keyId: "user-7", projects: ["p1"], role: "operator" },
  })("is issued by the authentication of the host, too", opensOnce)

  test("opens nothing else", async (fixture) => {
    const foreign = await by(fixture, await issueTicket(fixture), otherEvents)
    expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
    for (const [method, path] of [
      ["GET", members],
      ["PATCH", extendAll],
      ["POST", events],
      ["POST", tickets],
    ] as const) {
      const response = await by(fixture, await issueTicket(fixture), path, method)
      expectFailure(response, 401, "UNAUTHORIZED")
    }
  })

  test("is not known if it was made up, or its key was revoked", async (fixture) => {
    const { apiKeys } = fixture.tenure
    const { id, token } = await apiKeys.issue({ projects: ["p1"] })
    const ended = await issueTicket(fixture, token)
    await apiKeys.revoke(id)
    for (const ticket of ["", "x", fixture.token, `tkt_${"A".repeat(43)}`, ended]) {
      expectFailure(await by(fixture, ticket), 401, "UNAUTHORIZED")
    }
  })

  test("opens projects that its key opens: a list of them, or all", async (fixture) => {
    const { call, tenure } = fixture
    for (const [projects, statuses] of [
      ["all", [200, 200]],
      [["p2"], [404, 200]],
    ] as const) {
      const { token } = await tenure.apiKeys.issue({ projects })
      for (const [index, path] of [events, otherEvents].entries()) {
        const issued = await call("POST", tickets, { token, body: { projects: "all" } })
        const { status } = await by(fixture, String(dataOf(issued)["ticket"]), path)
        expect(status).toBe(statuses[index])
      }
    }
    const foreign = await call("POST", tickets, { body: { projects: ["p1", "p2"] } })
    expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
    for (const body of [{}, { projects: [] }, { projects: [7] }, { projects: "p1" }]) {
      expectInvalid(await call("POST", tickets, { body }))
    }
    expectInvalid(await call("POST", tickets, { body: { projects: ["p1"], project: "p1" } }))
  })
}

export const keyTests = (test: ServerTest): void => {
  describe("API keys", () => {
    apiKeyTests(test)
  })
  describe("a ticket", () => {
    ticketTests(test)
  })
}
