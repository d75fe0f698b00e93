/** Extending all memberships of a project. */

import { describe, expect, it } from "vitest"
import { expectFailure, expectSuccess } from "../../support/envelope.ts"
import type { Serving } from "../AdapterHarness.ts"
import { invalidDates, validDate as extend } from "./endDates.ts"

const extendAll = "/v2/projects/p1/memberships/extend"

/** Declares the tests. */
export const extendAllTests = (serving: Serving): void => {
  describe("extending all memberships", () => {
    it(
      "sets and counts every membership of the project",
      serving(async ({ call, tenure }) => {
        const response = await call("PATCH", extendAll, { body: { extend } })
        expectSuccess(response, "PATCH", extendAll, { total: 3, data: { new_end_date: extend } })
        const all = await tenure.memberships.list({ projectId: "p1" })
        expect(all.map(({ endDate }) => new Date(endDate).toISOString())).toEqual([
          extend,
          extend,
          extend,
        ])
      }),
    )

    it(
      "sets memberships that end later too, by default",
      serving(async ({ call, tenure }) => {
        const later = "2200-01-01T00:00:00.000Z"
        await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
        const response = await call("PATCH", extendAll, { body: { extend } })
        expect(response.body).toMatchObject({ total: 3 })
        const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
        expect(new Date(found.endDate).toISOString()).toBe(extend)
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
          const response = await call("PATCH", extendAll, { body: { extend } })
          expect(response.body).toMatchObject({ total: 3 })
          expect(await endDateOf()).toBe(later)
          await call("PATCH", extendAll, { body: { extend, mode: "set" } })
          expect(await endDateOf()).toBe(extend)
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
          call("PATCH", extendAll, { body: { extend, mode, dry_run } })
        const dry = await ask("never_shorten", true)
        expect(dry.body).toMatchObject({ total: 3, data: { would_shorten: 0 } })
        expectSuccess(await ask("never_shorten", false), "PATCH", extendAll, {
          total: 3,
          data: { new_end_date: extend },
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
        const response = await call("PATCH", path, { body: { extend }, token: otherToken })
        expectSuccess(response, "PATCH", path, { total: 0, data: { new_end_date: extend } })
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
