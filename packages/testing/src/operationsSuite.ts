/** The five operations, as clients see them. */

import { describe, expect, it } from "vitest"
import { initialEndDate, type Serving } from "./AdapterHarness.ts"
import { expectFailure, expectSuccess, fieldsOf, webhookOf } from "./envelope.ts"

const extendOne = "/v2/projects/p1/memberships/1001/extend"
const extendAll = "/v2/projects/p1/memberships/extend"
const webhooks = "/v2/projects/p1/integrations/webhooks"
const extend = "2099-02-28T12:34:56.789Z"
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** What is no end date in either format. */
const noEndDates: ReadonlyArray<unknown> = [
  null,
  true,
  "",
  "tomorrow",
  [],
  [extend],
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

/** Declares the suite. */
export const operationsSuite = (serving: Serving): void => {
  describe("extending one membership", () => {
    it(
      "answers with the end date as ISO text, and nothing that is not documented",
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
      "changes that membership and no other",
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
      "can be repeated, shorten, and revive an expired membership",
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
      "ignores fields that are not documented",
      serving(async ({ call }) => {
        const response = await call("PATCH", extendOne, { body: { extend, total: 7, ok: false } })
        expectSuccess(response, "PATCH", extendOne, { total: 1, data: { new_end_date: extend } })
      }),
    )

    it(
      "is refused with two errors, one for each format, where `extend` is in neither",
      serving(async ({ call }) => {
        for (const input of noEndDates) {
          const response = await call("PATCH", extendOne, { body: { extend: input } })
          expectFailure(response, "PATCH", extendOne, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
        }
        const response = await call("PATCH", extendOne, { body: {} })
        expectFailure(response, "PATCH", extendOne, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
      }),
    )

    it(
      "is refused with one error where `extend` is not in the future",
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
      "finds no membership of a user who has none, or whose id is none",
      serving(async ({ call }) => {
        for (const user of ["9999", "abc", "1e3", "-1", "%31%30x", "__proto__", "constructor"]) {
          const path = `/v2/projects/p1/memberships/${user}/extend`
          const response = await call("PATCH", path, { body: { extend } })
          expectFailure(response, "PATCH", path, 404, "MEMBERSHIP_NOT_FOUND")
        }
      }),
    )

    it(
      "reads ids that are percent-encoded",
      serving(async ({ call }) => {
        const path = "/v2/projects/%701/memberships/%31001/extend"
        const response = await call("PATCH", path, { body: { extend } })
        expectSuccess(response, "PATCH", path, { total: 1, data: { new_end_date: extend } })
      }),
    )
  })

  describe("extending all memberships", () => {
    it(
      "sets all of the project, and counts them",
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
      "sets those that end later too, unless that is turned off",
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
      "leaves those that end later with `neverShorten`, and counts the others",
      serving(
        async ({ call, tenure }) => {
          const later = "2200-01-01T00:00:00.000Z"
          await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: later })
          const response = await call("PATCH", extendAll, { body: { extend } })
          expect(response.body).toMatchObject({ total: 2 })
          const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
          expect(new Date(found.endDate).toISOString()).toBe(later)
        },
        { bulk: "neverShorten" },
      ),
    )

    it(
      "counts 0 in a project without members",
      serving(async ({ call, otherToken }) => {
        const path = "/v2/projects/p2/memberships/extend"
        const response = await call("PATCH", path, { body: { extend }, token: otherToken })
        expectSuccess(response, "PATCH", path, { total: 0, data: { new_end_date: extend } })
      }),
    )

    it(
      "has the same rules for `extend`",
      serving(async ({ call }) => {
        for (const input of noEndDates) {
          const response = await call("PATCH", extendAll, { body: { extend: input } })
          expectFailure(response, "PATCH", extendAll, 422, ["VALIDATION_ERROR", "VALIDATION_ERROR"])
        }
        const past = await call("PATCH", extendAll, { body: { extend: 1_000_000_000_000 } })
        expectFailure(past, "PATCH", extendAll, 422, "VALIDATION_ERROR")
      }),
    )
  })

  describe("webhooks", () => {
    it(
      "are created with an id and a secret of their own, and no total",
      serving(async ({ call }) => {
        const url = "https://receiver.example/hooks?a=b"
        const first = expectSuccess(
          await call("POST", webhooks, { body: { url } }),
          "POST",
          webhooks,
          {
            data: {
              url,
              id: expect.stringMatching(uuid),
              secret: expect.stringMatching(/^whsec_/),
            },
          },
        )
        const second = await call("POST", webhooks, { body: { url } })
        expect(second.body).not.toMatchObject({ data: first.data })
        expect(Object.keys(fieldsOf(first["data"]))).toEqual(["url", "id", "secret"])
      }),
    )

    it(
      "are listed with their secrets, oldest first",
      serving(async ({ call }) => {
        const empty = await call("GET", webhooks)
        expectSuccess(empty, "GET", webhooks, { total: 0, data: [] })
        const created = []
        for (const name of ["a", "b", "c"]) {
          const url = `https://receiver.example/${name}`
          const response = await call("POST", webhooks, { body: { url } })
          created.push(fieldsOf(response.body)["data"])
        }
        const listed = await call("GET", webhooks)
        expectSuccess(listed, "GET", webhooks, { total: 3, data: created })
      }),
    )

    it(
      "are deleted, with data null",
      serving(async ({ call }) => {
        const body = { url: "https://receiver.example/" }
        const created = await call("POST", webhooks, { body })
        const path = `${webhooks}/${webhookOf(created).id}`
        expectSuccess(await call("DELETE", path), "DELETE", path, { data: null })
        expectSuccess(await call("GET", webhooks), "GET", webhooks, { total: 0, data: [] })
        expectFailure(await call("DELETE", path), "DELETE", path, 404, "WEBHOOK_NOT_FOUND")
      }),
    )

    it(
      "are deleted by an id in capitals too, and not found by what is no id",
      serving(async ({ call }) => {
        const body = { url: "https://receiver.example/" }
        const created = await call("POST", webhooks, { body })
        for (const id of ["1", "null", "%00", "__proto__", crypto.randomUUID()]) {
          const path = `${webhooks}/${id}`
          expectFailure(await call("DELETE", path), "DELETE", path, 404, "WEBHOOK_NOT_FOUND")
        }
        const path = `${webhooks}/${webhookOf(created).id.toUpperCase()}`
        expectSuccess(await call("DELETE", path), "DELETE", path, { data: null })
      }),
    )

    it(
      "of another project cannot be deleted through this one",
      serving(async ({ call, tenure }) => {
        const url = "https://receiver.example/"
        const { id } = await tenure.webhooks.create({ projectId: "p2", url })
        const path = `${webhooks}/${id}`
        expectFailure(await call("DELETE", path), "DELETE", path, 404, "WEBHOOK_NOT_FOUND")
        expect(await tenure.webhooks.list("p2")).toHaveLength(1)
      }),
    )

    it(
      "need a URL that is one, of the web, without credentials, and not into the inside",
      serving(async ({ call }) => {
        const urls: ReadonlyArray<unknown> = [
          undefined,
          null,
          7,
          "",
          {},
          ["https://receiver.example/"],
          "receiver.example",
          "/hooks",
          "//receiver.example/hooks",
          "ftp://receiver.example/",
          "javascript:alert(1)",
          "https:receiver.example",
          "https:///receiver.example",
          "https://receiver\u{200b}.example/",
          "file:///etc/passwd",
          "https://",
          "https://user@receiver.example/",
          "https://user:pass@receiver.example/",
          "https://receiver.example/a b",
          "https://receiver.example/\n",
          `https://receiver.example/${"a".repeat(2048)}`,
          "http://127.0.0.1/",
          "http://127.1:8080/",
          "http://2130706433/",
          "http://0x7f000001/",
          "http://[::1]/",
          "http://[::ffff:10.0.0.1]/",
          "http://10.0.0.1/",
          "http://169.254.169.254/latest/meta-data/",
          "http://localhost:3000/",
          "http://0.0.0.0/",
        ]
        for (const url of urls) {
          const response = await call("POST", webhooks, { body: { url } })
          expectFailure(response, "POST", webhooks, 422, "VALIDATION_ERROR")
        }
        expectSuccess(await call("GET", webhooks), "GET", webhooks, { total: 0, data: [] })
      }),
    )

    it(
      "may have any URL of the web of up to 2,048 characters",
      serving(async ({ call }) => {
        const urls = [
          "http://receiver.example",
          "https://receiver.example:8443/a/b?c=d#e",
          "https://8.8.8.8/",
          "https://[2606:4700::1111]/",
          "https://例え.jp/フック",
          `https://receiver.example/${"a".repeat(2048 - 25)}`,
        ]
        for (const url of urls) {
          const response = await call("POST", webhooks, { body: { url } })
          expect(response.body).toMatchObject({ code: 200, data: { url } })
        }
      }),
    )

    it(
      "may have to be https",
      serving(
        async ({ call }) => {
          const http = await call("POST", webhooks, { body: { url: "http://receiver.example/" } })
          expectFailure(http, "POST", webhooks, 422, "VALIDATION_ERROR")
          const https = await call("POST", webhooks, { body: { url: "https://receiver.example/" } })
          expect(https.status).toBe(200)
        },
        { webhooks: { requireHttps: true } },
      ),
    )

    it(
      "are limited in number, to 50 a project by default",
      serving(async ({ call }) => {
        const body = { url: "https://receiver.example/" }
        for (let count = 1; count <= 50; count++) {
          expect((await call("POST", webhooks, { body })).status).toBe(200)
        }
        const response = await call("POST", webhooks, { body })
        expectFailure(response, "POST", webhooks, 422, "VALIDATION_ERROR")
      }),
    )
  })
}
