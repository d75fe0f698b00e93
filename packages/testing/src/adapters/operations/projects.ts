/** Reading projects and memberships. */

import { describe, expect } from "vitest"
import { expectFailure, expectHeaders, fieldsOf, dataOf } from "../../support/http.ts"
import { type Fixture, type ServerTest, initialEndDate } from "../harness.ts"

const project = "/v2/projects/p1"
const memberships = `${project}/memberships`

const ofAdmin = async ({ call, tenure }: Fixture) => {
  const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
  return (method: string, path: string) => call(method, path, { token })
}

/** Declares the tests. */
export const projectTestsOn = (test: ServerTest): void => {
  describe("projects", () => {
    test("are listed to those who may use them, page by page", async (fixture) => {
      const asAdmin = await ofAdmin(fixture)
      const p1 = { id: "p1", memberships: 3, webhooks: 0 }
      const own = await fixture.call("GET", "/v2/projects")
      expectHeaders(own)
      expect(own.body).toMatchObject({ ok: true, total: 1, next: null, data: [p1] })
      const first = await asAdmin("GET", "/v2/projects?limit=1")
      expect(first.body).toMatchObject({ total: 1, next: "p1", data: [p1] })
      const second = await asAdmin("GET", "/v2/projects?limit=1&after=p1")
      expect(second.body).toMatchObject({ total: 1, next: null, data: [{ id: "p2" }] })
    })

    test("are created once, by admins", async (fixture) => {
      const asAdmin = await ofAdmin(fixture)
      const data = { id: "new", memberships: 0, webhooks: 0, last_bulk_end_date: null }
      for (const _ of ["created", "exists"]) {
        const response = await asAdmin("PUT", "/v2/projects/new")
        expect(fieldsOf(response.body)).toMatchObject({ ok: true, path: "/v2/projects/new" })
        expect(fieldsOf(response.body)["data"]).toEqual(data)
      }
      expectFailure(await asAdmin("PUT", "/v2/projects/a%00b"), 404, "PROJECT_NOT_FOUND")
      const trail = await fixture.tenure.memberships.history({ projectId: null })
      expect(trail.filter(({ subject }) => subject === "new")).toHaveLength(1)
    })

    test("are deleted once, by admins, with all that belongs to them", async (fixture) => {
      const { call, tenure } = fixture
      const asAdmin = await ofAdmin(fixture)
      const own = await tenure.apiKeys.issue({ projects: ["p1"] })
      expect((await call("GET", project, { token: own.token })).status).toBe(200)
      const deleted = await asAdmin("DELETE", project)
      expectHeaders(deleted)
      expect(fieldsOf(deleted.body)).toMatchObject({
        ok: true,
        code: 200,
        path: project,
        data: null,
      })
      for (const [method, path] of [
        ["DELETE", project],
        ["GET", project],
        ["GET", memberships],
        ["GET", `${memberships}/1001`],
        ["GET", `${project}/integrations/webhooks`],
      ] as const) {
        expectFailure(await asAdmin(method, path), 404, "PROJECT_NOT_FOUND")
      }
      const [row] = await tenure.memberships.history({ projectId: null, limit: 1 })
      expect(row).toMatchObject({ action: "project_deleted", subject: "p1" })
      await asAdmin("PUT", project)
      expect(fieldsOf((await asAdmin("GET", project)).body)["data"]).toMatchObject({
        memberships: 0,
        webhooks: 0,
      })
      // Its keys do not open the new one, although they were cached.
      expectFailure(await call("GET", project, { token: own.token }), 404, "PROJECT_NOT_FOUND")
    })

    test("that do not exist count before what is wrong with the body, and after the path", async ({
      call,
      tenure,
    }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      const path = "/v2/projects/p9/memberships/import"
      const requests = [
        { body: "{}", headers: { "content-type": "text/plain" } },
        { body: "\uD800", headers: { "content-type": "application/json" } },
        { body: "{", headers: { "content-type": "application/x-ndjson" } },
        { body: "", headers: { "idempotency-key": "" } },
      ]
      for (const request of requests) {
        expectFailure(await call("POST", path, { token, ...request }), 404, "PROJECT_NOT_FOUND")
      }
      const single = "/v2/projects/p9/memberships/1001/extend"
      expectFailure(await call("PATCH", single, { token }), 404, "PROJECT_NOT_FOUND")
      const unreadable = "/v2/projects/p9/memberships/%zz/extend"
      expectFailure(await call("PATCH", unreadable, { token }), 400, "MALFORMED_REQUEST")
    })

    test("that do not exist count before a body that is too large", async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      const path = "/v2/projects/p9/memberships/import"
      const headers = { "content-type": "application/x-ndjson" }
      const response = await call("POST", path, { token, headers, body: "x".repeat(2_097_153) })
      expectFailure(response, 404, "PROJECT_NOT_FOUND")
    })

    test("have the date of the last bulk extension", async ({ call }) => {
      const extend = "2099-01-01T00:00:00.000Z"
      await call("PATCH", `${memberships}/extend`, { body: { extend } })
      const response = await call("GET", project)
      expect(fieldsOf(response.body)["data"]).toEqual({
        id: "p1",
        memberships: 3,
        webhooks: 0,
        last_bulk_end_date: extend,
      })
    })
  })
  describe("memberships", () => {
    test("are listed page by page, by their state", async ({ call, tenure }) => {
      const past = "2001-01-01T00:00:00.000Z"
      const later = "2999-01-01T00:00:00.000Z"
      await tenure.memberships.grant({ projectId: "p1", userId: "1002", endDate: past })
      await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: later })
      const page = async (query: string) => fieldsOf((await call("GET", memberships + query)).body)
      expect(await page("?limit=2")).toMatchObject({
        total: 2,
        next: "1002",
        data: [{ user_id: "1001" }, { user_id: "1002", end_date: past, state: "expired" }],
      })
      expect(await page("?limit=2&after=1002")).toMatchObject({
        total: 1,
        next: null,
        data: [{ user_id: "1003", end_date: later, state: "active" }],
      })
      expect(await page("?state=expired")).toMatchObject({ data: [{ user_id: "1002" }] })
      expect(await page("?user_ids=1002,9,1002")).toMatchObject({ data: [{ user_id: "1002" }] })
      for (const query of [
        "?state=old",
        "?limit=0",
        "?after=a%20b",
        "?states=active",
        "?user_ids=",
        "?user_ids=a%20b",
      ]) {
        expectFailure(await call("GET", memberships + query), 422, "VALIDATION_ERROR")
      }
    })

    test("are listed by their ends", async ({ call, tenure }) => {
      const [soon, later] = ["2997-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"]
      await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
      await tenure.memberships.grant({ projectId: "p1", userId: "1002", endDate: soon })
      await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: new Date(0) })
      const page = async (query: string) =>
        fieldsOf((await call("GET", `${memberships}?ending_before=${query}`)).body)
      const first = await page("3000-01-01T00:00:00.000Z&limit=1")
      expect(first).toMatchObject({
        total: 1,
        data: [{ user_id: "1002", end_date: soon, state: "active" }],
      })
      const second = await page(`3000-01-01T00:00:00.000Z&after=${String(first["next"])}`)
      expect(second).toMatchObject({ total: 1, next: null, data: [{ user_id: "1001" }] })
      expect(await page(soon)).toMatchObject({ total: 0, next: null, data: [] })
      for (const query of [
        "",
        "soon",
        "2999",
        `${soon}&state=active`,
        `${soon}&user_ids=1`,
        `${soon}&after=1001`,
      ]) {
        const path = `${memberships}?ending_before=${query}`
        expectFailure(await call("GET", path), 422, "VALIDATION_ERROR")
      }
    })

    test("are found, with their state", async ({ call }) => {
      const found = await call("GET", `${memberships}/1001`)
      const state = Date.now() < Date.parse(initialEndDate) ? "active" : "expired"
      expect(fieldsOf(found.body)["data"]).toEqual({
        user_id: "1001",
        end_date: initialEndDate,
        state,
        metadata: {},
      })
      for (const missing of [`${memberships}/9`, `${memberships}/a%20b`]) {
        expectFailure(await call("GET", missing), 404, "MEMBERSHIP_NOT_FOUND")
      }
    })

    test("has the changes of a membership with those of all, page by page, for operators", async ({
      call,
      tenure,
    }) => {
      const extend = "2099-01-01T00:00:00.000Z"
      const { id, token } = await tenure.apiKeys.issue({
        projects: ["p1"],
        role: "operator",
        name: "billing",
      })
      await call("PATCH", `${memberships}/extend`, { body: { extend, reason: "outage" }, token })
      await tenure.memberships.end({ projectId: "p1", userId: "1001" })
      const history = `${memberships}/1001/history`
      const first = await call("GET", `${history}?limit=2`, { token })
      const none = {
        from: null,
        to: null,
        key_id: null,
        key_name: null,
        request_id: null,
        reason: null,
      }
      const byKey = { key_id: id, key_name: "billing" }
      expect(fieldsOf(first.body)).toMatchObject({
        total: 2,
        data: [
          { ...none, action: "ended", from: extend },
          { ...byKey, action: "bulk_extended", from: null, to: extend, reason: "outage" },
        ],
      })
      const next = String(fieldsOf(first.body)["next"])
      const second = await call("GET", `${history}?after=${next}`, { token })
      expect(fieldsOf(second.body)).toMatchObject({
        total: 1,
        next: null,
        data: [{ ...none, action: "granted", to: initialEndDate }],
      })
      expectFailure(await call("GET", `${history}?after=x`, { token }), 422, "VALIDATION_ERROR")
      const foreign = `${memberships}/a%20b/history`
      expectFailure(await call("GET", foreign, { token }), 404, "MEMBERSHIP_NOT_FOUND")
    })
  })
}

