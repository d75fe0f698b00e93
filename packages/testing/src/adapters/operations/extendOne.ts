/** Extending one membership. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/envelope.ts"
import { initialEndDate, type Serving } from "../AdapterHarness.ts"
import { invalidDates, validDate as extend } from "./endDates.ts"

const extendOne = "/v2/projects/p1/memberships/1001/extend"

const successTests = (serving: Serving): void => {
  it(
    "returns the new end date in ISO format, and only documented fields",
    serving(async ({ call }) => {
      for (const [input, output] of [
        [extend, extend],
        [4_102_444_800_000, "2100-01-01T00:00:00.000Z"],
        ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
        [9_999_999_999_999, "2286-11-20T17:46:39.999Z"],
      ]) {
        const response = await call("PATCH", extendOne, { body: { extend: input } })
        expectSuccess(response, "PATCH", extendOne, {
          total: 1,
          data: { new_end_date: output },
        })
      }
    }),
  )

  it(
    "changes only that membership",
    serving(async ({ call, tenure }) => {
      await call("PATCH", extendOne, { body: { extend } })
      const all = await tenure.memberships.list({ projectId: "p1" })
      expect(all.map(({ endDate }) => new Date(endDate).toISOString())).toEqual([
        extend,
        initialEndDate,
        initialEndDate,
      ])
    }),
  )

  it(
    "can be repeated, shortens too, and renews an expired membership",
    serving(async ({ call, tenure }) => {
      const grant = { projectId: "p1", userId: "1001" }
      await tenure.memberships.grant({ ...grant, endDate: "2001-01-01T00:00:00.000Z" })
      for (const date of [extend, extend, "2098-01-01T00:00:00.000Z"]) {
        const response = await call("PATCH", extendOne, { body: { extend: date } })
        expect(response.body).toMatchObject({ code: 200, data: { new_end_date: date } })
      }
    }),
  )

  it(
    "ignores undocumented fields",
    serving(async ({ call }) => {
      const response = await call("PATCH", extendOne, { body: { extend, total: 7, ok: false } })
      expectSuccess(response, "PATCH", extendOne, { total: 1, data: { new_end_date: extend } })
    }),
  )

  it(
    "accepts percent-encoded ids",
    serving(async ({ call }) => {
      const path = "/v2/projects/%701/memberships/%31001/extend"
      const response = await call("PATCH", path, { body: { extend } })
      expectSuccess(response, "PATCH", path, { total: 1, data: { new_end_date: extend } })
    }),
  )
}

const failureTests = (serving: Serving): void => {
  it(
    "fails with two errors, one for each format, if `extend` is in neither",
    serving(async ({ call }) => {
      for (const input of invalidDates) {
        const response = await call("PATCH", extendOne, { body: { extend: input } })
        expectFailure(response, "PATCH", extendOne, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
      }
      const response = await call("PATCH", extendOne, { body: {} })
      expectFailure(response, "PATCH", extendOne, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
    }),
  )

  it(
    "fails with one error if `extend` is not in the future",
    serving(async ({ call }) => {
      const past = [
        1_000_000_000_000,
        Date.now() - 1,
        "0000-01-01T00:00:00.000Z",
        "2001-09-09T01:46:40.000Z",
      ]
      for (const input of past) {
        const response = await call("PATCH", extendOne, { body: { extend: input } })
        const { error } = expectFailure(response, "PATCH", extendOne, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain("extend must be a future timestamp")
      }
    }),
  )

  it(
    "fails if the user has no membership, or the user id is invalid",
    serving(async ({ call }) => {
      for (const user of ["9999", "abc", "1e3", "-1", "%31%30x", "__proto__", "constructor"]) {
        const path = `/v2/projects/p1/memberships/${user}/extend`
        const response = await call("PATCH", path, { body: { extend } })
        expectFailure(response, "PATCH", path, 404, "MEMBERSHIP_NOT_FOUND")
      }
    }),
  )
}

/** Declares the tests. */
export const extendOneTests = (serving: Serving): void => {
  describe("extending one membership", () => {
    successTests(serving)
    failureTests(serving)
  })
}
