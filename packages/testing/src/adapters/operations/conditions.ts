/** What both extensions take besides the date. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/envelope.ts"
import { type Fixture, initialEndDate, type Serving } from "../AdapterHarness.ts"
import { invalidDates, validDate as extend } from "./endDates.ts"

const extendOne = "/v2/projects/p1/memberships/1001/extend"
const extendAll = "/v2/projects/p1/memberships/extend"

const member = { projectId: "p1", userId: "1001" }

const endDateOf = async ({ tenure }: Fixture): Promise<string> =>
  new Date((await tenure.memberships.find(member)).endDate).toISOString()

/** Expects an extension to be refused because of a field, and to change nothing. */
const expectRefusal = async (fixture: Fixture, path: string, field: string, value: unknown) => {
  const response = await fixture.call("PATCH", path, { body: { extend, [field]: value } })
  const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
  expect(fieldsOf(error)["message"]).toContain(field)
  expect(await endDateOf(fixture)).toBe(initialEndDate)
}

const expectationTests = (serving: Serving): void => {
  it(
    "extends a membership that has the expected end date, in either format",
    serving(async (fixture) => {
      for (const expected_end_date of [initialEndDate, Date.parse(initialEndDate)]) {
        await fixture.tenure.memberships.grant({ ...member, endDate: initialEndDate })
        const body = { extend, expected_end_date }
        const response = await fixture.call("PATCH", extendOne, { body })
        expectSuccess(response, "PATCH", extendOne, { total: 1, data: { new_end_date: extend } })
        expect(await endDateOf(fixture)).toBe(extend)
      }
    }),
  )

  it(
    "fails with the current end date if another one is expected, and changes nothing",
    serving(async (fixture) => {
      const body = { extend, expected_end_date: extend }
      const response = await fixture.call("PATCH", extendOne, { body })
      expectFailure(response, "PATCH", extendOne, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      expect(await endDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "fails if `expected_end_date` is in neither format, or is not for one membership",
    serving(async (fixture) => {
      for (const value of invalidDates) {
        await expectRefusal(fixture, extendOne, "expected_end_date", value)
      }
      await expectRefusal(fixture, extendAll, "expected_end_date", initialEndDate)
    }),
  )
}

const reasonTests = (serving: Serving): void => {
  it(
    "keeps the reason of an extension",
    serving(async ({ call, tenure }) => {
      const reasons = ["Kulanz 🎉", "r".repeat(500)]
      const [first, second] = reasons
      await call("PATCH", extendOne, { body: { extend, reason: first } })
      await call("PATCH", extendAll, { body: { extend, reason: second } })
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
      expect(rows.map(({ reason }) => reason)).toEqual(reasons.toReversed())
    }),
  )

  it(
    "fails if `reason` has no characters, more than 500, or cannot be stored",
    serving(async (fixture) => {
      for (const value of ["", "r".repeat(501), "a\u0000", "\ud800", null, 7, ["r"], {}]) {
        for (const path of [extendOne, extendAll]) {
          await expectRefusal(fixture, path, "reason", value)
        }
      }
    }),
  )
}

const dryRunTests = (serving: Serving): void => {
  it(
    "in a dry run answers as it would, and changes nothing",
    serving(async (fixture) => {
      const { call, tenure } = fixture
      const later = "2200-01-01T00:00:00.000Z"
      await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: later })
      const before = await tenure.memberships.history({ projectId: "p1" })
      const body = { extend, dry_run: true }
      const data = { new_end_date: extend }
      const one = expectSuccess(await call("PATCH", extendOne, { body }), "PATCH", extendOne, {
        total: 1,
        data,
      })
      const all = expectSuccess(await call("PATCH", extendAll, { body }), "PATCH", extendAll, {
        total: 3,
        data: { ...data, would_shorten: 1 },
      })
      for (const { message } of [one, all]) expect(message).toContain("nothing was changed")
      expect(await endDateOf(fixture)).toBe(initialEndDate)
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    }),
  )

  it(
    "in a dry run fails as it would",
    serving(async ({ call }) => {
      const fail = (path: string, fields: object) =>
        call("PATCH", path, { body: { extend, ...fields, dry_run: true } })
      const unknown = "/v2/projects/p1/memberships/9999/extend"
      expectFailure(await fail(unknown, {}), "PATCH", unknown, 404, "MEMBERSHIP_NOT_FOUND")
      const conflict = await fail(extendOne, { expected_end_date: extend })
      expectFailure(conflict, "PATCH", extendOne, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      const past = await fail(extendAll, { extend: 1_000_000_000_000 })
      expectFailure(past, "PATCH", extendAll, 422, "VALIDATION_ERROR")
    }),
  )

  it(
    "changes memberships without a dry run, and fails if `dry_run` is not a boolean",
    serving(async (fixture) => {
      for (const value of ["true", "", 1, 0, null, [], {}]) {
        await expectRefusal(fixture, extendOne, "dry_run", value)
        await expectRefusal(fixture, extendAll, "dry_run", value)
      }
      const response = await fixture.call("PATCH", extendAll, { body: { extend, dry_run: false } })
      expectSuccess(response, "PATCH", extendAll, { total: 3, data: { new_end_date: extend } })
      expect(await endDateOf(fixture)).toBe(extend)
    }),
  )
}

/** Declares the tests. */
export const conditionTests = (serving: Serving): void => {
  describe("an extension", () => {
    expectationTests(serving)
    reasonTests(serving)
    dryRunTests(serving)
  })
}
