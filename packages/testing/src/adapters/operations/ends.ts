/** How many memberships end on each day. */

import { describe, expect } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, instant } from "../../support/http.ts"
import { type ServerTest, initialEndDate } from "../harness.ts"

const path = "/v2/projects/p1/ends"
const members = "/v2/projects/p1/memberships"

const counts = {
  at: instant,
  total: 3,
  active: expect.any(Number),
  expired: expect.any(Number),
  ends_today: expect.any(Number),
  ends_in_7_days: expect.any(Number),
}

/** Declares the tests. */
export const endsTests = (test: ServerTest): void => {
  describe("the ends by day", () => {
    test("counts the days around today, and what was extended on them", async ({
      call,
      tenure,
    }) => {
      const soon = new Date(Date.now() + 3 * 86_400_000)
      const past = new Date(Date.now() - 3 * 86_400_000)
      await tenure.memberships.extend({ projectId: "p1", userId: "1001", endDate: soon })
      await tenure.memberships.grant({ projectId: "p1", userId: "1002", endDate: past })
      await tenure.memberships.extend({
        projectId: "p1",
        userId: "1003",
        endDate: "2099-01-01T00:00:00.000Z",
      })
      const { body } = await call("GET", path)
      const data = fieldsOf(fieldsOf(body)["data"])
      expect(data).toEqual({
        ...counts,
        active: 2,
        expired: 1,
        ends_today: 0,
        ends_in_7_days: 1,
        days: expect.any(Array),
      })
      const days: unknown = data["days"]
      if (!Array.isArray(days)) return expect.fail()
      expect(days).toHaveLength(60)
      const dayOf = (date: Date) => date.toISOString().slice(0, 10)
      expect(days).toContainEqual({ day: dayOf(soon), ends: 1, extended: 0 })
      expect(days).toContainEqual(expect.objectContaining({ day: dayOf(past), ends: 1 }))
      // The members were granted before.
      expect(days).toContainEqual({ day: dayOf(new Date()), ends: 0, extended: 6 })
    })

    test("counts the days that are asked for, and as if all memberships had been extended", async ({
      call,
      tenure,
    }) => {
      const ends = async (query: string) => {
        const response = await call("GET", `${path}?${query}`)
        const data = { ...counts, days: expect.any(Array) }
        const { days } = fieldsOf(expectSuccess(response, { data })["data"])
        return days
      }
      const day = (of: string, count: number) => ({ day: of, ends: count, extended: 0 })
      const range = "from=2098-12-31&to=2099-01-02"
      await tenure.memberships.extendAll({ projectId: "p1", endDate: "2099-01-01T00:00:00.000Z" })
      await tenure.memberships.extend({
        projectId: "p1",
        userId: "1003",
        endDate: "2099-01-02T23:59:59.999Z",
      })
      expect(await ends(range)).toEqual([
        day("2098-12-31", 0),
        day("2099-01-01", 2),
        day("2099-01-02", 1),
      ])
      expect(await ends(`${range}&extend_by=P1D`)).toEqual([
        day("2098-12-31", 0),
        day("2099-01-01", 0),
        day("2099-01-02", 2),
      ])
      const date = "2099-01-02T12:00:00.000Z"
      for (const extend of [date, Date.parse(date)]) {
        const query = `${range}&extend=${extend}&mode=`
        expect(await ends(`${query}set`)).toContainEqual(day("2099-01-02", 3))
        expect(await ends(`${query}never_shorten`)).toContainEqual(day("2099-01-02", 3))
      }
      const earlier = "2098-12-31T12:00:00.000Z"
      expect(await ends(`${range}&extend=${earlier}&mode=set`)).toContainEqual(day("2098-12-31", 3))
      expect(await ends(`${range}&extend=${earlier}&mode=never_shorten`)).toContainEqual(
        day("2098-12-31", 0),
      )
      expect(await ends(range)).toContainEqual(day("2099-01-01", 2))
      expect(await ends("from=0000-01-01&to=0000-01-01")).toEqual(
        [day("0000-01-01", 0)].map((one) => ({ ...one, extended: expect.anything() })),
      )
      expect(await ends("to=9999-12-31")).toHaveLength(60)
      expect(await ends("from=9999-12-31")).toHaveLength(1)
    })

    test("says what is wrong with a query", async ({ call, otherToken }) => {
      for (const [query, field] of [
        ["from=2027-02-29", "from"],
        ["from=2027-01-01T00:00:00.000Z", "from"],
        ["from=", "from"],
        ["from=-0001-01-01", "from"],
        ["to=10000-01-01", "to"],
        ["to=%00", "to"],
        ["from=2027-01-02&to=2027-01-01", "to"],
        ["from=2027-01-01&to=2028-02-05", "to"],
        ["from=0000-01-01&to=9999-12-31", "to"],
        ["from=2027-01-01&from=2027-01-01", "from"],
        ["extend=tomorrow", "extend"],
        ["extend=1", "extend"],
        ["mode=set", "mode"],
        ["extend=2099-01-01T00:00:00.000Z&mode=neverShorten", "mode"],
        ["extend=2099-01-01T00:00:00.000Z&extend_by=P1D", "extend"],
        ["extend_by=P1D&mode=set", "mode"],
        ["extend_by=P1M", "extend_by"],
        ["extend_by=P9999999D", "extend_by"],
        ["extend_by=-P1D", "extend_by"],
        ["verbose=true", "verbose"],
      ]) {
        const response = await call("GET", `${path}?${query}`)
        const failure = expectFailure(response, 422, "VALIDATION_ERROR")
        const { message } = fieldsOf(failure["error"])
        expect(message).toContain(field)
      }
      const past = await call("GET", `${path}?extend=2001-01-01T00:00:00.000Z`)
      expect(past.status).toBe(422)
      expectFailure(await call("GET", path, { token: otherToken }), 404, "PROJECT_NOT_FOUND")
    })
  })
  describe("the members by prefix", () => {
    test("lists members whose ids start with a prefix, also by state and page by page", async ({
      call,
      tenure,
    }) => {
      for (const userId of ["ada@example.com", "adam", "1100", "a_b", "axb"]) {
        await tenure.memberships.grant({ projectId: "p1", userId, endDate: initialEndDate })
      }
      await tenure.memberships.grant({ projectId: "p1", userId: "1002", endDate: new Date(0) })
      const ids = async (query: string) => {
        const { body } = await call("GET", `${members}?${query}`)
        const data: unknown = fieldsOf(body)["data"]
        return Array.isArray(data) ? data.map((one) => fieldsOf(one)["user_id"]) : body
      }
      expect(await ids("prefix=ada")).toEqual(["ada@example.com", "adam"])
      expect(await ids("prefix=10")).toEqual(["1001", "1002", "1003"])
      expect(await ids("prefix=10&state=expired")).toEqual(["1002"])
      expect(await ids("prefix=10&limit=1&after=1001")).toEqual(["1002"])
      expect(await ids("prefix=a_")).toEqual(["a_b"])
      expect(await ids("prefix=nobody")).toEqual([])
    })

    test("refuses a prefix that no user id has, and one beside other lists", async ({ call }) => {
      for (const query of [
        "prefix=",
        "prefix=%20",
        "prefix=%00",
        "prefix=a%0Ab",
        "prefix=%F0%9F%98%80",
        `prefix=${"a".repeat(129)}`,
        "prefix=a&prefix=b",
        "prefix=10&user_ids=1001",
        "prefix=10&ending_before=2099-01-01T00:00:00.000Z",
      ]) {
        expectFailure(await call("GET", `${members}?${query}`), 422, "VALIDATION_ERROR")
      }
    })
  })
}
