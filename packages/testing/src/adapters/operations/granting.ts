/** Granting and ending memberships. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/envelope.ts"
import type { Fixture, Serving } from "../AdapterHarness.ts"
import { invalidDates, validDate } from "./endDates.ts"

const existing = "/v2/projects/p1/memberships/1001"
const absent = "/v2/projects/p1/memberships/2001"

/** Issues a key of an operator of `p1`. */
const operatorOf = async ({ tenure }: Fixture): Promise<string> =>
  (await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })).token

const grantTests = (serving: Serving): void => {
  it(
    "creates a membership or sets its end date, in either format, which may be over",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      const dates = [
        [validDate, validDate, "active"],
        [4_102_444_800_000, "2100-01-01T00:00:00.000Z", "active"],
        ["2001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z", "expired"],
      ]
      for (const path of [existing, absent]) {
        const user_id = path.slice(-4)
        for (const [input, end_date, state] of dates) {
          const response = await fixture.call("PUT", path, { token, body: { end_date: input } })
          expectSuccess(response, "PUT", path, { data: { user_id, end_date, state } })
        }
      }
      const member = { projectId: "p1", userId: "2001" }
      const { endDate } = await fixture.tenure.memberships.find(member)
      expect(endDate).toBe(Date.parse("2001-01-01T00:00:00.000Z"))
    }),
  )

  it(
    "keeps the reason",
    serving(async (fixture) => {
      const body = { end_date: validDate, reason: "a friend" }
      await fixture.call("PUT", existing, { token: await operatorOf(fixture), body })
      const page = { projectId: "p1", userId: "1001", limit: 1 }
      const [row] = await fixture.tenure.memberships.history(page)
      expect(row).toMatchObject({ action: "granted", reason: "a friend" })
    }),
  )

  it(
    "fails if a field or the user id is invalid, and grants nothing",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      const bodies = [
        {},
        { extend: validDate },
        ...invalidDates.map((end_date) => ({ end_date })),
        ...["", 7, null].map((reason) => ({ end_date: validDate, reason })),
      ]
      for (const body of bodies) {
        const response = await fixture.call("PUT", absent, { token, body })
        expectFailure(response, "PUT", absent, 422, "VALIDATION_ERROR")
      }
      for (const user of ["abc", "1e3", "9".repeat(65)]) {
        const path = `/v2/projects/p1/memberships/${user}`
        const response = await fixture.call("PUT", path, { token, body: { end_date: validDate } })
        const { error } = expectFailure(response, "PUT", path, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain("user_id")
      }
      expect(await fixture.tenure.memberships.list({ projectId: "p1" })).toHaveLength(3)
    }),
  )
}

const endTests = (serving: Serving): void => {
  it(
    "removes a membership, once",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      const response = await fixture.call("DELETE", existing, { token })
      expectSuccess(response, "DELETE", existing, { data: null })
      const again = await fixture.call("DELETE", existing, { token })
      expectFailure(again, "DELETE", existing, 404, "MEMBERSHIP_NOT_FOUND")
      const left = await fixture.tenure.memberships.list({ projectId: "p1" })
      expect(left.map(({ userId }) => userId)).toEqual(["1002", "1003"])
    }),
  )

  it(
    "fails if the user has no membership, or a parameter is unknown",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      for (const user of ["2001", "abc", "__proto__"]) {
        const path = `/v2/projects/p1/memberships/${user}`
        const response = await fixture.call("DELETE", path, { token })
        expectFailure(response, "DELETE", path, 404, "MEMBERSHIP_NOT_FOUND")
      }
      const response = await fixture.call("DELETE", `${existing}?dry_run=true`, { token })
      expectFailure(response, "DELETE", existing, 422, "VALIDATION_ERROR")
      expect(await fixture.tenure.memberships.list({ projectId: "p1" })).toHaveLength(3)
    }),
  )
}

const eraseTests = (serving: Serving): void => {
  it(
    "leaves no history, and says so in the trail",
    serving(async ({ call, tenure }) => {
      const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      const erase = `${existing}?erase=true`
      const history = `${existing}/history?limit=10`
      // Works for members, for those who were, and for strangers.
      for (const _ of ["member", "erased"]) {
        const response = await call("DELETE", erase, { token })
        expectSuccess(response, "DELETE", existing, { data: null })
        const found = await call("GET", existing, { token })
        expectFailure(found, "GET", existing, 404, "MEMBERSHIP_NOT_FOUND")
        const { body } = await call("GET", history, { token })
        expect(fieldsOf(body)).toMatchObject({ data: [], total: 0 })
      }
      const trail = await tenure.memberships.history({ projectId: "p1" })
      expect(trail.filter(({ userId }) => userId === "1001")).toEqual([])
      const row = { action: "person_erased", origin: { keyId: id } }
      expect(trail.slice(0, 2)).toMatchObject([row, row])
      const left = await tenure.memberships.list({ projectId: "p1" })
      expect(left.map(({ userId }) => userId)).toEqual(["1002", "1003"])
    }),
  )

  it(
    "happens once with an idempotency key, which no ending has",
    serving(async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      const options = { token, headers: { "idempotency-key": "k-1" } }
      const erase = `${existing}?erase=true`
      expect((await call("DELETE", erase, options)).headers["idempotent-replayed"]).toBeUndefined()
      await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: validDate })
      const again = await call("DELETE", erase, options)
      expect(again.headers["idempotent-replayed"]).toBe("true")
      expect((await call("GET", existing, { token })).status).toBe(200)
      const mismatch = await call("DELETE", existing, options)
      expectFailure(mismatch, "DELETE", existing, 422, "IDEMPOTENCY_MISMATCH")
    }),
  )

  it(
    "fails if a parameter or the user id is invalid, or the project is missing",
    serving(async ({ call, tenure }) => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role: "admin" })
      for (const query of ["erase=yes", "erase=", "erase=true&erase=true", "erase=true&more=1"]) {
        const response = await call("DELETE", `${existing}?${query}`, { token })
        expectFailure(response, "DELETE", existing, 422, "VALIDATION_ERROR")
      }
      for (const [path, code] of [
        ["/v2/projects/p1/memberships/abc", "MEMBERSHIP_NOT_FOUND"],
        ["/v2/projects/p9/memberships/1001", "PROJECT_NOT_FOUND"],
      ] as const) {
        const response = await call("DELETE", `${path}?erase=true`, { token })
        expectFailure(response, "DELETE", path, 404, code)
      }
      expect((await call("GET", existing, { token })).status).toBe(200)
    }),
  )
}

/** Declares the tests. */
export const grantingTests = (serving: Serving): void => {
  describe("granting a membership", () => {
    grantTests(serving)
  })
  describe("ending a membership", () => {
    endTests(serving)
  })
  describe("erasing a person", () => {
    eraseTests(serving)
  })
}
