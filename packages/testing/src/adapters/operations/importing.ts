/** Importing memberships. */

import { describe, expect } from "vitest"
import {
  exchange,
  expectFailure,
  expectSuccess,
  fieldsOf,
  parseResponses,
} from "../../support/http.ts"
import type { Fixture, ServerTest } from "../harness.ts"
import { invalidDates, validDate } from "./extending.ts"

const path = "/v2/projects/p1/memberships/import"

/** The longest body, in bytes. */
const limit = 2_097_152

const line = (user_id: unknown, end_date: unknown = validDate): string =>
  JSON.stringify({ user_id, end_date })

/** Issues an operator's key for `p1`, and returns a function to import with it. */
const importer = async ({ call, tenure }: Fixture) => {
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
  return (
    body: string | Uint8Array,
    headers: Readonly<Record<string, string | ReadonlyArray<string>>> = {},
  ) =>
    call("POST", path, {
      token,
      body,
      headers: { "content-type": "application/x-ndjson", ...headers },
    })
}

const usersOf = async ({ tenure }: Fixture): Promise<ReadonlyArray<string>> =>
  (await tenure.memberships.list({ projectId: "p1", limit: 10_000 })).map(({ userId }) => userId)

const many = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => line(String(100_000 + index)))

/** Requests answered before their bodies are read. */
const refusalTests = (test: ServerTest): void => {
  test("is refused without a key, a role, a path or a method, whatever is sent", async (fixture) => {
    const { tenure } = fixture
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "operator" })
    const body = " ".repeat(limit)
    const type = { "content-type": "application/x-ndjson" }
    const foreign = path.replace("p1", "p2")
    for (const headers of [type, { ...type, "transfer-encoding": "chunked" }]) {
      const call = { body, headers, token }
      expectFailure(await fixture.call("POST", path, { ...call, token: "no" }), 401, "UNAUTHORIZED")
      const client = await fixture.call("POST", path, { ...call, token: fixture.token })
      expectFailure(client, 403, "FORBIDDEN")
      expectFailure(await fixture.call("POST", foreign, call), 404, "PROJECT_NOT_FOUND")
      expectFailure(await fixture.call("PUT", path, call), 405, "METHOD_NOT_ALLOWED")
    }
  })

  test("leaves the connection to the requests behind it, or tells that it ends", async (fixture) => {
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
    const webhooks = "/v2/projects/p1/integrations/webhooks"
    const raw = await exchange(
      fixture.url,
      head("POST", path, `Content-Length: ${body.length}`) + body,
      head("POST", path, "Transfer-Encoding: chunked"),
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      head("GET", webhooks, "Connection: close"),
    )
    const responses = parseResponses(raw)
    const statuses = responses.map(({ status }) => status)
    expect(statuses).toEqual([403, 403, 200].slice(0, Math.max(1, statuses.length)))
    expect(responses.at(-1)?.headers["connection"]).toBe("close")
  })
}

