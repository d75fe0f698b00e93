/** Extending by durations, and undoing bulk extensions. */

import { describe, expect } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, instant } from "../../support/http.ts"
import { type Fixture, type ServerTest, initialEndDate, extendOne, extendAll } from "../harness.ts"
import { validDate } from "./extending.ts"

const list = "/v2/projects/p1/bulk-extensions"

const withKey = (key: string) => ({ headers: { "idempotency-key": key } })

/** The end dates of all members of `p1`. */
const datesOf = async ({ tenure }: Pick<Fixture, "tenure">): Promise<ReadonlyArray<string>> =>
  (await tenure.memberships.list({ projectId: "p1" })).map(({ endDate }) =>
    new Date(endDate).toISOString(),
  )

const unchanged = [initialEndDate, initialEndDate, initialEndDate]

/** Bodies that both endpoints refuse. */
const refused: ReadonlyArray<object> = [
  { extend_by: "P1D", extend: validDate },
  { extend_by: "P1D", mode: "set" },
  { extend_by: "P1D", dry_run: 1 },
  { extendBy: "P1D", extend: validDate },
  ...[
    "",
    "P",
    "PT",
    "P0D",
    "PT0S",
    "-P1D",
    "P-1D",
    "P1.5D",
    "PT0.5S",
    "P1DT",
    "1 day",
    "p1d",
    "P999999999999D",
    3,
    null,
    [],
    {},
    true,
  ].map((extend_by) => ({ extend_by })),
]

/** Makes a bulk extension. Returns its id. */
const made = async ({ call }: Pick<Fixture, "call">, extend_by: string): Promise<string> => {
  await call("PATCH", extendAll, {
    body: { extend_by, reason: "outage" },
    ...withKey(crypto.randomUUID()),
  })
  const [newest] = listedBy(await call("GET", list))
  return String(fieldsOf(newest ?? {})["id"])
}

const listedBy = ({ body }: Awaited<ReturnType<Fixture["call"]>>): ReadonlyArray<object> => {
  const { data } = fieldsOf(body)
  return Array.isArray(data) ? data : []
}

