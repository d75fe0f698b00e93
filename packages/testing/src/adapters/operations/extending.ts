/** End dates in requests. */

import { describe, expect, it } from "vitest"
import { manyKindsOfUser } from "../../support/fixtures.ts"
import { expectFailure, expectSuccess, fieldsOf } from "../../support/http.ts"
import { type Fixture, type Serving, initialEndDate } from "../harness.ts"

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

const extendOne = "/v2/projects/p1/memberships/1001/extend"

const successTests = (serving: Serving): void => {
  it(
    "returns the new end date in ISO format, and only documented fields",
    serving(async ({ call }) => {
      for (const [input, output] of [
        [validDate, validDate],
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
      await call("PATCH", extendOne, { body: { extend: validDate } })
      const all = await tenure.memberships.list({ projectId: "p1" })
      expect(all.map(({ endDate }) => new Date(endDate).toISOString())).toEqual([
        validDate,
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
      for (const date of [validDate, validDate, "2098-01-01T00:00:00.000Z"]) {
        const response = await call("PATCH", extendOne, { body: { extend: date } })
        expect(response.body).toMatchObject({ code: 200, data: { new_end_date: date } })
      }
    }),
  )

  it(
    "ignores undocumented fields",
    serving(async ({ call }) => {
      const response = await call("PATCH", extendOne, {
        body: { extend: validDate, total: 7, ok: false },
      })
      expectSuccess(response, "PATCH", extendOne, { total: 1, data: { new_end_date: validDate } })
    }),
  )

  it(
    "accepts percent-encoded ids",
    serving(async ({ call }) => {
      const path = "/v2/projects/%701/memberships/%31001/extend"
      const response = await call("PATCH", path, { body: { extend: validDate } })
      expectSuccess(response, "PATCH", path, { total: 1, data: { new_end_date: validDate } })
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

/** Bulk extensions. */

const extendAll = "/v2/projects/p1/memberships/extend"

/** Declares the tests. */
export const extendAllTests = (serving: Serving): void => {
  describe("extending all memberships", () => {
    it(
      "sets and counts every membership of the project",
      serving(async ({ call, tenure }) => {
        const response = await call("PATCH", extendAll, { body: { extend: validDate } })
        expectSuccess(response, "PATCH", extendAll, { total: 3, data: { new_end_date: validDate } })
        const all = await tenure.memberships.list({ projectId: "p1" })
        expect(all.map(({ endDate }) => new Date(endDate).toISOString())).toEqual([
          validDate,
          validDate,
          validDate,
        ])
      }),
    )

    it(
      "sets memberships that end later too, by default",
      serving(async ({ call, tenure }) => {
        const later = "2200-01-01T00:00:00.000Z"
        await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
        const response = await call("PATCH", extendAll, { body: { extend: validDate } })
        expect(response.body).toMatchObject({ total: 3 })
        const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
        expect(new Date(found.endDate).toISOString()).toBe(validDate)
      }),
    )

    it(
      "leaves memberships that end later as they are, with `neverShorten`",
      serving(
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
        { bulk: "neverShorten" },
      ),
    )

    it(
      "leaves memberships that end later as they are, if the request says so",
      serving(async ({ call, tenure }) => {
        const later = "2200-01-01T00:00:00.000Z"
        await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
        const ask = (mode: unknown, dry_run: boolean) =>
          call("PATCH", extendAll, { body: { extend: validDate, mode, dry_run } })
        const dry = await ask("never_shorten", true)
        expect(dry.body).toMatchObject({ total: 3, data: { would_shorten: 0 } })
        expectSuccess(await ask("never_shorten", false), "PATCH", extendAll, {
          total: 3,
          data: { new_end_date: validDate },
        })
        const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
        expect(new Date(found.endDate).toISOString()).toBe(later)
        for (const mode of ["neverShorten", "SET", "", null, 1, {}]) {
          expectFailure(await ask(mode, false), "PATCH", extendAll, 422, "VALIDATION_ERROR")
        }
      }),
    )

    it(
      "returns total 0 for a project without members",
      serving(async ({ call, otherToken }) => {
        const path = "/v2/projects/p2/memberships/extend"
        const response = await call("PATCH", path, {
          body: { extend: validDate },
          token: otherToken,
        })
        expectSuccess(response, "PATCH", path, { total: 0, data: { new_end_date: validDate } })
      }),
    )

    it(
      "validates `extend` by the same rules",
      serving(async ({ call }) => {
        for (const input of invalidDates) {
          const response = await call("PATCH", extendAll, { body: { extend: input } })
          expectFailure(response, "PATCH", extendAll, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
        }
        const past = await call("PATCH", extendAll, { body: { extend: 1_000_000_000_000 } })
        expectFailure(past, "PATCH", extendAll, 422, "VALIDATION_ERROR")
      }),
    )
  })
}

/** Granting and ending memberships. */

const existing = "/v2/projects/p1/memberships/1001"
const absent = "/v2/projects/p1/memberships/2001"

const encoded = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`

/** Issues an operator's key for `p1`. */
const operatorOf = async ({ tenure }: Fixture): Promise<string> =>
  (await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })).token

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
          expectSuccess(response, "PUT", path, {
            data: { user_id, end_date, state, metadata: {} },
          })
        }
      }
      const member = { projectId: "p1", userId: "2001" }
      const { endDate } = await fixture.tenure.memberships.find(member)
      expect(endDate).toBe(Date.parse("2001-01-01T00:00:00.000Z"))
    }),
  )

  it(
    "has user ids of any kind in its path, as all operations on one membership",
    serving(async (fixture) => {
      const { token } = await fixture.tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
      for (const user_id of manyKindsOfUser) {
        // The words of the paths for all memberships are user ids if their first character is encoded.
        const path = `/v2/projects/p1/memberships/${user_id.replace(/^[ei]/, encoded)}`
        const data = { user_id, end_date: validDate, state: "active", metadata: {} }
        const put = await fixture.call("PUT", path, { token, body: { end_date: validDate } })
        expectSuccess(put, "PUT", path, { data })
        const get = await fixture.call("GET", path, { token })
        expectSuccess(get, "GET", path, { data })
        const extension = await fixture.call("PATCH", `${path}/extend`, {
          token,
          body: { extend: validDate },
        })
        expect(extension.body).toMatchObject({ total: 1, data: { new_end_date: validDate } })
        const history = await fixture.call("GET", `${path}/history`, { token })
        expect(history.body).toMatchObject({
          data: [{ action: "extended" }, { action: "granted" }],
        })
        const end = await fixture.call("DELETE", path, { token })
        expectSuccess(end, "DELETE", path, { data: null })
      }
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
        ...[...invalidMetadata, { plan: null }].map((metadata) => ({
          end_date: validDate,
          metadata,
        })),
      ]
      for (const body of bodies) {
        const response = await fixture.call("PUT", absent, { token, body })
        expectFailure(response, "PUT", absent, 422, "VALIDATION_ERROR")
      }
      for (const user of ["a%20b", "a,b", "%C3%A9", "9".repeat(129)]) {
        const path = `/v2/projects/p1/memberships/${user}`
        const response = await fixture.call("PUT", path, { token, body: { end_date: validDate } })
        const { error } = expectFailure(response, "PUT", path, 422, "VALIDATION_ERROR")
        expect(fieldsOf(error)["message"]).toContain("user_id")
      }
      expect(await fixture.tenure.memberships.list({ projectId: "p1" })).toHaveLength(3)
    }),
  )
}

const updateTests = (serving: Serving): void => {
  it(
    "changes texts, removes those that are null, and leaves all others and the end date",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      const body = { end_date: validDate, metadata: { plan: "gold", seat: "12A" } }
      const granted = await fixture.call("PUT", existing, { token, body })
      const before = { user_id: "1001", end_date: validDate, state: "active" }
      expectSuccess(granted, "PUT", existing, { data: { ...before, metadata: body.metadata } })
      const patch = { metadata: { seat: null, order: "117", plan: "silver" }, reason: "moved" }
      const updated = await fixture.call("PATCH", existing, { token, body: patch })
      const metadata = { order: "117", plan: "silver" }
      const data = { ...before, metadata }
      expectSuccess(updated, "PATCH", existing, { data })
      const again = { token, body: { end_date: validDate } }
      expectSuccess(await fixture.call("PUT", existing, again), "PUT", existing, { data })
      expectSuccess(await fixture.call("GET", existing, { token }), "GET", existing, { data })
      const list = await fixture.call("GET", "/v2/projects/p1/memberships?limit=1", { token })
      expect(list.body).toMatchObject({ data: [data] })
      const rows = await fixture.tenure.memberships.history({ projectId: "p1", limit: 2 })
      expect(rows[1]).toMatchObject({ action: "updated", reason: "moved", userId: "1001" })
    }),
  )

  it(
    "names the text that is wrong, or the place of its name",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      for (const [metadata, problem] of [
        [{ seat: "12A", plan: 7 }, "metadata.plan must be a text of 1 to 255 characters"],
        [{ plan: "gold", "a b": "x" }, "see entry 2"],
      ] as const) {
        const bodies = { PUT: { end_date: validDate, metadata }, PATCH: { metadata } }
        for (const [method, body] of Object.entries(bodies)) {
          const response = await fixture.call(method, existing, { token, body })
          const { error } = expectFailure(response, method, existing, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toContain(problem)
        }
      }
    }),
  )

  it(
    "fails if the metadata is invalid or too much, or there is no membership, and changes nothing",
    serving(async (fixture) => {
      const token = await operatorOf(fixture)
      const full = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`n${n}`, "x"]))
      expect(
        (await fixture.call("PATCH", existing, { token, body: { metadata: full } })).status,
      ).toBe(200)
      const bodies = [
        {},
        { metadata: full, end_date: validDate },
        { metadata: { one: "more" } },
        ...invalidMetadata.map((metadata) => ({ metadata })),
      ]
      for (const body of bodies) {
        const response = await fixture.call("PATCH", existing, { token, body })
        expectFailure(response, "PATCH", existing, 422, "VALIDATION_ERROR")
      }
      expect(
        await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" }),
      ).toMatchObject({ metadata: full })
      for (const path of [absent, "/v2/projects/p1/memberships/a%20b"]) {
        const response = await fixture.call("PATCH", path, { token, body: { metadata: {} } })
        expectFailure(response, "PATCH", path, 404, "MEMBERSHIP_NOT_FOUND")
      }
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
      // Covers members, former members and strangers.
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
        ["/v2/projects/p1/memberships/a%20b", "MEMBERSHIP_NOT_FOUND"],
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
  describe("updating a membership", () => {
    updateTests(serving)
  })
  describe("ending a membership", () => {
    endTests(serving)
  })
  describe("erasing a person", () => {
    eraseTests(serving)
  })
}

/** Options in both extensions. */

const conditionsExtendOne = "/v2/projects/p1/memberships/1001/extend"
const conditionsExtendAll = "/v2/projects/p1/memberships/extend"

const conditionsMember = { projectId: "p1", userId: "1001" }

const conditionsEndDateOf = async ({ tenure }: Fixture): Promise<string> =>
  new Date((await tenure.memberships.find(conditionsMember)).endDate).toISOString()

/** Expects a refusal because of a field, and no change. */
const expectRefusal = async (fixture: Fixture, path: string, field: string, value: unknown) => {
  const response = await fixture.call("PATCH", path, {
    body: { extend: validDate, [field]: value },
  })
  const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
  expect(fieldsOf(error)["message"]).toContain(field)
  expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
}

const expectationTests = (serving: Serving): void => {
  it(
    "extends a membership that has the expected end date, in either format",
    serving(async (fixture) => {
      for (const expected_end_date of [initialEndDate, Date.parse(initialEndDate)]) {
        await fixture.tenure.memberships.grant({ ...conditionsMember, endDate: initialEndDate })
        const body = { extend: validDate, expected_end_date }
        const response = await fixture.call("PATCH", conditionsExtendOne, { body })
        expectSuccess(response, "PATCH", conditionsExtendOne, {
          total: 1,
          data: { new_end_date: validDate },
        })
        expect(await conditionsEndDateOf(fixture)).toBe(validDate)
      }
    }),
  )

  it(
    "fails with the current end date if another one is expected, and changes nothing",
    serving(async (fixture) => {
      const body = { extend: validDate, expected_end_date: validDate }
      const response = await fixture.call("PATCH", conditionsExtendOne, { body })
      expectFailure(response, "PATCH", conditionsExtendOne, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "fails if `expected_end_date` is in neither format, or is not for one membership",
    serving(async (fixture) => {
      for (const value of invalidDates) {
        await expectRefusal(fixture, conditionsExtendOne, "expected_end_date", value)
      }
      await expectRefusal(fixture, conditionsExtendAll, "expected_end_date", initialEndDate)
    }),
  )
}

const modeTests = (serving: Serving): void => {
  const later = "2200-01-01T00:00:00.000Z"
  const keeping = { extend: validDate, mode: "never_shorten" }

  it(
    "with `never_shorten` extends a membership that ends earlier",
    serving(async (fixture) => {
      const response = await fixture.call("PATCH", conditionsExtendOne, { body: keeping })
      expectSuccess(response, "PATCH", conditionsExtendOne, {
        total: 1,
        data: { new_end_date: validDate },
      })
      expect(await conditionsEndDateOf(fixture)).toBe(validDate)
    }),
  )

  it(
    "with `never_shorten` leaves a membership that ends later, and answers when, once for all repetitions",
    serving(async (fixture) => {
      const { call, tenure } = fixture
      await tenure.memberships.grant({ ...conditionsMember, endDate: later })
      const before = await tenure.memberships.history({ projectId: "p1" })
      const data = { new_end_date: later }
      const headers = { "idempotency-key": "left" }
      for (const fields of [{}, { dry_run: true }, { expected_end_date: later }]) {
        const body = { ...keeping, ...fields }
        const response = await call("PATCH", conditionsExtendOne, { body })
        expectSuccess(response, "PATCH", conditionsExtendOne, { total: 1, data })
      }
      const first = await call("PATCH", conditionsExtendOne, { body: keeping, headers })
      const { message } = expectSuccess(first, "PATCH", conditionsExtendOne, { total: 1, data })
      expect(message).toContain("nothing was changed")
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
      await tenure.memberships.grant({ ...conditionsMember, endDate: initialEndDate })
      const repeated = await call("PATCH", conditionsExtendOne, { body: keeping, headers })
      expect(
        expectSuccess(repeated, "PATCH", conditionsExtendOne, { total: 1, data }).message,
      ).toBe(message)
      expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "with `never_shorten` expects an end date first, and in a dry run answers as it would",
    serving(async (fixture) => {
      const { call } = fixture
      const conflict = { ...keeping, expected_end_date: later }
      for (const fields of [{}, { dry_run: true }]) {
        const response = await call("PATCH", conditionsExtendOne, {
          body: { ...conflict, ...fields },
        })
        expectFailure(response, "PATCH", conditionsExtendOne, 409, "END_DATE_CONFLICT", {
          current_end_date: initialEndDate,
        })
      }
      const dry = await call("PATCH", conditionsExtendOne, { body: { ...keeping, dry_run: true } })
      expectSuccess(dry, "PATCH", conditionsExtendOne, {
        total: 1,
        data: { new_end_date: validDate },
      })
      expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
    }),
  )

  it(
    "with the mode `set` shortens a membership, as without one",
    serving(async (fixture) => {
      for (const fields of [{ mode: "set" }, {}]) {
        await fixture.tenure.memberships.grant({ ...conditionsMember, endDate: later })
        await fixture.call("PATCH", conditionsExtendOne, { body: { extend: validDate, ...fields } })
        expect(await conditionsEndDateOf(fixture)).toBe(validDate)
      }
      for (const value of ["neverShorten", "", null, true, 1, ["set"]]) {
        await fixture.tenure.memberships.grant({ ...conditionsMember, endDate: initialEndDate })
        await expectRefusal(fixture, conditionsExtendOne, "mode", value)
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
        for (const path of [conditionsExtendOne, conditionsExtendAll]) {
          const body = { extend: validDate, [wrong]: true }
          const response = await fixture.call("PATCH", path, { body })
          const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toContain(wrong)
          expect(fieldsOf(error)["message"]).toContain(right)
          expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
        }
      })(),
  )

  it(
    "ignores fields that it does not know, whatever they have",
    serving(async (fixture) => {
      const others = { user_id: "1001", days: 30, plan: "dry", bulk: true, "": 1, Ænd: null }
      const known = JSON.stringify({ extend: validDate, ...others }).slice(0, -1)
      for (const path of [conditionsExtendOne, conditionsExtendAll]) {
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
        for (const path of [conditionsExtendOne, conditionsExtendAll]) {
          const twice = {
            extend: [validDate],
            dry_run: [true, false],
            reason: ["a"],
            mode: ["set"],
          }
          const all = Object.entries(twice).flatMap(([name, [value, other = value]]) => {
            const text = `"${name}":${JSON.stringify(value)}`
            return name === field ? [text, `"${name}":${JSON.stringify(other)}`] : [text]
          })
          const response = await fixture.call("PATCH", path, { body: `{${all.join(",")}}` })
          const { error } = expectFailure(response, "PATCH", path, 422, "VALIDATION_ERROR")
          expect(fieldsOf(error)["message"]).toBe(`${field} must not be there twice`)
          expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
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
      await call("PATCH", conditionsExtendOne, { body: { extend: validDate, reason: first } })
      await call("PATCH", conditionsExtendAll, { body: { extend: validDate, reason: second } })
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
      expect(rows.map(({ reason }) => reason)).toEqual(reasons.toReversed())
    }),
  )

  it(
    "fails if `reason` has no characters, more than 500, or cannot be stored",
    serving(async (fixture) => {
      for (const value of ["", "r".repeat(501), "a\u0000", "\ud800", null, 7, ["r"], {}]) {
        for (const path of [conditionsExtendOne, conditionsExtendAll]) {
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
      const body = { extend: validDate, dry_run: true }
      const data = { new_end_date: validDate }
      const one = expectSuccess(
        await call("PATCH", conditionsExtendOne, { body }),
        "PATCH",
        conditionsExtendOne,
        {
          total: 1,
          data,
        },
      )
      const all = expectSuccess(
        await call("PATCH", conditionsExtendAll, { body }),
        "PATCH",
        conditionsExtendAll,
        {
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
        },
      )
      for (const { message } of [one, all]) expect(message).toContain("nothing was changed")
      expect(await conditionsEndDateOf(fixture)).toBe(initialEndDate)
      expect(await tenure.memberships.history({ projectId: "p1" })).toEqual(before)
    }),
  )

  it(
    "in a dry run fails as it would",
    serving(async ({ call }) => {
      const fail = (path: string, fields: object) =>
        call("PATCH", path, { body: { extend: validDate, ...fields, dry_run: true } })
      const unknown = "/v2/projects/p1/memberships/9999/extend"
      expectFailure(await fail(unknown, {}), "PATCH", unknown, 404, "MEMBERSHIP_NOT_FOUND")
      const conflict = await fail(conditionsExtendOne, { expected_end_date: validDate })
      expectFailure(conflict, "PATCH", conditionsExtendOne, 409, "END_DATE_CONFLICT", {
        current_end_date: initialEndDate,
      })
      const past = await fail(conditionsExtendAll, { extend: 1_000_000_000_000 })
      expectFailure(past, "PATCH", conditionsExtendAll, 422, "VALIDATION_ERROR")
    }),
  )

  it(
    "changes memberships without a dry run, and fails if `dry_run` is not a boolean",
    serving(async (fixture) => {
      for (const value of ["true", "", 1, 0, null, [], {}]) {
        await expectRefusal(fixture, conditionsExtendOne, "dry_run", value)
        await expectRefusal(fixture, conditionsExtendAll, "dry_run", value)
      }
      const response = await fixture.call("PATCH", conditionsExtendAll, {
        body: { extend: validDate, dry_run: false },
      })
      expectSuccess(response, "PATCH", conditionsExtendAll, {
        total: 3,
        data: { new_end_date: validDate },
      })
      expect(await conditionsEndDateOf(fixture)).toBe(validDate)
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