/** Declares the tests. */
export const importingTests = (test: ServerTest): void => {
  describe("an import", () => {
    test("creates memberships and sets end dates, in either format, which may be over", async (fixture) => {
      const send = await importer(fixture)
      const dates = [validDate, 4_102_444_800_000, "2001-01-01T00:00:00.000Z"]
      const body = dates.map((date, index) => line(String(1003 + index), date)).join("\n")
      expectSuccess(await send(body), { total: 3, data: null })
      for (const [index, date] of dates.entries()) {
        const member = { projectId: "p1", userId: String(1003 + index) }
        const { endDate } = await fixture.tenure.memberships.find(member)
        expect(endDate).toBe(new Date(date).getTime())
      }
      expect(await usersOf(fixture)).toEqual(["1001", "1002", "1003", "1004", "1005"])
      const [row] = await fixture.tenure.memberships.history({ projectId: "p1", limit: 1 })
      expect(row?.action).toBe("imported")
    })

    test("sets metadata, and leaves that of memberships without it", async (fixture) => {
      const send = await importer(fixture)
      const member = { user_id: "1001", end_date: validDate }
      const metadata = { plan: "gold" }
      expectSuccess(await send(JSON.stringify({ ...member, metadata })), {
        total: 1,
        data: null,
      })
      expectSuccess(await send(JSON.stringify(member)), { total: 1, data: null })
      const found = await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(found.metadata).toEqual(metadata)
    })

    test("takes ends of lines of either kind, and white space at the end", async (fixture) => {
      const send = await importer(fixture)
      for (const end of ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n \n"]) {
        const body = `${line("1")}\r\n${line("2")}\n${line("3")}${end}`
        expectSuccess(await send(body), { total: 3, data: null })
      }
      const mark = new TextEncoder().encode(`\u{feff}${line("1")}`)
      expectSuccess(await send(mark), { total: 1, data: null })
    })

    test("is answered what is wrong with each line, and changes nothing", async (fixture) => {
      const send = await importer(fixture)
      const bad = [
        "",
        "{",
        "7",
        "null",
        "[]",
        `${line("7")},`,
        line(7),
        line("a b"),
        line(".."),
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
      const response = await send([line("1"), ...bad, line("8")].join("\n"))
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
      expect(await usersOf(fixture)).toEqual(["1001", "1002", "1003"])
    })

    test("reads lines alike, however their JSON is written", async (fixture) => {
      const send = await importer(fixture)
      const users = ["1", "ada@example.com", "_.:@+-", "9".repeat(129), ".", "", "\u{e9}", "a b"]
      const dates = [validDate, "T", "2099-02-29T00:00:00.000Z", "2099-02-28T24:00:00.000Z"]
      const lines = users.flatMap((user) => dates.map((date) => line(user, date)))
      const spellings = [
        lines,
        lines.map((one) => one.replaceAll('":', '": ').replace(',"', ', "')),
        lines.map((one) => ` ${one}`),
        lines.map((one) => one.replace("user_id", String.raw`user_\u0069d`)),
      ]
      const [first, ...others] = await Promise.all(
        spellings.map(
          async (spelling) => fieldsOf((await send(spelling.join("\n"))).body)["errors"],
        ),
      )
      expect(first).toHaveLength(lines.length - 3)
      for (const errors of others) expect(errors).toEqual(first)
    })

    test.with({ userIds: "digits" })(
      "is answered the line of a user id that the host does not have",
      async (fixture) => {
        const send = await importer(fixture)
        const response = await send([line("1"), line("user_2")].join("\n"))
        const message = "user_id must be digits"
        expectFailure(response, 422, ["VALIDATION_ERROR"], { line: 2, message })
      },
    )

    test("is answered one hundred errors at most", async (fixture) => {
      const send = await importer(fixture)
      const { body } = await send(`${line("1")}\n${"{}\n".repeat(9000)}`)
      const { errors } = fieldsOf(body)
      expect(errors).toHaveLength(100)
      expect(errors).toMatchObject({ 0: { line: 2 }, 99: { line: 101 } })
    })

    test("has one line at least, and UTF-8 of its own type", async (fixture) => {
      const send = await importer(fixture)
      for (const body of ["", "\n", " \r\n "]) {
        expectFailure(await send(body), 422, ["VALIDATION_ERROR"], { line: 1 })
      }
      const latin = Buffer.from(line("\u00fc"), "latin1")
      expectFailure(await send(latin), 400, "MALFORMED_REQUEST")
      for (const type of ["application/json", "text/plain", "application/x-ndjsonp"]) {
        const response = await send(line("1"), { "content-type": type })
        expect(response.status).toBeGreaterThanOrEqual(400)
        expect(await usersOf(fixture)).toHaveLength(3)
      }
    })

    test("has ten thousand lines at most", async (fixture) => {
      const send = await importer(fixture)
      const lines = many(10_000)
      const tooMany = await send([...lines, line("1")].join("\n"))
      expectFailure(tooMany, 422, ["VALIDATION_ERROR"], { line: 10_001 })
      expectSuccess(await send(lines.join("\n")), { total: 10_000, data: null })
    })

    for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
      test.with({ maxBodyBytes: 100 })(
        `has 2 MiB at most, whatever the limit of others is: ${JSON.stringify(headers)}`,
        async (fixture) => {
          const send = await importer(fixture)
          const body = line("1").padEnd(limit, " ")
          expectSuccess(await send(body, headers), { total: 1, data: null })
          expectFailure(await send(`${body} `, headers), 413, "PAYLOAD_TOO_LARGE")
          const other = "/v2/projects/p1/integrations/webhooks"
          const longer = await fixture.call("POST", other, { body: " ".repeat(101), headers })
          expectFailure(longer, 413, "PAYLOAD_TOO_LARGE")
        },
      )
    }

    refusalTests(test)

    test("is made once with an idempotency key", async (fixture) => {
      const send = await importer(fixture)
      const headers = { "idempotency-key": "k-1" }
      const first = await send(many(2000).join("\n"), headers)
      const second = await send(many(2000).join("\n"), headers)
      for (const response of [first, second]) {
        expectSuccess(response, { total: 2000, data: null })
      }
      expect(first.headers["idempotent-replayed"]).toBeUndefined()
      expect(second.headers["idempotent-replayed"]).toBe("true")
      expectFailure(await send(many(1999).join("\n"), headers), 422, "IDEMPOTENCY_MISMATCH")
    })

    test.with({}, { isBehindParser: true })(
      "works behind a parser of the host",
      async (fixture) => {
        const send = await importer(fixture)
        expectSuccess(await send(many(2000).join("\n")), { total: 2000, data: null })
      },
    )
  })
}
