/** End dates in requests. */

import { describe, expect } from "vitest"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/http.ts"
import { type Fixture, type ServerTest, initialEndDate, extendOne, extendAll } from "../harness.ts"

export const validDate = "2099-02-28T12:34:56.789Z"

/** Values in neither end-date format. */
export const invalidDates: ReadonlyArray<unknown> = [
  null,
  true,
  "",
  "tomorrow",
  [],
  [validDate],
  {},
  0,
  -1,
  1.5,
  999_999_999_999,
  10_000_000_000_000,
  1_900_000_000_000.5,
  "1900000000000",
  "2099-02-28",
  "2099-02-28T12:34:56Z",
  "2099-02-28T12:34:56.78Z",
  "2099-02-28T12:34:56.7890Z",
  "2099-02-28T12:34:56.789",
  "2099-02-28T12:34:56.789+00:00",
  "2099-02-28t12:34:56.789z",
  "2099-02-28 12:34:56.789Z",
  " 2099-02-28T12:34:56.789Z",
  "2099-02-29T12:34:56.789Z",
  "2099-02-30T12:34:56.789Z",
  "2099-13-01T12:34:56.789Z",
  "2099-01-00T12:34:56.789Z",
  "2099-01-01T24:00:00.000Z",
  "2099-01-01T12:60:00.000Z",
  "2099-01-01T12:00:60.000Z",
]

/** Extending one membership. */

