/** Dry runs that show the webhooks which a request would send. */

import { describe, expect } from "vitest"
import { expectFailure, expectSuccess, fieldsOf, instant, dataOf } from "../../support/http.ts"
import { type Fixture, type ServerTest, extendOne, extendAll } from "../harness.ts"
import { validDate } from "./extending.ts"

const importing = "/v2/projects/p1/memberships/import"

const line = `{"user_id":"1001","end_date":"${validDate}"}`

/** Registers a receiver of all events, and one of another type. Returns the id of the first. */
const register = async ({ tenure }: Fixture): Promise<string> => {
  const url = "https://receiver.example/hook"
  const { id } = await tenure.webhooks.create({ projectId: "p1", url })
  await tenure.webhooks.create({ projectId: "p1", url, eventTypes: ["membership.granted"] })
  return id
}

const importLines = ({ call, operatorToken }: Fixture, query: string, body = line) =>
  call("POST", `${importing}?${query}`, {
    token: operatorToken,
    body,
    headers: { "content-type": "application/x-ndjson" },
  })

const preview = (id: string, type: string, data: object) => ({
  total: 1,
  by_type: { [type]: 1 },
  first: [
    {
      webhook_id: id,
      url: "https://receiver.example/hook",
      type,
      body: {
        type,
        timestamp: instant,
        data: {
          project_id: "p1",
          request_id: expect.any(String),
          sequence: expect.any(Number),
          ...data,
        },
      },
    },
  ],
})

const endDates = async ({ tenure }: Fixture) =>
  (await tenure.memberships.list({ projectId: "p1" })).map(({ endDate }) => endDate)

/** Declares the tests. */
export const dryRunEventTests = (test: ServerTest): void => {
  describe("a dry run with events", () => {
    test("shows the webhooks that an extension, a bulk extension, its undoing and an import would send", async (fixture) => {
      const { call, operatorToken, tenure } = fixture
      const id = await register(fixture)
      const before = await endDates(fixture)
      const dry = { dry_run: true, events: true }
      const changed = { new_end_date: validDate, reason: "invoice 117" }
      const one = await call("PATCH", extendOne, {
        body: { extend: validDate, reason: "invoice 117", ...dry },
      })
      expectSuccess(one, {
        total: 1,
        data: {
          new_end_date: validDate,
          events: preview(id, "membership.extended", { user_id: "1001", ...changed }),
        },
      })
      const all = await call("PATCH", extendAll, { body: { extend_by: "P3D", ...dry } })
      const data = dataOf(all)
      expect(data["events"]).toEqual(
        preview(id, "memberships.extended", { mode: "extend_by", extend_by: "P3D" }),
      )
      const counts = { would_grant: 0, would_shorten: 0, would_stay: 0 }
      expectSuccess(await importLines(fixture, "dry_run=true&events=true"), {
        total: 1,
        data: { ...counts, events: preview(id, "memberships.imported", { total: 1 }) },
      })
      expectSuccess(await importLines(fixture, "dry_run=true"), {
        total: 1,
        data: counts,
      })
      expect(await endDates(fixture)).toEqual(before)
      await tenure.memberships.extendAll({ projectId: "p1", endDate: validDate })
      const [made] = await tenure.memberships.bulkExtensions({ projectId: "p1" })
      const undo = `/v2/projects/p1/bulk-extensions/${made?.id}/undo`
      const undone = await call("POST", undo, { token: operatorToken, body: dry })
      expect(dataOf(undone)["events"]).toEqual(
        preview(id, "memberships.extension_undone", { bulk_extension_id: made?.id }),
      )
    })

    test("shows none where nothing would be changed, or nobody listens", async (fixture) => {
      const { call } = fixture
      const body = { extend: "2026-12-31T00:00:00.000Z", mode: "never_shorten" }
      const events = { total: 0, by_type: {}, first: [] }
      const shown = async () => {
        const response = await call("PATCH", extendOne, {
          body: { ...body, dry_run: true, events: true },
        })
        return dataOf(response)["events"]
      }
      expect(await shown()).toEqual(events)
      await register(fixture)
      expect(await shown()).toEqual(events)
    })

    test("is refused without a dry run, and if it is no boolean", async (fixture) => {
      const { call } = fixture
      const before = await endDates(fixture)
      for (const path of [extendOne, extendAll]) {
        for (const fields of [
          { events: true },
          { events: true, dry_run: false },
          { events: "true", dry_run: true },
          { events: null, dry_run: true },
          { Events: true, dry_run: true },
        ]) {
          const response = await call("PATCH", path, { body: { extend: validDate, ...fields } })
          const failure = expectFailure(response, 422, "VALIDATION_ERROR")
          expect(fieldsOf(failure["error"])["message"]).toMatch(/events/i)
        }
      }
      for (const query of [
        "events=true",
        "dry_run=false&events=true",
        "dry_run=yes",
        "dry_run=true&events=1",
        "dry_run=true&dry_run=true",
        "dryRun=true",
      ]) {
        expectFailure(await importLines(fixture, query), 422, "VALIDATION_ERROR")
      }
      const bad = await importLines(fixture, "dry_run=true", `${line}\n{"user_id":"a b"}`)
      expect(bad.status).toBe(422)
      expect(await endDates(fixture)).toEqual(before)
    })
  })
}
