/** Projects, and the audit trails in and outside them. */

import { describe, expect } from "vitest"
import {
  dataOf,
  expectFailure,
  expectInvalid,
  expectSuccess,
  fieldsOf,
  instant,
  itemsOf,
} from "../../support/http.ts"
import {
  type ServerTest,
  asLines,
  extend,
  extendAll,
  imports,
  keyed,
  members,
  project,
  webhooks,
} from "../harness.ts"

const p1 = { id: "p1", memberships: 3, webhooks: 0 }

const ownTests = (test: ServerTest): void => {
  test("are listed to those who may use them, page by page, with their last bulk extension", async (fixture) => {
    const { administer, call } = fixture
    expectSuccess(await call("GET", "/v2/projects"), { total: 1, next: null, data: [p1] })
    await call("PATCH", extendAll, { body: { extend } })
    expectSuccess(await call("GET", project), { data: { ...p1, last_bulk_end_date: extend } })
    const first = await administer("GET", "/v2/projects?limit=1")
    expectSuccess(first, { total: 1, next: "p1", data: [p1] })
    const second = await administer("GET", "/v2/projects?limit=1&after=p1")
    expect(second.body).toMatchObject({ total: 1, next: null, data: [{ id: "p2" }] })
  })

  test("are created once, by admins", async ({ administer, tenure }) => {
    const data = { id: "new", memberships: 0, webhooks: 0, last_bulk_end_date: null }
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
      data: { ...p1, memberships: 0, last_bulk_end_date: null },
    })
    // The keys of the deleted one do not open the new one, although they were cached.
    expectFailure(await call("GET", project), 404, "PROJECT_NOT_FOUND")
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

/** A row of an audit trail, without its content. */
const row = {
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
          ...row,
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
      data: [{ ...row, action: "project_created", subject: "p7", key_id: id, key_name: "Eve" }],
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
  })
}