/** Declares the tests. */
export const extendOneTests = (test: ServerTest): void => {
  describe("extending one membership", () => {
    test("returns the new end date in ISO format, and only documented fields", async ({ call }) => {
      for (const [input, output] of [
        [validDate, validDate],
        [4_102_444_800_000, "2100-01-01T00:00:00.000Z"],
        ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
        [9_999_999_999_999, "2286-11-20T17:46:39.999Z"],
      ]) {
        expectSuccess(await call("PATCH", extendOne, { body: { extend: input } }), {
          total: 1,
          data: { new_end_date: output },
        })
      }
    })

    test("ignores undocumented fields", async ({ call }) => {
      const response = await call("PATCH", extendOne, {
        body: { extend: validDate, total: 7, ok: false },
      })
      expectSuccess(response, { total: 1, data: { new_end_date: validDate } })
    })

    test("accepts percent-encoded ids", async ({ call }) => {
      const path = "/v2/projects/%701/memberships/%31001/extend"
      const response = await call("PATCH", path, { body: { extend: validDate } })
      expectSuccess(response, { total: 1, data: { new_end_date: validDate } })
    })

    test("fails with two errors, one for each format, if `extend` is in neither", async ({
      call,
    }) => {
      for (const input of invalidDates) {
        const response = await call("PATCH", extendOne, { body: { extend: input } })
        expectFailure(response, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
      }
      const response = await call("PATCH", extendOne, { body: {} })
      expectFailure(response, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
    })

    test("fails with one error if `extend` is not in the future", async ({ call }) => {
      const past = [
        1_000_000_000_000,
        Date.now() - 1,
        "0000-01-01T00:00:00.000Z",
        "2001-09-09T01:46:40.000Z",
      ]
      for (const input of past) {
        const response = await call("PATCH", extendOne, { body: { extend: input } })
        const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain("extend must be a future timestamp")
      }
    })

    test("fails if the user has no membership, or the user id is invalid", async ({ call }) => {
      for (const user of [
        "9999",
        "abc",
        "1e3",
        "-1",
        "%31%30x",
        "a%20b",
        "__proto__",
        "constructor",
      ]) {
        const path = `/v2/projects/p1/memberships/${user}/extend`
        const response = await call("PATCH", path, { body: { extend: validDate } })
        expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
      }
    })
  })
}

/** Bulk extensions. */

/** Declares the tests. */
export const extendAllTests = (test: ServerTest): void => {
  describe("extending all memberships", () => {
    test("sets and counts every membership of the project, by default also those that end later", async ({
      call,
      tenure,
    }) => {
      const later = "2200-01-01T00:00:00.000Z"
      await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
      const response = await call("PATCH", extendAll, { body: { extend: validDate } })
      expectSuccess(response, { total: 3, data: { new_end_date: validDate } })
      const all = await tenure.memberships.list({ projectId: "p1" })
      expect(all.map(({ endDate }) => new Date(endDate).toISOString())).toEqual([
        validDate,
        validDate,
        validDate,
      ])
    })

    test.with({ bulk: "neverShorten" })(
      "leaves memberships that end later as they are, with `neverShorten`",
      async ({ call, tenure }) => {
        const later = "2200-01-01T00:00:00.000Z"
        const endDateOf = async () => {
          const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
          return new Date(found.endDate).toISOString()
        }
        await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
        const response = await call("PATCH", extendAll, { body: { extend: validDate } })
        expect(response.body).toMatchObject({ total: 3 })
        expect(await endDateOf()).toBe(later)
        await call("PATCH", extendAll, { body: { extend: validDate, mode: "set" } })
        expect(await endDateOf()).toBe(validDate)
      },
    )

    test("leaves memberships that end later as they are, if the request says so", async ({
      call,
      tenure,
    }) => {
      const later = "2200-01-01T00:00:00.000Z"
      await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
      const ask = (mode: unknown, dry_run: boolean) =>
        call("PATCH", extendAll, { body: { extend: validDate, mode, dry_run } })
      const dry = await ask("never_shorten", true)
      expect(dry.body).toMatchObject({ total: 3, data: { would_shorten: 0 } })
      expectSuccess(await ask("never_shorten", false), {
        total: 3,
        data: { new_end_date: validDate },
      })
      const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(new Date(found.endDate).toISOString()).toBe(later)
      for (const mode of ["neverShorten", "SET", "", null, 1, {}]) {
        expectFailure(await ask(mode, false), 422, "VALIDATION_ERROR")
      }
    })

    test("validates `extend` by the same rules", async ({ call }) => {
      for (const input of invalidDates) {
        const response = await call("PATCH", extendAll, { body: { extend: input } })
        expectFailure(response, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
      }
      const past = await call("PATCH", extendAll, { body: { extend: 1_000_000_000_000 } })
      expectFailure(past, 422, "VALIDATION_ERROR")
    })
  })
}

/** Options in both extensions. */

const member = { projectId: "p1", userId: "1001" }

const endDateOf = async ({ tenure }: Fixture): Promise<string> =>
  new Date((await tenure.memberships.find(member)).endDate).toISOString()

/** Expects a refusal because of a field, and no change. */
const expectRefusal = async (fixture: Fixture, path: string, field: string, value: unknown) => {
  const response = await fixture.call("PATCH", path, {
    body: { extend: validDate, [field]: value },
  })
  const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
  expect(fieldsOf(error)["message"]).toContain(field)
  expect(await endDateOf(fixture)).toBe(initialEndDate)
}

const modeTests = (test: ServerTest): void => {
  const later = "2200-01-01T00:00:00.000Z"
  const keeping = { extend: validDate, mode: "never_shorten" }

  test("with `never_shorten` extends a membership that ends earlier", async (fixture) => {
    expectSuccess(await fixture.call("PATCH", extendOne, { body: keeping }), {
      total: 1,
      data: { new_end_date: validDate },
    })
    expect(await endDateOf(fixture)).toBe(validDate)
  })

  test("with `never_shorten` leaves a membership that ends later, and answers when, once for all repetitions", async (fixture) => {
    const { call, tenure } = fixture
    await tenure.memberships.grant({ ...member, endDate: later })
    const before = await tenure.memberships.history({ projectId: "p1" })
    const data = { new_end_date: later }
    const headers = { "idempotency-key": "left" }
    for (const fields of [{}, { dry_run: true }, { expected_end_date: later }]) {
      const body = { ...keeping, ...fields }
      expectSuccess(await call("PATCH", extendOne, { body }), { total: 1, data })
    }
    const first = await call("PATCH", extendOne, { body: keeping, headers })
    const { message } = expectSuccess(first, { total: 1, data })
    expect(message).toContain("nothing was changed")
    expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    await tenure.memberships.grant({ ...member, endDate: initialEndDate })
    const repeated = await call("PATCH", extendOne, { body: keeping, headers })
    expect(expectSuccess(repeated, { total: 1, data }).message).toBe(message)
    expect(await endDateOf(fixture)).toBe(initialEndDate)
  })

  test("with `never_shorten` expects an end date first, and in a dry run answers as it would", async (fixture) => {
    const { call } = fixture
    const conflict = { ...keeping, expected_end_date: later }
    for (const fields of [{}, { dry_run: true }]) {
      const response = await call("PATCH", extendOne, {
        body: { ...conflict, ...fields },
      })
      expectFailure(response, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
    }
    expectSuccess(await call("PATCH", extendOne, { body: { ...keeping, dry_run: true } }), {
      total: 1,
      data: { new_end_date: validDate },
    })
    expect(await endDateOf(fixture)).toBe(initialEndDate)
  })

  test("with the mode `set` shortens a membership, as without one", async (fixture) => {
    for (const fields of [{ mode: "set" }, {}]) {
      await fixture.tenure.memberships.grant({ ...member, endDate: later })
      await fixture.call("PATCH", extendOne, { body: { extend: validDate, ...fields } })
      expect(await endDateOf(fixture)).toBe(validDate)
    }
    for (const value of ["neverShorten", "", null, true, 1, ["set"]]) {
      await fixture.tenure.memberships.grant({ ...member, endDate: initialEndDate })
      await expectRefusal(fixture, extendOne, "mode", value)
    }
  })
}

const spellingTests = (test: ServerTest): void => {
  const spellings = [
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
  ] as const
  for (const [wrong, right] of spellings) {
    test(`fails if \`${wrong}\` spells a field in another way, and names the right one`, async (fixture) => {
      for (const path of [extendOne, extendAll]) {
        const body = { extend: validDate, [wrong]: true }
        const response = await fixture.call("PATCH", path, { body })
        const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain(wrong)
        expect(fieldsOf(error)["message"]).toContain(right)
        expect(await endDateOf(fixture)).toBe(initialEndDate)
      }
    })
  }

  test("ignores fields that it does not know, whatever they have", async (fixture) => {
    const others = { user_id: "1001", days: 30, plan: "dry", bulk: true, "": 1, Ænd: null }
    const known = JSON.stringify({ extend: validDate, ...others }).slice(0, -1)
    for (const path of [extendOne, extendAll]) {
      const body = `${known},"id":12345678901234567890,"of":{"mode":1,"mode":2},"days":1e400}`
      const response = await fixture.call("PATCH", path, { body })
      expect(response.status).toBe(200)
    }
  })

  test("fails if a field is there twice", async (fixture) => {
    const twice = { extend: [validDate], dry_run: [true, false], reason: ["a"], mode: ["set"] }
    for (const field of Object.keys(twice)) {
      for (const path of [extendOne, extendAll]) {
        const all = Object.entries(twice).flatMap(([name, [value, other = value]]) => {
          const text = `"${name}":${JSON.stringify(value)}`
          return name === field ? [text, `"${name}":${JSON.stringify(other)}`] : [text]
        })
        const response = await fixture.call("PATCH", path, { body: `{${all.join(",")}}` })
        const { error } = expectFailure(response, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toBe(`${field} must not be there twice`)
        expect(await endDateOf(fixture)).toBe(initialEndDate)
      }
    }
  })
}

/** Declares the tests. */
export const conditionTests = (test: ServerTest): void => {
  describe("an extension", () => {
    test("extends a membership that has the expected end date, in either format", async (fixture) => {
      for (const expected_end_date of [initialEndDate, Date.parse(initialEndDate)]) {
        await fixture.tenure.memberships.grant({ ...member, endDate: initialEndDate })
        const body = { extend: validDate, expected_end_date }
        expectSuccess(await fixture.call("PATCH", extendOne, { body }), {
          total: 1,
          data: { new_end_date: validDate },
        })
        expect(await endDateOf(fixture)).toBe(validDate)
      }
    })

    test("fails with the current end date if another one is expected, and changes nothing", async (fixture) => {
      const body = { extend: validDate, expected_end_date: validDate }
      expectFailure(await fixture.call("PATCH", extendOne, { body }), 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      expect(await endDateOf(fixture)).toBe(initialEndDate)
    })

    test("fails if `expected_end_date` is in neither format, or is not for one membership", async (fixture) => {
      for (const value of invalidDates) {
        await expectRefusal(fixture, extendOne, "expected_end_date", value)
      }
      await expectRefusal(fixture, extendAll, "expected_end_date", initialEndDate)
    })

    modeTests(test)
    spellingTests(test)

    test("keeps the reason of an extension", async ({ call, tenure }) => {
      const reasons = ["Kulanz 🎉", "r".repeat(500)]
      const [first, second] = reasons
      await call("PATCH", extendOne, { body: { extend: validDate, reason: first } })
      await call("PATCH", extendAll, { body: { extend: validDate, reason: second } })
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
      expect(rows.map(({ reason }) => reason)).toEqual(reasons.toReversed())
    })

    test("fails if `reason` has no characters, more than 500, or cannot be stored", async (fixture) => {
      for (const value of ["", "r".repeat(501), "a\u0000", "\ud800", null, 7, ["r"], {}]) {
        for (const path of [extendOne, extendAll]) {
          await expectRefusal(fixture, path, "reason", value)
        }
      }
    })

    test("in a dry run answers as it would, and changes nothing", async (fixture) => {
      const { call, tenure } = fixture
      const later = "2200-01-01T00:00:00.000Z"
      await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: later })
      const before = await tenure.memberships.history({ projectId: "p1" })
      const body = { extend: validDate, dry_run: true }
      const data = { new_end_date: validDate }
      const one = expectSuccess(await call("PATCH", extendOne, { body }), {
        total: 1,
        data,
      })
      const all = expectSuccess(await call("PATCH", extendAll, { body }), {
        total: 3,
        data: {
          ...data,
          total: 3,
          would_shorten: 1,
          would_reactivate: 0,
          would_be_capped: 0,
          examples: [
            { user_id: "1001", end_date: initialEndDate, would_end: validDate },
            { user_id: "1002", end_date: initialEndDate, would_end: validDate },
            { user_id: "1003", end_date: later, would_end: validDate },
          ],
        },
      })
      for (const { message } of [one, all]) expect(message).toContain("nothing was changed")
      expect(await endDateOf(fixture)).toBe(initialEndDate)
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    })

    test("in a dry run fails as it would", async ({ call }) => {
      const fail = (path: string, fields: object) =>
        call("PATCH", path, { body: { extend: validDate, ...fields, dry_run: true } })
      const unknown = "/v2/projects/p1/memberships/9999/extend"
      expectFailure(await fail(unknown, {}), 404, "MEMBERSHIP_NOT_FOUND")
      const conflict = await fail(extendOne, { expected_end_date: validDate })
      expectFailure(conflict, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      expectFailure(await fail(extendAll, { extend: 1_000_000_000_000 }), 422, "VALIDATION_ERROR")
    })

    test("changes memberships without a dry run, and fails if `dry_run` is not a boolean", async (fixture) => {
      for (const value of ["true", "", 1, 0, null, [], {}]) {
        await expectRefusal(fixture, extendOne, "dry_run", value)
        await expectRefusal(fixture, extendAll, "dry_run", value)
      }
      const response = await fixture.call("PATCH", extendAll, {
        body: { extend: validDate, dry_run: false },
      })
      expectSuccess(response, {
        total: 3,
        data: { new_end_date: validDate },
      })
      expect(await endDateOf(fixture)).toBe(validDate)
    })
  })
}
