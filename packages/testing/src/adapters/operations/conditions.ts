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

const modeTests = (serving: Serving): void => {
  const later = "2200-01-01T00:00:00.000Z"
  const keeping = { extend, mode: "never_shorten" }

  it(
    "with `never_shorten` extends a membership that ends earlier",
    serving(async (fixture) => {
      const response = await fixture.call("PATCH", extendOne, { body: keeping })
      expectSuccess(response, "PATCH", extendOne, { total: 1, data: { new_end_date: extend } })
      expect(await endDateOf(fixture)).toBe(extend)
    }),
  )

  it(
    "with `never_shorten` leaves a membership that ends later, and answers when, once for all repetitions",
    serving(async (fixture) => {
      const { call, tenure } = fixture
      await tenure.memberships.grant({ ...member, endDate: later })
      const before = await tenure.memberships.history({ projectId: "p1" })
      const data = { new_end_date: later }
      const headers = { "idempotency-key": "left" }
      for (const fields of [{}, { dry_run: true }, { expected_end_date: later }]) {
        const body = { ...keeping, ...fields }
        const response = await call("PATCH", extendOne, { body })
        expectSuccess(response, "PATCH", extendOne, { total: 1, data })
      }
      const first = await call("PATCH", extendOne, { body: keeping, headers })
      const { message } = expectSuccess(first, "PATCH", extendOne, { total: 1, data })
      expect(message).toContain("nothing was changed")
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
      await tenure.memberships.grant({ ...member, endDate: initialEndDate })
      const repeated = await call("PATCH", extendOne, { body: keeping, headers })
      expect(expectSuccess(repeated, "PATCH", extendOne, { total: 1, data }).message).toBe(message)
      expect(await endDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "with `never_shorten` expects an end date first, and in a dry run answers as it would",
    serving(async (fixture) => {
      const { call } = fixture
      const conflict = { ...keeping, expected_end_date: later }
      for (const fields of [{}, { dry_run: true }]) {
        const response = await call("PATCH", extendOne, { body: { ...conflict, ...fields } })
        expectFailure(response, "PATCH", extendOne, 409, "END_DATE_CONFLICT", {
          current_end_date: initialEndDate,
        })
      }
      const dry = await call("PATCH", extendOne, { body: { ...keeping, dry_run: true } })
      expectSuccess(dry, "PATCH", extendOne, { total: 1, data: { new_end_date: extend } })
      expect(await endDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "with the mode `set` shortens a membership, as without one",
    serving(async (fixture) => {
      for (const fields of [{ mode: "set" }, {}]) {
        await fixture.tenure.memberships.grant({ ...member, endDate: later })
        await fixture.call("PATCH", extendOne, { body: { extend, ...fields } })
        expect(await endDateOf(fixture)).toBe(extend)
      }
      for (const value of ["neverShorten", "", null, true, 1, ["set"]]) {
        await fixture.tenure.memberships.grant({ ...member, endDate: initialEndDate })
        await expectRefusal(fixture, extendOne, "mode", value)
      }
    }),
  )
}

const spellingTests = (serving: Serving): void => {
  it.each([
    ["dryRun", "dry_run"],
    ["dry-run", "dry_run"],
    ["DryRun", "dry_run"],
    ["DRY_RUN", "dry_run"],
    ["_dry__run", "dry_run"],
    ["expectedEndDate", "expected_end_date"],
    ["expected_enddate", "expected_end_date"],
    ["Mode", "mode"],
    ["Reason", "reason"],
    ["neverShorten", '"mode": "never_shorten"'],
    ["never_shorten", '"mode": "never_shorten"'],
  ])(
    "fails if `%s` spells a field in another way, and names the right one",
    async (wrong, right) =>
      await serving(async (fixture) => {
        for (const path of [extendOne, extendAll]) {
          const body = { extend, [wrong]: true }
          const response = await fixture.call("PATCH", path, { body })
          const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toContain(wrong)
          expect(fieldsOf(error)["message"]).toContain(right)
          expect(await endDateOf(fixture)).toBe(initialEndDate)
        }
      })(),
  )

  it(
    "ignores fields that it does not know, whatever they have",
    serving(async (fixture) => {
      const others = { user_id: "1001", days: 30, plan: "dry", bulk: true, "": 1, Ænd: null }
      const known = JSON.stringify({ extend, ...others }).slice(0, -1)
      for (const path of [extendOne, extendAll]) {
        const body = `${known},"id":12345678901234567890,"of":{"mode":1,"mode":2},"days":1e400}`
        const response = await fixture.call("PATCH", path, { body })
        expect(response.status).toBe(200)
      }
    }),
  )

  it.each(["extend", "dry_run", "reason", "mode"])(
    "fails if `%s` is there twice",
    async (field) =>
      await serving(async (fixture) => {
        for (const path of [extendOne, extendAll]) {
          const twice = { extend: [extend], dry_run: [true, false], reason: ["a"], mode: ["set"] }
          const all = Object.entries(twice).flatMap(([name, [value, other = value]]) => {
            const text = `"${name}":${JSON.stringify(value)}`
            return name === field ? [text, `"${name}":${JSON.stringify(other)}`] : [text]
          })
          const response = await fixture.call("PATCH", path, { body: `{${all.join(",")}}` })
          const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toBe(`${field} must not be there twice`)
          expect(await endDateOf(fixture)).toBe(initialEndDate)
        }
      })(),
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
    modeTests(serving)
    spellingTests(serving)
    reasonTests(serving)
    dryRunTests(serving)
  })
}
