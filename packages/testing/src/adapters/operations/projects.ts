/** Projects and their audit trails, API keys, a sender's identity, tickets for browsers, and the status. */

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
  asLines,
  events,
  extend,
  extendAll,
  imports,
  keyed,
  members,
  project,
  unknownId,
  webhooks,
} from "../harness.ts"

const p1 = { id: "p1", memberships: 3, webhooks: 0 }

/** A new project without its id. */
const empty = {
  memberships: 0,
  webhooks: 0,
  last_bulk_end_date: null,
  time_zone: "UTC",
  grace: null,
}

/** An audit row without its content. */
const bareRow = {
  at: instant,
  from: null,
  to: null,
  extend_by: null,
  key_id: null,
  key_name: null,
  request_id: null,
  reason: null,
  user_id: null,
  subject: null,
  changes: [],
}

const ownTests = (test: ServerTest): void => {
  test("are listed to those who may use them, page by page, with their last bulk extension", async (fixture) => {
    const { administer, call } = fixture
    expectSuccess(await call("GET", "/v2/projects"), { total: 1, next: null, data: [p1] })
    await call("PATCH", extendAll, { body: { extend } })
    const data = { ...p1, last_bulk_end_date: extend, time_zone: "UTC", grace: null }
    expectSuccess(await call("GET", project), { data })
    const first = await administer("GET", "/v2/projects?limit=1")
    expectSuccess(first, { total: 1, next: "p1", data: [p1] })
    const second = await administer("GET", "/v2/projects?limit=1&after=p1")
    expect(second.body).toMatchObject({ total: 1, next: null, data: [{ id: "p2" }] })
  })

  test("are created once, by admins", async ({ administer, tenure }) => {
    const data = { ...empty, id: "new" }
    for (const _ of ["created", "exists"]) {
      expectSuccess(await administer("PUT", "/v2/projects/new"), { data })
    }
    expectFailure(await administer("PUT", "/v2/projects/a%00b"), 404, "PROJECT_NOT_FOUND")
    const trail = await tenure.memberships.history({ projectId: null })
    expect(trail.filter(({ subject }) => subject === "new")).toHaveLength(1)
  })

  test("are deleted once, by admins, with all that belongs to them", async (fixture) => {
    const { administer, call, tenure } = fixture
    expect((await call("GET", project)).status).toBe(200)
    expectSuccess(await administer("DELETE", project), { data: null })
    for (const [method, path] of [
      ["DELETE", project],
      ["GET", project],
      ["GET", members],
      ["GET", `${members}/1001`],
      ["GET", webhooks],
    ] as const) {
      expectFailure(await administer(method, path), 404, "PROJECT_NOT_FOUND")
    }
    const [row] = await tenure.memberships.history({ projectId: null, limit: 1 })
    expect(row).toMatchObject({ action: "project_deleted", subject: "p1" })
    await administer("PUT", project)
    expectSuccess(await administer("GET", project), {
      data: { ...empty, id: "p1" },
    })
    // The deleted one's keys do not open the new one, although they were cached.
    expectFailure(await call("GET", project), 404, "PROJECT_NOT_FOUND")
  })

  test("have a time zone that operators change, which moves no date and is in the audit trail", async (fixture) => {
    const { call, operate, tenure } = fixture
    const before = itemsOf(await call("GET", members))
    const timeZone = "Europe/Berlin"
    const reason = "The shop has moved"
    const data = { ...p1, last_bulk_end_date: null, time_zone: timeZone, grace: null }
    const change = { time_zone: timeZone, reason }
    const tried = await operate("PATCH", project, { ...change, dry_run: true })
    const announcements = { expiring: 0, overdue: 0, expired: 0, next_24_hours: 0 }
    const foreseen = { ...data, would_reactivate: 0, would_expire: 0, announcements }
    expect(expectSuccess(tried, { data: foreseen })["message"]).toContain("nothing was changed")
    expectSuccess(await call("GET", project), { data: { ...data, time_zone: "UTC" } })
    const changed = await operate("PATCH", project, change)
    expectSuccess(changed, { data })
    // Nothing differs any more.
    expectSuccess(await operate("PATCH", project, { time_zone: "europe/BERLIN" }), { data })
    expectSuccess(await call("GET", project), { data })
    expectSuccess(await fixture.administer("PUT", project), { data })
    expect(itemsOf(await call("GET", members))).toEqual(before)
    expect(itemsOf(await call("GET", events))).toEqual([])
    const rows = itemsOf(await operate("GET", `${project}/audit`))
    expect(rows.filter(({ action }) => action === "project_changed")).toEqual([
      {
        ...bareRow,
        action: "project_changed",
        key_id: expect.any(String),
        key_name: "billing",
        request_id: fieldsOf(changed.body)["request_id"],
        reason,
        subject: "p1",
        changes: [{ field: "time_zone", from: "UTC", to: timeZone }],
      },
    ])
    expect(await tenure.memberships.findProject("p1")).toMatchObject({ timeZone })
  })

  test("have a grace that operators change, during which memberships that have ended are active", async (fixture) => {
    const { call, operate, tenure } = fixture
    const endDate = new Date(Date.now() - 3 * 86_400_000).toISOString()
    await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate })
    const member = `${members}/1001`
    const stateOf = async () => {
      const { grace_until, state } = dataOf(await call("GET", member))
      return { state, grace_until }
    }
    const over = { state: "expired", grace_until: null }
    const graceUntil = new Date(Date.parse(endDate) + 7 * 86_400_000).toISOString()
    const inGrace = { state: "active", grace_until: graceUntil }
    expect(await stateOf()).toEqual(over)
    const foreseen = { would_reactivate: 1, would_expire: 0, grace: "P7D" }
    expect(dataOf(await operate("PATCH", project, { grace: "P1W", dry_run: true }))).toMatchObject(
      foreseen,
    )
    expect(await stateOf()).toEqual(over)
    expect(dataOf(await operate("PATCH", project, { grace: "P1W" }))).toMatchObject({
      grace: "P7D",
    })
    expect(dataOf(await call("GET", project))).toMatchObject({ grace: "P7D", time_zone: "UTC" })
    expect(await stateOf()).toEqual(inGrace)
    const active = itemsOf(await call("GET", `${members}?state=active`))
    expect(active.map(({ user_id }) => user_id)).toContain("1001")
    const ending = itemsOf(await call("GET", `${members}?ending_before=2090-01-01T00:00:00.000Z`))
    expect(ending[0]).toMatchObject({ user_id: "1001", end_date: endDate, ...inGrace })
    expect(dataOf(await call("GET", `${project}/ends`))).toMatchObject({
      overdue: 1,
    })
    expect(await tenure.memberships.isActive({ projectId: "p1", userId: "1001" })).toBe(true)
    // Used days are paid, even if the result is still over.
    const headers = keyed("renewal")
    const renewed = await operate("PATCH", `${member}/extend`, { extend_by: "P1D" }, headers)
    const later = new Date(Date.parse(endDate) + 86_400_000).toISOString()
    expect(dataOf(renewed)).toMatchObject({ new_end_date: later })
    // A date has to be in the future nevertheless.
    const past = await operate("PATCH", `${member}/extend`, { extend: later })
    expect(past.status).toBe(422)
    const announcements = { expiring: 0, overdue: 0, expired: 1, next_24_hours: 1 }
    const shorter = { would_reactivate: 0, would_expire: 1, announcements, grace: null }
    expect(dataOf(await operate("PATCH", project, { grace: null, dry_run: true }))).toMatchObject(
      shorter,
    )
    await operate("PATCH", project, { grace: null })
    expect(await stateOf()).toEqual(over)
    const rows = itemsOf(await operate("GET", `${project}/audit`))
    const changes = rows.flatMap(({ action, changes: made }) =>
      action === "project_changed" ? [made] : [],
    )
    expect(changes).toEqual([
      [{ field: "grace", from: "P7D", to: null }],
      [{ field: "grace", from: null, to: "P7D" }],
    ])
  })

  test("refuse a grace that is no duration, has months, or is longer than 90 days", async ({
    operate,
    tenure,
  }) => {
    for (const grace of ["P1M", "P91D", "P90DT1S", "P0D", "-P1D", "7 days", "", 7, true, ["P1D"]]) {
      expectInvalid(await operate("PATCH", project, { grace }), /^grace must be /)
    }
    expect(await tenure.memberships.findProject("p1")).toMatchObject({ grace: 0 })
  })

  test("refuse offsets, unknown time zones, and a change of nothing", async ({
    operate,
    tenure,
  }) => {
    for (const timeZone of [
      "+01:00",
      "GMT+1",
      "Europe/Nowhere",
      "",
      " UTC",
      "BST",
      `Europe/${"x".repeat(1000)}`,
      null,
      1,
      ["UTC"],
    ]) {
      expectInvalid(await operate("PATCH", project, { time_zone: timeZone }), /^time_zone must be /)
    }
    const nothing = /^time_zone or another setting is needed/
    for (const body of [{}, { reason: "No setting" }, { dry_run: true }]) {
      expectInvalid(await operate("PATCH", project, body), nothing)
    }
    const other = { time_zone: "Europe/Berlin", timeZone: "Europe/Berlin" }
    expectInvalid(await operate("PATCH", project, other), /^timeZone /)
    expect((await tenure.memberships.findProject("p1")).timeZone).toBe("UTC")
  })

  test("that do not exist count before what is wrong with the body, and after the path", async (fixture) => {
    const { administer } = fixture
    for (const [body, headers] of [
      ["{}", { "content-type": "text/plain" }],
      ["{", asLines],
      ["", keyed("")],
      ["x".repeat(2_097_153), asLines],
    ] as const) {
      const response = await administer("POST", imports.replace("p1", "p9"), body, headers)
      expectFailure(response, 404, "PROJECT_NOT_FOUND")
    }
    const unreadable = "/v2/projects/p9/memberships/%zz/extend"
    expectFailure(await administer("PATCH", unreadable), 400, "MALFORMED_REQUEST")
  })
}

