/** Extending the memberships in a segment. */

import { describe, expect } from "vitest"
import { dataOf, expectInvalid, expectSuccess, itemsOf } from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  endDatesOf,
  events,
  extend,
  initialEndDate,
  keyed,
  members,
  project,
} from "../harness.ts"

const some = `${members}/extend-some`
const past = "2001-01-01T00:00:00.000Z"
const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
const active = { where: { state: "active" } }

const grant = ({ tenure }: Fixture, userId: string, endDate: string | null) =>
  tenure.memberships.grant({ projectId: "p1", userId, endDate })

const label = ({ tenure }: Fixture, userId: string, plan: string) =>
  tenure.memberships.update({ projectId: "p1", userId, metadata: { plan, seat: "1" } })

const idsWith = async ({ call }: Fixture, endDate: string): Promise<ReadonlyArray<unknown>> =>
  itemsOf(await call("GET", members))
    .filter(({ end_date }) => end_date === endDate)
    .map(({ user_id }) => user_id)

export const extendingSomeTests = (test: ServerTest): void => {
  describe("an extension of a segment", () => {
    test("sets the dates of those that match all fields, each with its own event", async (fixture) => {
      const { operate, tenure } = fixture
      await label(fixture, "1001", "gold")
      await label(fixture, "1002", "gold")
      await grant(fixture, "1002", past)
      await label(fixture, "1003", "silver")
      const where = { metadata: { plan: "gold" }, state: "active" }
      const body = { where, extend, reason: "thanks" }
      expectSuccess(await operate("POST", some, body), { total: 1, data: { total: 1, next: null } })
      expect(await idsWith(fixture, extend)).toEqual(["1001"])
      const [row] = await tenure.memberships.history({ projectId: "p1", userId: "1001" })
      expect(row).toMatchObject({ action: "extended", reason: "thanks" })
      const last = itemsOf(await operate("GET", `${events}?after=start`)).at(-1)
      expect(last).toMatchObject({
        type: "membership.extended",
        data: { user_id: "1001", new_end_date: extend },
      })
    })

    test("selects by ends before and after an instant, and by user ids", async (fixture) => {
      const { operate } = fixture
      await grant(fixture, "1002", tomorrow)
      for (const [where, ids] of [
        [{ ending_before: initialEndDate }, ["1002"]],
        [{ ending_after: tomorrow }, ["1001", "1003"]],
        [{ ending_after: tomorrow, ending_before: initialEndDate }, []],
        [{ user_ids: ["1003", "nobody"] }, ["1003"]],
      ] as const) {
        const preview = await operate("POST", some, { where, extend, dry_run: true })
        const { examples } = dataOf(preview)
        expect(examples).toMatchObject(ids.map((user_id) => ({ user_id, would_end: extend })))
      }
      expect(await idsWith(fixture, extend)).toEqual([])
    })

    test("takes 1,000 in one step, in the order of ids, and goes on", async (fixture) => {
      const { operate, tenure } = fixture
      const ids = Array.from({ length: 1500 }, (_, index) => `m${10_000 + index}`)
      const memberships = ids.map((userId) => ({ userId, endDate: initialEndDate }))
      await tenure.memberships.import({ projectId: "p1", memberships })
      const where = { ending_after: past }
      const preview = dataOf(await operate("POST", some, { where, extend, dry_run: true }))
      expect(preview).toMatchObject({ total: 1503, next: null, would_shorten: 0 })
      const first = { total: 1000, next: ids[996] }
      const body = { where, extend }
      expectSuccess(await operate("POST", some, body), { total: 1000, data: first })
      const rest = { total: 503, next: null }
      const after = first.next
      expectSuccess(await operate("POST", some, { ...body, after }), { total: 503, data: rest })
      expect(new Set(await endDatesOf(fixture))).toEqual(new Set([extend]))
    })

    test("adds a duration once with a key, and leaves those for life and those that stay over", async (fixture) => {
      const { operate } = fixture
      await grant(fixture, "1002", null)
      await grant(fixture, "1003", past)
      const body = { where: { user_ids: ["1001", "1002", "1003"] }, extend_by: "P1M", from: "end" }
      expectInvalid(await operate("POST", some, body), "Idempotency-Key")
      const headers = keyed()
      for (const _ of [1, 2]) {
        const extended = await operate("POST", some, body, headers)
        expectSuccess(extended, { total: 1, data: { total: 1, next: null } })
      }
      expect(await endDatesOf(fixture)).toEqual(
        expect.arrayContaining(["2097-02-01T00:00:00.000Z", past]),
      )
    })

    test("repeats its response with a key, even if nobody matches any more", async (fixture) => {
      const { operate } = fixture
      const body = { where: { ending_before: "2098-01-01T00:00:00.000Z" }, extend }
      const headers = keyed()
      for (const _ of [1, 2]) {
        const extended = await operate("POST", some, body, headers)
        expectSuccess(extended, { total: 3, data: { total: 3, next: null } })
      }
    })

    test("sets a last day in the project's time zone, and with a mode leaves later dates", async (fixture) => {
      const { operate } = fixture
      await operate("PATCH", project, { time_zone: "Etc/GMT-3" })
      await grant(fixture, "1002", tomorrow)
      const body = { ...active, through: "2090-01-31", mode: "never_shorten" }
      expect(dataOf(await operate("POST", some, body))).toEqual({ total: 1, next: null })
      expect(await idsWith(fixture, "2090-01-31T21:00:00.000Z")).toEqual(["1002"])
      const shortening = { ...active, through: "2090-01-31", dry_run: true }
      expect(dataOf(await operate("POST", some, shortening))).toMatchObject({ would_shorten: 2 })
    })

    test("needs a segment, a right one, and a future date, and changes nothing otherwise", async (fixture) => {
      const { operate } = fixture
      const before = await endDatesOf(fixture)
      for (const where of [
        undefined,
        null,
        {},
        [],
        "active",
        { plan: "gold" },
        { state: "over" },
        { metadata: { plan: 1 } },
        { ending_after: "2027-01-31" },
        { user_ids: "1001" },
        { user_ids: [1001] },
      ]) {
        expectInvalid(await operate("POST", some, { where, extend }), "where")
      }
      for (const further of [
        { create: true },
        { expected_end_date: extend },
        { from: "now" },
        { after: "" },
        { unknown: 1 },
        { through: "2090-01-31" },
      ]) {
        expectInvalid(await operate("POST", some, { ...active, extend, ...further }))
      }
      expectInvalid(await operate("POST", some, { ...active, extend: past }), "future")
      expectInvalid(await operate("POST", some, { ...active, through: "2001-01-01" }), "future")
      expect(await endDatesOf(fixture)).toEqual(before)
    })
  })
}
