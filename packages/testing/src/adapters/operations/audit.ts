/** The audit trail of projects, and of what belongs to none. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectHeaders, fieldsOf } from "../../support/envelope.ts"
import type { Fixture, Serving } from "../AdapterHarness.ts"

const ofProject = "/v2/projects/p1/audit"
const ofAll = "/v2/audit"

const ofAdmin = async ({ call, tenure }: Fixture) => {
  const { id, token } = await tenure.apiKeys.issue({ projects: "all", role: "admin", name: "Ada" })
  return { id, get: (path: string) => call("GET", path, { token }) }
}

/** Declares the tests. */
export const auditTests = (serving: Serving): void => {
  describe("the audit trail", () => {
    it(
      "of a project has the changes of memberships and webhooks, newest first, page by page",
      serving(async (fixture) => {
        const { call, tenure } = fixture
        const { get } = await ofAdmin(fixture)
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
            key_id: expect.any(String),
            key_name: null,
            request_id: fieldsOf(created.body)["request_id"],
            reason: null,
            user_id: null,
            subject: fieldsOf(fieldsOf(created.body)["data"])["id"],
          },
        ])
        const second = await get(`${ofProject}?limit=1&after=${String(next)}`)
        expect(fieldsOf(second.body)["data"]).toMatchObject([
          { action: "granted", user_id: "1002", subject: null, reason: "A friend" },
        ])
        const invalid = await get(`${ofProject}?after=x`)
        expectFailure(invalid, "GET", ofProject, 422, "VALIDATION_ERROR")
      }),
    )

    it(
      "of what belongs to no project has projects and keys, and who changed them",
      serving(async (fixture) => {
        const { tenure } = fixture
        const { get, id } = await ofAdmin(fixture)
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
        const invalid = await get(`${ofAll}?verbose=true`)
        expectFailure(invalid, "GET", ofAll, 422, "VALIDATION_ERROR")
      }),
    )
  })
}