/** Parameters that select changes, and the first field in the message. */
const refusedSearches: ReadonlyArray<readonly [field: string, query: string]> = [
  ["key_id", "key_id="],
  ["key_id", `key_id=${"x".repeat(256)}`],
  ["action", "action=renewed"],
  ["action", "action="],
  ["request_id", "request_id="],
  ["since", "since=yesterday"],
  ["since", "since=2026-01-31"],
  ["since", "since=1767225600"],
  ["until", "until="],
  ["until", `since=${extend}&until=${extend}`],
  ["until", "since=4070908800000&until=1767225600000"],
  ["announcements", "announcements=no"],
  ["action", "action=granted&action=ended"],
  ["keyId", "keyId=key-1"],
]

const searchTests = (test: ServerTest): void => {
  test("is searched by key, action, user, request, time and without announcements, all together", async (fixture) => {
    const { administer, operate, tenure } = fixture
    const audit = `${project}/audit`
    const origin = { keyId: "a key", requestId: "invoice 7" }
    await tenure.memberships.extend({ projectId: "p1", userId: "1001", endDate: extend }, origin)
    await operate("PATCH", `${members}/1002/extend`, { extend })
    await operate("PATCH", extendAll, { extend })
    const { key_id } = dataOf(await operate("GET", "/v2/identity"))
    const found = async (query: string) => {
      const response = await administer("GET", `${audit}?${query}`)
      expect(fieldsOf(response.body)["next"]).toBeNull()
      return itemsOf(response).map(({ action, user_id }) => [action, user_id])
    }
    const [mine, theirs, bulk] = [
      ["extended", "1001"],
      ["extended", "1002"],
      ["bulk_extended", null],
    ]
    const granted = ["1003", "1002", "1001"].map((user) => ["granted", user])
    const all = [bulk, theirs, mine, ...granted]
    expect(await found("announcements=false")).toEqual(all)
    expect(await found(`key_id=${String(key_id)}`)).toEqual([bulk, theirs])
    expect(await found("key_id=a%20key&action=extended")).toEqual([mine])
    expect(await found("request_id=invoice%207")).toEqual([mine])
    expect(await found("user_id=1001")).toEqual([bulk, mine, ["granted", "1001"]])
    expect(await found(`user_id=1001&key_id=${String(key_id)}`)).toEqual([bulk])
    expect(await found("user_id=1001&action=ended")).toEqual([])
    const [row] = await tenure.memberships.history({ projectId: "p1", userId: "1001", limit: 1 })
    const at = row?.at ?? NaN
    for (const until of [at, new Date(at).toISOString()]) {
      expect(await found(`since=1000000000000&until=${until}`)).not.toContainEqual(bulk)
    }
    for (const since of [at, new Date(at).toISOString()]) {
      expect((await found(`since=${since}`))[0]).toEqual(bulk)
    }
    expect(await found("since=9999999999999")).toEqual([])
    const first = fieldsOf((await operate("GET", `${audit}?action=granted&limit=2`)).body)
    expect(first).toMatchObject({ total: 2, data: [{ user_id: "1003" }, { user_id: "1002" }] })
    const rest = await operate("GET", `${audit}?action=granted&after=${String(first["next"])}`)
    expect(rest.body).toMatchObject({ total: 1, next: null, data: [{ user_id: "1001" }] })
  })

  test("is searched in the history of a member and outside projects, too", async (fixture) => {
    const { administer, operate } = fixture
    await operate("PATCH", `${members}/1001/extend`, { extend })
    const history = `${members}/1001/history`
    expect(itemsOf(await operate("GET", `${history}?action=extended`))).toHaveLength(1)
    expect(itemsOf(await operate("GET", `${history}?key_id=nobody`))).toEqual([])
    const issued = itemsOf(await administer("GET", "/v2/audit?action=key_issued&key_id=nobody"))
    expect(issued).toEqual([])
    const created = await administer("GET", "/v2/audit?action=project_created&limit=1")
    expect(created.body).toMatchObject({ total: 1, next: expect.any(String) })
  })

  test("has nothing of an erased person by the former user id", async ({ administer, operate }) => {
    await operate("PATCH", extendAll, { extend })
    await administer("DELETE", `${members}/1001?erase=true`)
    for (const query of ["", "&action=granted", "&announcements=false"]) {
      const found = await administer("GET", `${project}/audit?user_id=1001${query}`)
      expect(found.body).toMatchObject({ total: 0, next: null, data: [] })
    }
  })

  test("refuses unknown actions, invalid times and ids, and times in the wrong order", async (fixture) => {
    const { administer, call } = fixture
    for (const [field, query] of refusedSearches) {
      for (const path of [`${project}/audit`, `${members}/1001/history`, "/v2/audit"]) {
        expectInvalid(await administer("GET", `${path}?${query}`), field)
      }
    }
    expectInvalid(await administer("GET", `${project}/audit?user_id=a%20b`), "user_id")
    expectInvalid(await administer("GET", "/v2/audit?user_id=1001"), "user_id")
    expectInvalid(await administer("GET", `${members}/1001/history?user_id=1001`), "user_id")
    expectFailure(await call("GET", `${project}/audit?user_id=1001`), 403, "FORBIDDEN")
    const missing = await administer("GET", "/v2/projects/p9/audit?action=granted")
    expectFailure(missing, 404, "PROJECT_NOT_FOUND")
  })
}

