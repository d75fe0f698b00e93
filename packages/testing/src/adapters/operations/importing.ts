/** Importing memberships. */

import { describe, expect } from "vitest"
import {
  exchange,
  expectFailure,
  expectSuccess,
  fieldsOf,
  parseResponses,
} from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  asLines,
  imports,
  initialEndDate,
  keyed,
  webhooks,
} from "../harness.ts"
import { invalidDates, validDate } from "./extending.ts"

/** The longest body, in bytes. */
const limit = 2_097_152

const chunked = { "transfer-encoding": "chunked" }

const line = (user_id: unknown, end_date: unknown = validDate): string =>
  JSON.stringify({ user_id, end_date })

const many = (count: number): string =>
  Array.from({ length: count }, (_, index) => line(String(100_000 + index))).join("\n")

/** Sends lines with an operator's key. */
const send = (
  { operate }: Fixture,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string | ReadonlyArray<string>>> = {},
) => operate("POST", imports, body, { ...asLines, ...headers })

const datesOf = async ({ tenure }: Fixture) =>
  Object.fromEntries(
    (await tenure.memberships.list({ projectId: "p1", limit: 10_000 })).map(
      ({ endDate, userId }) => [userId, new Date(endDate).toISOString()],
    ),
  )

const unchanged = { 1001: initialEndDate, 1002: initialEndDate, 1003: initialEndDate }

const lineTests = (test: ServerTest): void => {
  test("creates memberships and sets end dates, in either format, which may be over", async (fixture) => {
    const past = "2001-01-01T00:00:00.000Z"
    const body = [line("1003"), line("1004", 4_102_444_800_000), line("1005", past)].join("\n")
    expectSuccess(await send(fixture, body), { total: 3, data: null })
    expect(await datesOf(fixture)).toEqual({
      ...unchanged,
      1003: validDate,
      1004: "2100-01-01T00:00:00.000Z",
      1005: past,
    })
    const [row] = await fixture.tenure.memberships.history({ projectId: "p1", limit: 1 })
    expect(row?.action).toBe("imported")
  })

  test("sets metadata, and leaves that of memberships without it", async (fixture) => {
    const metadata = { plan: "gold" }
    for (const more of [{ metadata }, {}]) {
      const body = JSON.stringify({ user_id: "1001", end_date: validDate, ...more })
      expectSuccess(await send(fixture, body), { total: 1, data: null })
      const found = await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(found.metadata).toEqual(metadata)
    }
  })

  test("takes ends of lines of either kind, white space at the end, and a byte order mark", async (fixture) => {
    for (const end of ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n \n"]) {
      const body = `\u{feff}${line("1")}\r\n${line("2")}\n${line("3")}${end}`
      expectSuccess(await send(fixture, body), { total: 3, data: null })
    }
  })

  test("is answered what is wrong with each line, however it is written, and changes nothing", async (fixture) => {
    const bad = [
      "",
      "{",
      "null",
      "[]",
      `${line("7")},`,
      line(7),
      line("a b"),
      line("9".repeat(129)),
      '{"user_id":"7"}',
      `{"__proto__":${line("7")}}`,
      JSON.stringify({ user_id: "7", end_date: validDate, metadata: { plan: 7 } }),
      JSON.stringify({ user_id: "7", end_date: validDate, reason: "x" }),
      line("1"),
      `{"user_id":"6","user_id":"7","end_date":"${validDate}"}`,
      `{"user_id":"7","end_date":4070908800000.00001}`,
      ...invalidDates.map((date) => line("7", date)),
    ]
    const response = await send(fixture, [line("1"), ...bad, line("8")].join("\n"))
    expect(response.status).toBe(422)
    const { errors } = fieldsOf(response.body)
    expect(JSON.stringify(errors)).toContain("metadata.plan must be a text")
    expect(errors).toEqual(
      bad.map((_, index) => ({
        line: index + 2,
        message: expect.stringMatching(/./),
        error_code: "VALIDATION_ERROR",
      })),
    )
    const valid = [line("1"), line("ada@example.com"), line("_.:@+-")]
    const refused = [
      line("", "T"),
      line("é"),
      line("a b"),
      line("."),
      line("9".repeat(129)),
      line("2", "2099-02-28T24:00:00.000Z"),
      line("3", "2099-02-29T00:00:00.000Z"),
    ]
    const found: Array<unknown> = []
    for (const rewrite of [
      (one: string) => one,
      (one: string) => one.replaceAll('":', '": ').replace(',"', ', "'),
      (one: string) => ` ${one}`,
      (one: string) => one.replace("user_id", String.raw`user_\u0069d`),
    ]) {
      const { body } = await send(fixture, [...valid, ...refused].map(rewrite).join("\n"))
      found.push(fieldsOf(body)["errors"])
    }
    const lines = refused.map((_, index) => ({ line: valid.length + index + 1 }))
    expect(found[0]).toMatchObject(lines)
    for (const one of found) expect(one).toEqual(found[0])
    expect(await datesOf(fixture)).toEqual(unchanged)
  })

  test.with({ userIds: "digits" })(
    "is answered the line of a user id that the host does not have",
    async (fixture) => {
      const response = await send(fixture, [line("1"), line("user_2")].join("\n"))
      const message = "user_id must be digits"
      expectFailure(response, 422, ["VALIDATION_ERROR"], { line: 2, message })
    },
  )

  test("is answered one hundred errors at most", async (fixture) => {
    const { body } = await send(fixture, `${line("1")}\n${"{}\n".repeat(9000)}`)
    const { errors } = fieldsOf(body)
    expect(errors).toHaveLength(100)
    expect(errors).toMatchObject({ 0: { line: 2 }, 99: { line: 101 } })
  })

  test("has one line at least, ten thousand at most, and UTF-8 of its own type", async (fixture) => {
    for (const body of ["", "\n", " \r\n "]) {
      expectFailure(await send(fixture, body), 422, ["VALIDATION_ERROR"], { line: 1 })
    }
    const latin = Buffer.from(line("\u00fc"), "latin1")
    expectFailure(await send(fixture, latin), 400, "MALFORMED_REQUEST")
    for (const type of ["application/json", "text/plain", "application/x-ndjsonp"]) {
      const response = await send(fixture, line("1"), { "content-type": type })
      expect(response.status).toBeGreaterThanOrEqual(400)
    }
    const tooMany = await send(fixture, `${many(10_000)}\n${line("1")}`)
    expectFailure(tooMany, 422, ["VALIDATION_ERROR"], { line: 10_001 })
    expect(await datesOf(fixture)).toEqual(unchanged)
    expectSuccess(await send(fixture, many(10_000)), { total: 10_000, data: null })
  })
}