/** Declares the tests. */
export const durationTests = (test: ServerTest): void => {
  describe("extending a membership by a duration", () => {
    test("ends a membership later, in UTC, by the calendar", async ({ call, tenure }) => {
      for (const [from, by, to] of [
        ["2098-01-31T10:00:00.000Z", "P1M", "2098-02-28T10:00:00.000Z"],
        ["2096-01-31T10:00:00.000Z", "P1M", "2096-02-29T10:00:00.000Z"],
        ["2098-01-31T10:00:00.000Z", "P2W", "2098-02-14T10:00:00.000Z"],
        ["2098-01-31T10:00:00.000Z", "PT36H", "2098-02-01T22:00:00.000Z"],
      ] as const) {
        await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: from })
        const response = await call("PATCH", extendOne, {
          body: { extend_by: by },
          ...withKey(`${from} ${by}`.replaceAll(" ", "_")),
        })
        expectSuccess(response, {
          total: 1,
          data: { new_end_date: to, end_date: to },
        })
      }
    })

    test("counts from the end, from now, or from the later of both", async ({ call, tenure }) => {
      const member = { projectId: "p1", userId: "1001" }
      const grant = (endDate: string) => tenure.memberships.grant({ ...member, endDate })
      const extend = async (key: string, from?: string) => {
        const body = { extend_by: "P1D", ...(from !== undefined && { from }) }
        const response = await call("PATCH", extendOne, { body, ...withKey(key) })
        return String(fieldsOf(fieldsOf(response.body)["data"] ?? {})["end_date"])
      }
      const tomorrow = (end: string) => Math.abs(Date.parse(end) - Date.now() - 86_400_000)
      await grant("2001-01-01T00:00:00.000Z")
      expect(tomorrow(await extend("later"))).toBeLessThan(60_000)
      await grant("2098-01-01T00:00:00.000Z")
      expect(await extend("end", "end")).toBe("2098-01-02T00:00:00.000Z")
      expect(tomorrow(await extend("now", "now"))).toBeLessThan(60_000)
      await grant("2001-01-01T00:00:00.000Z")
      const past = await call("PATCH", extendOne, {
        body: { extend_by: "P1D", from: "end" },
        ...withKey("past"),
      })
      expectFailure(past, 422, "VALIDATION_ERROR")
    })

    test("is made once with an idempotency key, and by whoever expects the date", async ({
      call,
    }) => {
      const body = { extend_by: "P1D" }
      const end = { new_end_date: "2027-01-02T00:00:00.000Z", end_date: "2027-01-02T00:00:00.000Z" }
      for (const replayed of [undefined, "true"]) {
        const response = await call("PATCH", extendOne, { body, ...withKey("once") })
        expectSuccess(response, { total: 1, data: end })
        expect(response.headers["idempotent-replayed"]).toBe(replayed)
      }
      const expecting = { ...body, expected_end_date: end.end_date }
      expect((await call("PATCH", extendOne, { body: expecting })).status).toBe(200)
      expectFailure(await call("PATCH", extendOne, { body: expecting }), 409, "END_DATE_CONFLICT", {
        current_end_date: "2027-01-03T00:00:00.000Z",
      })
    })

    test("changes nothing in a dry run", async (fixture) => {
      const body = { extend_by: "P1D", dry_run: true }
      const end = "2027-01-02T00:00:00.000Z"
      expectSuccess(await fixture.call("PATCH", extendOne, { body }), {
        total: 1,
        data: { new_end_date: end, end_date: end },
      })
      expect(await datesOf(fixture)).toEqual(unchanged)
    })
  })
  describe("extending by a duration", () => {
    test("is refused with a clear error, which changes nothing", async (fixture) => {
      const { call } = fixture
      const ofOne = [
        { extend_by: "P1D", from: "yesterday" },
        { extend_by: "P9000Y" },
        { extend_by: "P1D", expected_end_date: "soon" },
      ]
      const ofAll = [
        { extend_by: "P1M" },
        { extend_by: "P1Y" },
        { extend_by: "P3654D" },
        { extend_by: "P1D", from: "now" },
        { extend_by: "P1D", expected_end_date: validDate },
      ]
      for (const [path, bodies] of [
        [extendOne, [...refused, ...ofOne]],
        [extendAll, [...refused, ...ofAll]],
      ] as const) {
        for (const [index, body] of bodies.entries()) {
          const response = await call("PATCH", path, { body, ...withKey(`refused-${index}`) })
          expect([path, body, response.status]).toEqual([path, body, 422])
          expectFailure(response, 422, "VALIDATION_ERROR")
        }
        const unrepeatable = await call("PATCH", path, { body: { extend_by: "P1D" } })
        expectFailure(unrepeatable, 422, "VALIDATION_ERROR")
        expect(JSON.stringify(unrepeatable.body)).toContain("Idempotency-Key")
      }
      expect(await datesOf(fixture)).toEqual(unchanged)
    })
  })
  describe("extending all memberships by a duration", () => {
    test("ends every membership later, once with an idempotency key, after a preview", async (fixture) => {
      const { call, tenure } = fixture
      const ended = new Date(Date.now() - 3_600_000).toISOString()
      await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: ended })
      const body = { extend_by: "P3D" }
      const later = new Date(Date.parse(ended) + 3 * 86_400_000).toISOString()
      const end = "2027-01-04T00:00:00.000Z"
      expectSuccess(await call("PATCH", extendAll, { body: { ...body, dry_run: true } }), {
        total: 3,
        data: {
          extend_by: "P3D",
          total: 3,
          would_shorten: 0,
          would_reactivate: 1,
          would_be_capped: 0,
          examples: [
            { user_id: "1001", end_date: initialEndDate, would_end: end },
            { user_id: "1002", end_date: initialEndDate, would_end: end },
            { user_id: "1003", end_date: ended, would_end: later },
          ],
        },
      })
      expect(await datesOf(fixture)).toEqual([initialEndDate, initialEndDate, ended])
      for (let count = 0; count < 2; count++) {
        expectSuccess(await call("PATCH", extendAll, { body, ...withKey("all") }), {
          total: 3,
          data: { extend_by: "P3D", total: 3 },
        })
      }
      expect(await datesOf(fixture)).toEqual([end, end, later])
    })

    test("is listed, newest first, and undone by an operator, once", async (fixture) => {
      const { call, operatorToken: token, otherToken } = fixture
      const first = await made(fixture, "P1D")
      const second = await made(fixture, "P2D")
      expectSuccess(await call("GET", `${list}?limit=1`), {
        total: 1,
        next: second,
        data: [
          {
            id: second,
            mode: "extend_by",
            end_date: null,
            extend_by: "P2D",
            at: instant,
            reason: "outage",
            key_id: expect.any(String),
            request_id: expect.any(String),
            total: 3,
            undone_at: null,
            undone_by: null,
          },
        ],
      })
      const rest = listedBy(await call("GET", `${list}?after=${second}`))
      expect(rest).toMatchObject([{ id: first }])
      const undo = `${list}/${first}/undo`
      expectFailure(await call("POST", undo), 403, "FORBIDDEN")
      const preview = await call("POST", undo, { token, body: { dry_run: true } })
      expect(fieldsOf(preview.body)["data"]).toMatchObject({ total: 3, would_shorten: 3 })
      const undone = await call("POST", undo, { token, body: { reason: "a mistake" } })
      expectSuccess(undone, { total: 3, data: { total: 3 } })
      const end = "2027-01-03T00:00:00.000Z"
      expect(await datesOf(fixture)).toEqual([end, end, end])
      expectFailure(await call("POST", undo, { token }), 409, "BULK_EXTENSION_UNDONE")
      const history = await call("GET", "/v2/projects/p1/memberships/1001/history", { token })
      expect(listedBy(history)).toMatchObject([
        { action: "bulk_undone", extend_by: null, reason: "a mistake" },
        { action: "bulk_extended_by", extend_by: "P2D", to: null },
        { action: "bulk_extended_by", extend_by: "P1D" },
        { action: "granted", extend_by: null },
      ])
      const elsewhere = `/v2/projects/p2/bulk-extensions/${second}/undo`
      const admin = await fixture.tenure.apiKeys.issue({ projects: "all", role: "admin" })
      const others = await call("POST", elsewhere, { token: admin.token })
      expectFailure(others, 404, "BULK_EXTENSION_NOT_FOUND")
      expectFailure(await call("GET", list, { token: otherToken }), 404, "PROJECT_NOT_FOUND")
      for (const id of ["nothing", crypto.randomUUID()]) {
        const path = `${list}/${id}/undo`
        expectFailure(await call("POST", path, { token }), 404, "BULK_EXTENSION_NOT_FOUND")
      }
      const strange = `${list}/${second}/undo`
      const response = await call("POST", strange, { token, body: { dryRun: true } })
      expectFailure(response, 422, "VALIDATION_ERROR")
    })

    test.with({ undoPeriod: "1 millis" })(
      "cannot be undone after the period that the server sets",
      async (fixture) => {
        const { call, operatorToken: token } = fixture
        const undo = `${list}/${await made(fixture, "P1D")}/undo`
        await new Promise((resolve) => void setTimeout(resolve, 5))
        expectFailure(await call("POST", undo, { token }), 409, "BULK_EXTENSION_SETTLED")
      },
    )
  })
}