const auditTests = (test: ServerTest): void => {
  test("of a project has the changes of memberships and webhooks, newest first, page by page", async (fixture) => {
    const { administer, operate, tenure } = fixture
    const endDate = "2098-01-01T00:00:00.000Z"
    const reason = "A friend"
    await tenure.memberships.grant({ projectId: "p1", userId: "1002", endDate, reason })
    const created = await operate("POST", webhooks, { url: "https://receiver.example/" })
    const audit = `${project}/audit`
    const first = await administer("GET", `${audit}?limit=1`)
    const { next } = expectSuccess(first, {
      total: 1,
      next: expect.any(String),
      data: [
        {
          ...bareRow,
          action: "webhook_created",
          key_id: expect.any(String),
          key_name: "billing",
          request_id: fieldsOf(created.body)["request_id"],
          subject: dataOf(created)["id"],
        },
      ],
    })
    const second = await administer("GET", `${audit}?limit=1&after=${String(next)}`)
    expect(itemsOf(second)).toMatchObject([
      { action: "granted", user_id: "1002", subject: null, reason },
    ])
    expectInvalid(await administer("GET", `${audit}?after=x`))
  })

  test("of what belongs to no project has projects and keys, and who changed them", async (fixture) => {
    const { administer, tenure } = fixture
    const { id } = await tenure.apiKeys.issue({ projects: "all", role: "admin", name: "Eve" })
    await tenure.memberships.createProject("p7", { keyId: id })
    const first = await administer("GET", "/v2/audit?limit=1")
    const { next } = expectSuccess(first, {
      total: 1,
      next: expect.any(String),
      data: [{ ...bareRow, action: "project_created", subject: "p7", key_id: id, key_name: "Eve" }],
    })
    const second = await administer("GET", `/v2/audit?limit=1&after=${String(next)}`)
    expect(itemsOf(second)).toMatchObject([{ action: "key_issued", subject: id, key_id: null }])
  })
}

