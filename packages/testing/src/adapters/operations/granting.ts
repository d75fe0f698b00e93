/** Granting and ending memberships. */

import { describe, expect } from "vitest"
import { manyKindsOfUser } from "../../support/fixtures.ts"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/http.ts"
import type { ServerTest } from "../harness.ts"
import { invalidDates, validDate } from "./extending.ts"

const existing = "/v2/projects/p1/memberships/1001"
const absent = "/v2/projects/p1/memberships/2001"

const encoded = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`

const invalidMetadata = [
  null,
  7,
  "gold",
  [],
  ["gold"],
  { plan: 7 },
  { plan: "" },
  { plan: "\u0000" },
  { plan: "\ud800" },
  { plan: "x".repeat(256) },
  { "": "x" },
  { "9": "x" },
  { "a b": "x" },
  { ["n".repeat(41)]: "x" },
  Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`n${n}`, "x"])),
]

/** Declares the tests. */
export const grantingTests = (test: ServerTest): void => {
  describe("granting a membership", () => {
    test("creates a membership or sets its end date, in either format, which may be over", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const dates = [
        [validDate, validDate, "active"],
        [4_102_444_800_000, "2100-01-01T00:00:00.000Z", "active"],
        ["2001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z", "expired"],
      ]
      for (const path of [existing, absent]) {
        const user_id = path.slice(-4)
        for (const [input, end_date, state] of dates) {
          expectSuccess(await call("PUT", path, { token, body: { end_date: input } }), {
            data: { user_id, end_date, state, metadata: {} },
          })
        }
      }
      const member = { projectId: "p1", userId: "2001" }
      const { endDate } = await tenure.memberships.find(member)
      expect(endDate).toBe(Date.parse("2001-01-01T00:00:00.000Z"))
    })

    test("has user ids of any kind in its path, as all operations on one membership", async (fixture) => {
      const { token } = await fixture.tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      for (const user_id of manyKindsOfUser) {
        // The words of the paths for all memberships are user ids if their first character is encoded.
        const segment = user_id.replace(/^[ei](?=xtend|mport)/, encoded)
        const name = segment === user_id ? encodeURIComponent(user_id) : segment
        const path = `/v2/projects/p1/memberships/${name}`
        const data = { user_id, end_date: validDate, state: "active", metadata: {} }
        const put = await fixture.call("PUT", path, { token, body: { end_date: validDate } })
        expectSuccess(put, { data })
        expectSuccess(await fixture.call("GET", path, { token }), { data })
        const query = new URLSearchParams({
          user_ids: `1001,${user_id.replaceAll(/[%,]/g, encodeURIComponent)}`,
        })
        const list = await fixture.call("GET", `/v2/projects/p1/memberships?${query}`, { token })
        expect(list.body).toMatchObject({
          data: expect.arrayContaining([data, expect.objectContaining({ user_id: "1001" })]),
        })
        const extension = await fixture.call("PATCH", `${path}/extend`, {
          token,
          body: { extend: validDate },
        })
        expect(extension.body).toMatchObject({ total: 1, data: { new_end_date: validDate } })
        const history = await fixture.call("GET", `${path}/history`, { token })
        expect(history.body).toMatchObject({
          data: [{ action: "extended" }, { action: "granted" }],
        })
        expectSuccess(await fixture.call("DELETE", path, { token }), { data: null })
      }
    })

    test("keeps the reason", async ({ call, operatorToken: token, tenure }) => {
      const body = { end_date: validDate, reason: "a friend" }
      await call("PUT", existing, { token, body })
      const page = { projectId: "p1", userId: "1001", limit: 1 }
      const [row] = await tenure.memberships.history(page)
      expect(row).toMatchObject({ action: "granted", reason: "a friend" })
    })

    test("fails if a field or the user id is invalid, and grants nothing", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const bodies = [
        {},
        { extend: validDate },
        ...invalidDates.map((end_date) => ({ end_date })),
        ...["", 7, null].map((reason) => ({ end_date: validDate, reason })),
        ...[...invalidMetadata, { plan: null }].map((metadata) => ({
          end_date: validDate,
          metadata,
        })),
      ]
      for (const body of bodies) {
        expectFailure(await call("PUT", absent, { token, body }), 422, "VALIDATION_ERROR")
      }
      for (const user of ["a%20b", "a%0Ab", "%7F", "%C3%A9", "9".repeat(129)]) {
        const path = `/v2/projects/p1/memberships/${user}`
        const response = await call("PUT", path, { token, body: { end_date: validDate } })
        const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain("user_id")
      }
      expect(await tenure.memberships.list({ projectId: "p1" })).toHaveLength(3)
    })
  })
  describe("updating a membership", () => {
    test("changes texts, removes those that are null, and leaves all others and the end date", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const body = { end_date: validDate, metadata: { plan: "gold", seat: "12A" } }
      const granted = await call("PUT", existing, { token, body })
      const before = { user_id: "1001", end_date: validDate, state: "active" }
      expectSuccess(granted, { data: { ...before, metadata: body.metadata } })
      const patch = { metadata: { seat: null, order: "117", plan: "silver" }, reason: "moved" }
      const updated = await call("PATCH", existing, { token, body: patch })
      const metadata = { order: "117", plan: "silver" }
      const data = { ...before, metadata }
      expectSuccess(updated, { data })
      const again = { token, body: { end_date: validDate } }
      expectSuccess(await call("PUT", existing, again), { data })
      expectSuccess(await call("GET", existing, { token }), { data })
      const list = await call("GET", "/v2/projects/p1/memberships?limit=1", { token })
      expect(list.body).toMatchObject({ data: [data] })
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
      expect(rows[1]).toMatchObject({ action: "updated", reason: "moved", userId: "1001" })
    })

    test("names the text that is wrong, or the place of its name", async ({
      call,
      operatorToken: token,
    }) => {
      for (const [metadata, problem] of [
        [{ seat: "12A", plan: 7 }, "metadata.plan must be a text of 1 to 255 characters"],
        [{ plan: "gold", "a b": "x" }, "see entry 2"],
      ] as const) {
        const bodies = { PUT: { end_date: validDate, metadata }, PATCH: { metadata } }
        for (const [method, body] of Object.entries(bodies)) {
          const response = await call(method, existing, { token, body })
          const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toContain(problem)
        }
      }
    })

    test("fails if the metadata is invalid or too much, or there is no membership, and changes nothing", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      const full = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`n${n}`, "x"]))
      expect((await call("PATCH", existing, { token, body: { metadata: full } })).status).toBe(200)
      const bodies = [
        {},
        { metadata: full, end_date: validDate },
        { metadata: { one: "more" } },
        ...invalidMetadata.map((metadata) => ({ metadata })),
      ]
      for (const body of bodies) {
        expectFailure(await call("PATCH", existing, { token, body }), 422, "VALIDATION_ERROR")
      }
      expect(await tenure.memberships.find({ projectId: "p1", userId: "1001" })).toMatchObject({
        metadata: full,
      })
      for (const path of [absent, "/v2/projects/p1/memberships/a%20b"]) {
        const response = await call("PATCH", path, { token, body: { metadata: {} } })
        expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
      }
    })
  })
  describe("ending a membership", () => {
    test("removes a membership, once", async ({ call, operatorToken: token, tenure }) => {
      expectSuccess(await call("DELETE", existing, { token }), { data: null })
      expectFailure(await call("DELETE", existing, { token }), 404, "MEMBERSHIP_NOT_FOUND")
      const left = await tenure.memberships.list({ projectId: "p1" })
      expect(left.map(({ userId }) => userId)).toEqual(["1002", "1003"])
    })

    test("fails if the user has no membership, or a parameter is unknown", async ({
      call,
      operatorToken: token,
      tenure,
    }) => {
      for (const user of ["2001", "abc", "__proto__"]) {
        const path = `/v2/projects/p1/memberships/${user}`
        expectFailure(await call("DELETE", path, { token }), 404, "MEMBERSHIP_NOT_FOUND")
      }
      const response = await call("DELETE", `${existing}?dry_run=true`, { token })
      expectFailure(response, 422, "VALIDATION_ERROR")
      expect(await tenure.memberships.list({ projectId: "p1" })).toHaveLength(3)
    })
  })
  describe("erasing a person", () => {
    test("leaves no history, and says so in the trail", async ({ call, tenure }) => {
      const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      const erase = `${existing}?erase=true`
      const history = `${existing}/history?limit=10`
      // Covers members, former members and strangers.
      for (const _ of ["member", "erased"]) {
        expectSuccess(await call("DELETE", erase, { token }), { data: null })
        expectFailure(await call("GET", existing, { token }), 404, "MEMBERSHIP_NOT_FOUND")
        const { body } = await call("GET", history, { token })
        expect(fieldsOf(body)).toMatchObject({ data: [], total: 0 })
      }
      const trail = await tenure.memberships.history({ projectId: "p1" })
      expect(trail.filter(({ userId }) => userId === "1001")).toEqual([])
      const row = { action: "person_erased", origin: { keyId: id } }
      expect(trail.slice(0, 2)).toMatchObject([row, row])
      const left = await tenure.memberships.list({ projectId: "p1" })
      expect(left.map(({ userId }) => userId)).toEqual(["1002", "1003"])
    })

    test("happens once with an idempotency key, which no ending has", async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      const options = { token, headers: { "idempotency-key": "k-1" } }
      const erase = `${existing}?erase=true`
      expect((await call("DELETE", erase, options)).headers["idempotent-replayed"]).toBeUndefined()
      await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: validDate })
      const again = await call("DELETE", erase, options)
      expect(again.headers["idempotent-replayed"]).toBe("true")
      expect((await call("GET", existing, { token })).status).toBe(200)
      expectFailure(await call("DELETE", existing, options), 422, "IDEMPOTENCY_MISMATCH")
    })

    test("fails if a parameter or the user id is invalid, or the project is missing", async ({
      call,
      tenure,
    }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      for (const query of ["erase=yes", "erase=", "erase=true&erase=true", "erase=true&more=1"]) {
        const response = await call("DELETE", `${existing}?${query}`, { token })
        expectFailure(response, 422, "VALIDATION_ERROR")
      }
      for (const [path, code] of [
        ["/v2/projects/p1/memberships/a%20b", "MEMBERSHIP_NOT_FOUND"],
        ["/v2/projects/p9/memberships/1001", "PROJECT_NOT_FOUND"],
      ] as const) {
        expectFailure(await call("DELETE", `${path}?erase=true`, { token }), 404, code)
      }
      expect((await call("GET", existing, { token })).status).toBe(200)
    })
  })
}