/** The audit trail for projects, and the one outside projects. */

const ofProject = "/v2/projects/p1/audit"
const ofAll = "/v2/audit"

const auditOfAdmin = async ({ call, tenure }: Fixture) => {
  const { id, token } = await tenure.apiKeys.issue({ projects: "all", role: "admin", name: "Ada" })
  return { id, get: (path: string) => call("GET", path, { token }) }
}

/** Declares the tests. */
export const auditTests = (test: ServerTest): void => {
  describe("the audit trail", () => {
    test("of a project has the changes of memberships and webhooks, newest first, page by page", async (fixture) => {
      const { call, tenure } = fixture
      const { get } = await auditOfAdmin(fixture)
      const member = { projectId: "p1", userId: "1002" }
      await tenure.memberships.grant({
        ...member,
        endDate: "2098-01-01T00:00:00.000Z",
        reason: "A friend",
      })
      const created = await call("POST", "/v2/projects/p1/integrations/webhooks", {
        body: { url: "https://receiver.example/" },
      })
      const first = await get(`${ofProject}?limit=1`)
      expectHeaders(first)
      const { data, next, ...envelope } = fieldsOf(first.body)
      expect(envelope).toMatchObject({ ok: true, code: 200, total: 1 })
      expect(data).toEqual([
        {
          at: expect.stringMatching(/Z$/),
          action: "webhook_created",
          from: null,
          to: null,
          extend_by: null,
          key_id: expect.any(String),
          key_name: null,
          request_id: fieldsOf(created.body)["request_id"],
          reason: null,
          user_id: null,
          subject: dataOf(created)["id"],
          changes: [],
        },
      ])
      const second = await get(`${ofProject}?limit=1&after=${String(next)}`)
      expect(fieldsOf(second.body)["data"]).toMatchObject([
        { action: "granted", user_id: "1002", subject: null, reason: "A friend" },
      ])
      expectFailure(await get(`${ofProject}?after=x`), 422, "VALIDATION_ERROR")
    })

    test("of what belongs to no project has projects and keys, and who changed them", async (fixture) => {
      const { tenure } = fixture
      const { get, id } = await auditOfAdmin(fixture)
      await tenure.memberships.createProject("p7", { keyId: id })
      const first = await get(`${ofAll}?limit=1`)
      expectHeaders(first)
      const { data, next } = fieldsOf(first.body)
      expect(data).toMatchObject([
        { action: "project_created", subject: "p7", user_id: null, key_id: id, key_name: "Ada" },
      ])
      const second = await get(`${ofAll}?limit=1&after=${String(next)}`)
      expect(fieldsOf(second.body)["data"]).toMatchObject([
        { action: "key_issued", subject: id, key_id: null },
      ])
      expectFailure(await get(`${ofAll}?verbose=true`), 422, "VALIDATION_ERROR")
    })
  })
}