export const projectTests = (test: ServerTest): void => {
  describe("projects", () => {
    ownTests(test)
  })
  describe("the audit trail", () => {
    auditTests(test)
    searchTests(test)
  })
}

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

/** Sends a request with a ticket in place of a key. */
const byTicket = ({ url }: Fixture, ticket: string, path = events, method = "GET") =>
  send(url, { method, path: `${path}?ticket=${ticket}` })

const ticketTests = (test: ServerTest): void => {
  const opensOnce = async (fixture: Fixture) => {
    const ticket = await issueTicket(fixture)
    expect((await byTicket(fixture, ticket)).status).toBe(200)
    expectFailure(await byTicket(fixture, ticket), 401, "UNAUTHORIZED")
  }

  test("opens the feed of its project once", opensOnce)

  test.with({
    authenticate: ({ headers }) =>
      headers["authorization"] === undefined
        ? undefined
        : { keyId: "user-7", projects: ["p1"], role: "operator" },
  })("is issued by the authentication of the host, too", opensOnce)

  test("opens nothing else", async (fixture) => {
    const foreign = await byTicket(fixture, await issueTicket(fixture), otherEvents)
    expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
    for (const [method, path] of [
      ["GET", members],
      ["PATCH", extendAll],
      ["POST", events],
      ["POST", tickets],
    ] as const) {
      const response = await byTicket(fixture, await issueTicket(fixture), path, method)
      expectFailure(response, 401, "UNAUTHORIZED")
    }
  })

  test("is not known if it was made up, or its key was revoked", async (fixture) => {
    const { apiKeys } = fixture.tenure
    const { id, token } = await apiKeys.issue({ projects: ["p1"] })
    const ended = await issueTicket(fixture, token)
    await apiKeys.revoke(id)
    for (const ticket of ["", "x", fixture.token, `tkt_${"A".repeat(43)}`, ended]) {
      expectFailure(await byTicket(fixture, ticket), 401, "UNAUTHORIZED")
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
        const { status } = await byTicket(fixture, String(dataOf(issued)["ticket"]), path)
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

export const statusTests = (test: ServerTest): void => {
  describe("the status", () => {
    test("says to an admin of all projects how the server is doing", async ({ administer }) => {
      expectSuccess(await administer("GET", "/v2/status"), {
        data: {
          versions: { tenure: expect.stringMatching(/^\d+\.\d+\.\d+/), api: "v2" },
          stores: {
            memberships: true,
            webhooks: true,
            api_keys: true,
            deliveries: true,
            rate_limits: true,
          },
          backlog: { waiting: 0, due_for_ms: null, late_for_ms: null },
          failed_deliveries: 0,
          disabled_webhooks: 0,
          webhooks_needing_attention: [],
          rate_limiting: "store",
          suspended_keys: [],
          missing_encryption_keys: [],
        },
      })
    })

    test.with({ rateLimits: { perKey: { limit: 5, window: "1 hour" } } })(
      "says to an admin of all projects what was done in the last hour",
      async ({ administer, call, tenure }) => {
        const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], name: "busy" })
        for (let count = 0; count < 8; count++) await call("GET", "/v2/identity", { token })
        const response = await administer("GET", "/v2/status/activity")
        expectSuccess(response, { data: expect.any(Object) })
        const { minutes, refusals } = dataOf(response)
        expect(minutes).toHaveLength(60)
        expect(refusals).toEqual([{ key_id: id, refused: 3 }])
        expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 0, refused: 3 })
      },
    )

    test.with({ webhooks: { allowedNetworks: ["127.0.0.0/8"], retrySchedule: [3_600_000] } })(
      "names webhooks that need attention, without the path of their URL",
      async ({ administer, operate, receiver, tenure }) => {
        const failing = await receiver((response) => void response.writeHead(500).end())
        const url = `${failing.url}secret-path`
        const description = "a receiver"
        const { id } = await tenure.webhooks.create({ projectId: "p1", url, description })
        const event_id = await tenure.webhooks.ping({ projectId: "p1", webhookId: id })
        const last_attempt = {
          at: instant,
          event_id,
          status: 500,
          error: null,
          duration_ms: expect.any(Number),
        }
        const needing = async () =>
          dataOf(await administer("GET", "/v2/status"))["webhooks_needing_attention"]
        await expect.poll(needing, { timeout: 60_000 }).toEqual([
          {
            project_id: "p1",
            id,
            url_host: new URL(url).host,
            description,
            reason: "failing",
            since: instant,
            last_attempt,
            waiting: 1,
          },
        ])
        const { minutes } = dataOf(await operate("GET", `${project}/activity`))
        expect(minutes).toHaveLength(60)
        expect(minutes).toContainEqual({ at: instant, delivered: 0, failed: 1 })
      },
    )
  })
}