const bodyTests = (test: ServerTest): void => {
  test.with({ maxBodyBytes: 100 })(
    "has 2 MiB at most, whatever the limit of others is, with a Content-Length or chunked",
    async (fixture) => {
      const body = line("1").padEnd(limit, " ")
      for (const headers of [{}, chunked]) {
        expectSuccess(await send(fixture, body, headers), { total: 1, data: null })
        expectFailure(await send(fixture, `${body} `, headers), 413, "PAYLOAD_TOO_LARGE")
        const longer = await fixture.call("POST", webhooks, { body: " ".repeat(101), headers })
        expectFailure(longer, 413, "PAYLOAD_TOO_LARGE")
      }
    },
  )

  test("is refused without a key, a role, a path or a method, whatever is sent", async (fixture) => {
    const { call, operate } = fixture
    const body = " ".repeat(limit)
    for (const headers of [asLines, { ...asLines, ...chunked }]) {
      const stranger = await call("POST", imports, { body, headers, token: "no" })
      expectFailure(stranger, 401, "UNAUTHORIZED")
      expectFailure(await call("POST", imports, { body, headers }), 403, "FORBIDDEN")
      const foreign = await operate("POST", imports.replace("p1", "p2"), body, headers)
      expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
      expectFailure(await operate("PUT", imports, body, headers), 405, "METHOD_NOT_ALLOWED")
    }
  })

  test("that is refused leaves the connection to the requests behind it, or tells that it ends", async (fixture) => {
    const body = " ".repeat(limit)
    const head = (method: string, target: string, ...more: ReadonlyArray<string>): string =>
      [
        `${method} ${target} HTTP/1.1`,
        "Host: localhost",
        `Authorization: Bearer ${fixture.token}`,
        "Content-Type: application/x-ndjson",
        ...more,
        "",
        "",
      ].join("\r\n")
    const raw = await exchange(
      fixture.url,
      head("POST", imports, `Content-Length: ${body.length}`) + body,
      head("POST", imports, "Transfer-Encoding: chunked"),
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      head("GET", webhooks, "Connection: close"),
    )
    const responses = parseResponses(raw)
    const statuses = responses.map(({ status }) => status)
    expect(statuses).toEqual([403, 403, 200].slice(0, Math.max(1, statuses.length)))
    expect(responses.at(-1)?.headers["connection"]).toBe("close")
  })

  test("is made once with an idempotency key", async (fixture) => {
    const [first, second] = [
      await send(fixture, many(2000), keyed("k-1")),
      await send(fixture, many(2000), keyed("k-1")),
    ]
    for (const response of [first, second]) expectSuccess(response, { total: 2000, data: null })
    expect(first.headers["idempotent-replayed"]).toBeUndefined()
    expect(second.headers["idempotent-replayed"]).toBe("true")
    expectFailure(await send(fixture, many(1999), keyed("k-1")), 422, "IDEMPOTENCY_MISMATCH")
  })

  test.with({}, { isBehindParser: true })("works behind a parser of the host", async (fixture) => {
    expectSuccess(await send(fixture, many(2000)), { total: 2000, data: null })
  })
}

export const importingTests = (test: ServerTest): void => {
  describe("an import", () => {
    lineTests(test)
    bodyTests(test)
  })
}
