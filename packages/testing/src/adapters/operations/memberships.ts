/** Granting, updating, ending, erasing and importing memberships, and reading them. */

import { describe, expect } from "vitest"
import { manyKindsOfUser } from "../../support/fixtures.ts"
import {
  dataOf,
  exchange,
  expectFailure,
  expectInvalid,
  expectSuccess,
  fieldsOf,
  instant,
  itemsOf,
  parseResponses,
} from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  asLines,
  endDatesOf,
  extend,
  extendAll,
  imports,
  initialEndDate,
  keyed,
  members,
  project,
  webhooks,
} from "../harness.ts"
import { impossibleDates, validDate } from "./extending.ts"

const existing = `${members}/1001`
const absent = `${members}/2001`

const past = "2001-01-01T00:00:00.000Z"

const encoded = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`

const usersOf = async ({ tenure }: Fixture): Promise<ReadonlyArray<string>> =>
  (await tenure.memberships.list({ projectId: "p1" })).map(({ userId }) => userId)

const grant = ({ tenure }: Fixture, userId: string, endDate: string) =>
  tenure.memberships.grant({ projectId: "p1", userId, endDate })

const invalidMetadata = [
  null,
  7,
  "gold",
  ["gold"],
  { plan: 7 },
  { plan: "" },
  { plan: "\u0000" },
  { plan: "\ud800" },
  { plan: "x".repeat(256) },
  { "": "x" },
  { "9": "x" },
  { ["n".repeat(41)]: "x" },
  Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`n${n}`, "x"])),
]

/** Wrong metadata, and the message with its text, or its name's position. */
const faultsOfMetadata = [
  [{ seat: "12A", plan: 7 }, "metadata.plan must be a text of 1 to 255 characters"],
  [{ plan: "gold", "a b": "x" }, "see entry 2"],
] as const

/** The form of an end date that was given as an instant, without a pause. */
const noDay = {
  through: null,
  kept_day: null,
  grace_until: null,
  paused_at: null,
  resumes_at: null,
}

const grantingTests = (test: ServerTest): void => {
  test("creates a membership or sets its end date, in either format, which may be over, and keeps the reason", async (fixture) => {
    const { operate, tenure } = fixture
    for (const path of [existing, absent]) {
      const user_id = path.slice(-4)
      for (const [input, end_date, state] of [
        [validDate, validDate, "active"],
        [4_102_444_800_000, "2100-01-01T00:00:00.000Z", "active"],
        [past, past, "expired"],
      ]) {
        const body = { end_date: input, reason: "a friend" }
        expectSuccess(await operate("PUT", path, body), {
          data: { user_id, end_date, ...noDay, state, metadata: {} },
        })
      }
    }
    const { endDate } = await tenure.memberships.find({ projectId: "p1", userId: "2001" })
    expect(endDate).toBe(Date.parse(past))
    const [row] = await tenure.memberships.history({ projectId: "p1", limit: 1 })
    expect(row).toMatchObject({ action: "granted", reason: "a friend" })
  })

  test("with `if_absent` leaves a membership as it is, even an expired one, and says which it was", async (fixture) => {
    const { operate, tenure } = fixture
    const created = { user_id: "2001", end_date: past, ...noDay, state: "expired", metadata: {} }
    const body = { end_date: past, if_absent: true }
    const headers = keyed()
    for (const isReplay of [false, true]) {
      const response = await operate("PUT", absent, body, headers)
      expectSuccess(response, { data: { ...created, created: true } })
      expect(response.headers["idempotent-replayed"]).toBe(isReplay ? "true" : undefined)
    }
    const other = { end_date: validDate, if_absent: true, metadata: { plan: "gold" } }
    const left = await operate("PUT", absent, other)
    expectSuccess(left, { data: { ...created, created: false } })
    expect(left.body).toMatchObject({ message: expect.stringContaining("nothing was changed") })
    expect(await tenure.memberships.history({ projectId: "p1", userId: "2001" })).toHaveLength(1)
    expectInvalid(await operate("PUT", absent, { ...other, if_absent: 1 }), "if_absent")
  })

  test("has user ids of any kind in its path, as all operations on one membership", async (fixture) => {
    const { administer } = fixture
    for (const user_id of manyKindsOfUser) {
      // The words in bulk paths are user ids if their first character is encoded.
      const segment = user_id.replace(/^[ei](?=xtend|mport)/, encoded)
      const path = `${members}/${segment === user_id ? encodeURIComponent(user_id) : segment}`
      const data = { user_id, end_date: validDate, ...noDay, state: "active", metadata: {} }
      expectSuccess(await administer("PUT", path, { end_date: validDate }), { data })
      expectSuccess(await administer("GET", path), { data })
      const query = new URLSearchParams({
        user_ids: `1001,${user_id.replaceAll(/[%,]/g, encodeURIComponent)}`,
      })
      const listed = itemsOf(await administer("GET", `${members}?${query}`))
      expect(listed).toContainEqual(data)
      expect(listed).toContainEqual(expect.objectContaining({ user_id: "1001" }))
      const extension = await administer("PATCH", `${path}/extend`, { extend: validDate })
      expectSuccess(extension, { total: 1, data: { new_end_date: validDate } })
      expect(itemsOf(await administer("GET", `${path}/history`))).toMatchObject([
        { action: "extended" },
        { action: "granted" },
      ])
      expectSuccess(await administer("DELETE", path), { data: null })
    }
  })

  test("fails if a field or the user id is invalid, and grants nothing", async (fixture) => {
    const { operate } = fixture
    const refused: ReadonlyArray<readonly [body: object, problem: string]> = [
      [{}, "end_date"],
      [{ extend: validDate }, "extend"],
      ...impossibleDates.map((end_date) => [{ end_date }, "end_date"] as const),
      ...["", 7, null].map((reason) => [{ end_date: validDate, reason }, "reason"] as const),
      ...[...invalidMetadata, { plan: null }].map(
        (metadata) => [{ end_date: validDate, metadata }, "metadata"] as const,
      ),
      ...faultsOfMetadata.map(
        ([metadata, problem]) => [{ end_date: validDate, metadata }, problem] as const,
      ),
    ]
    for (const [body, problem] of refused) {
      expectInvalid(await operate("PUT", absent, body), problem)
    }
    for (const user of ["a%20b", "a%0Ab", "%7F", "%C3%A9", "9".repeat(129)]) {
      const response = await operate("PUT", `${members}/${user}`, { end_date: validDate })
      expectInvalid(response, "user_id")
    }
    expect(await usersOf(fixture)).toEqual(["1001", "1002", "1003"])
  })
}

const updatingTests = (test: ServerTest): void => {
  test("changes texts, removes those that are null, and leaves all others and the end date", async (fixture) => {
    const { call, operate, tenure } = fixture
    const before = { user_id: "1001", end_date: validDate, ...noDay, state: "active" }
    const given = { plan: "gold", seat: "12A" }
    expectSuccess(await operate("PUT", existing, { end_date: validDate, metadata: given }), {
      data: { ...before, metadata: given },
    })
    const patch = { metadata: { seat: null, order: "117", plan: "silver" }, reason: "moved" }
    const data = { ...before, metadata: { order: "117", plan: "silver" } }
    expectSuccess(await operate("PATCH", existing, patch), { data })
    expectSuccess(await operate("PUT", existing, { end_date: validDate }), { data })
    expectSuccess(await call("GET", existing), { data })
    expect(itemsOf(await call("GET", `${members}?limit=1`))).toEqual([data])
    const rows = await tenure.memberships.history({ projectId: "p1", limit: 2 })
    expect(rows[1]).toMatchObject({ action: "updated", reason: "moved", userId: "1001" })
  })

  test("fails if the metadata is invalid or too much, or there is no membership, and changes nothing", async (fixture) => {
    const { call, operate } = fixture
    const full = Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`n${n}`, "x"]))
    expect((await operate("PATCH", existing, { metadata: full })).status).toBe(200)
    for (const body of [
      {},
      { metadata: full, end_date: validDate },
      { metadata: { one: "more" } },
      ...invalidMetadata.map((metadata) => ({ metadata })),
    ]) {
      expectInvalid(await operate("PATCH", existing, body))
    }
    for (const [metadata, problem] of faultsOfMetadata) {
      expectInvalid(await operate("PATCH", existing, { metadata }), problem)
    }
    expect(dataOf(await call("GET", existing))["metadata"]).toEqual(full)
    for (const path of [absent, `${members}/a%20b`]) {
      const response = await operate("PATCH", path, { metadata: {} })
      expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
    }
  })
}

const endingTests = (test: ServerTest): void => {
  test("removes a membership, once", async (fixture) => {
    const { operate } = fixture
    for (const path of [absent, `${members}/abc`, `${members}/a%20b`, `${members}/__proto__`]) {
      expectFailure(await operate("GET", path), 404, "MEMBERSHIP_NOT_FOUND")
      expectFailure(await operate("DELETE", path), 404, "MEMBERSHIP_NOT_FOUND")
    }
    expectInvalid(await operate("DELETE", `${existing}?dry_run=true`))
    expect(await usersOf(fixture)).toEqual(["1001", "1002", "1003"])
    expectSuccess(await operate("DELETE", existing), { data: null })
    expectFailure(await operate("DELETE", existing), 404, "MEMBERSHIP_NOT_FOUND")
    expect(await usersOf(fixture)).toEqual(["1002", "1003"])
  })

  const erase = `${existing}?erase=true`

  test("and erasing a person leaves no history, and says so in the trail", async (fixture) => {
    const { administer, tenure } = fixture
    // Covers members, former members and strangers.
    for (const _ of ["member", "erased"]) {
      expectSuccess(await administer("DELETE", erase), { data: null })
      expectFailure(await administer("GET", existing), 404, "MEMBERSHIP_NOT_FOUND")
      const history = await administer("GET", `${existing}/history?limit=10`)
      expect(history.body).toMatchObject({ data: [], total: 0 })
    }
    const trail = await tenure.memberships.history({ projectId: "p1" })
    expect(trail.filter(({ userId }) => userId === "1001")).toEqual([])
    const { key_id } = dataOf(await administer("GET", "/v2/identity"))
    const row = { action: "person_erased", origin: { keyId: key_id } }
    expect(trail.slice(0, 2)).toMatchObject([row, row])
    expect(await usersOf(fixture)).toEqual(["1002", "1003"])
  })

  test("and erasing a person happens once with an idempotency key, which no ending has", async (fixture) => {
    const { administer } = fixture
    const sent = (path: string) => administer("DELETE", path, undefined, keyed("k-1"))
    expect((await sent(erase)).headers["idempotent-replayed"]).toBeUndefined()
    await grant(fixture, "1001", validDate)
    expect((await sent(erase)).headers["idempotent-replayed"]).toBe("true")
    expect((await administer("GET", existing)).status).toBe(200)
    expectFailure(await sent(existing), 422, "IDEMPOTENCY_MISMATCH")
  })

  test("and erasing a person fails if a parameter or the user id is invalid, or the project is missing", async (fixture) => {
    const { administer } = fixture
    for (const query of ["erase=yes", "erase=", "erase=true&erase=true", "erase=true&more=1"]) {
      expectInvalid(await administer("DELETE", `${existing}?${query}`))
    }
    for (const [path, code] of [
      [`${members}/a%20b`, "MEMBERSHIP_NOT_FOUND"],
      ["/v2/projects/p9/memberships/1001", "PROJECT_NOT_FOUND"],
    ] as const) {
      expectFailure(await administer("DELETE", `${path}?erase=true`), 404, code)
    }
    expect((await administer("GET", existing)).status).toBe(200)
  })
}

/** Refused list queries. */
const refusedLists = [
  "state=old",
  "limit=0",
  "after=a%20b",
  "user_ids=",
  "user_ids=a%20b",
  "ending_before=",
  "ending_before=soon",
  `ending_before=${extend}&state=active`,
  `ending_before=${extend}&user_ids=1`,
  `ending_before=${extend}&after=1001`,
  "prefix=",
  "prefix=%20",
  "prefix=%00",
  "prefix=%F0%9F%98%80",
  `prefix=${"a".repeat(129)}`,
  "prefix=a&prefix=b",
  "prefix=10&user_ids=1001",
  `prefix=10&ending_before=${extend}`,
]

const readingTests = (test: ServerTest): void => {
  test("are listed page by page: all, by their state, by their ids, and by a prefix of these", async (fixture) => {
    const { call } = fixture
    const latest = "2999-01-01T00:00:00.000Z"
    await grant(fixture, "1002", past)
    await grant(fixture, "1003", latest)
    const page = async (query: string) => fieldsOf((await call("GET", `${members}?${query}`)).body)
    expect(await page("limit=2")).toMatchObject({
      total: 2,
      next: "1002",
      data: [{ user_id: "1001" }, { user_id: "1002", end_date: past, state: "expired" }],
    })
    expect(await page("limit=2&after=1002")).toMatchObject({
      total: 1,
      next: null,
      data: [{ user_id: "1003", end_date: latest, state: "active" }],
    })
    for (const userId of ["ada@example.com", "adam", "1100", "a_b", "axb"]) {
      await grant(fixture, userId, initialEndDate)
    }
    for (const [query, ids] of [
      ["state=expired", ["1002"]],
      ["user_ids=1002,9,1002", ["1002"]],
      ["prefix=ada", ["ada@example.com", "adam"]],
      ["prefix=10&state=expired", ["1002"]],
      ["prefix=10&limit=1&after=1001", ["1002"]],
      ["prefix=a_", ["a_b"]],
      ["prefix=nobody", []],
    ] as const) {
      const listed = itemsOf(await call("GET", `${members}?${query}`))
      expect([query, listed.map(({ user_id }) => user_id)]).toEqual([query, ids])
    }
    for (const query of refusedLists) expectInvalid(await call("GET", `${members}?${query}`))
  })

  test("are listed by their ends", async (fixture) => {
    const [soon, later] = ["2997-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"]
    await grant(fixture, "1001", later)
    await grant(fixture, "1002", soon)
    await grant(fixture, "1003", past)
    const page = async (query: string) =>
      fieldsOf((await fixture.call("GET", `${members}?ending_before=${query}`)).body)
    const first = await page("3000-01-01T00:00:00.000Z&limit=1")
    expect(first).toMatchObject({
      total: 1,
      data: [{ user_id: "1002", end_date: soon, state: "active" }],
    })
    const second = await page(`3000-01-01T00:00:00.000Z&after=${String(first["next"])}`)
    expect(second).toMatchObject({ total: 1, next: null, data: [{ user_id: "1001" }] })
    expect(await page(soon)).toMatchObject({ total: 0, next: null, data: [] })
  })

  test("have their own changes and those of all in their history, page by page, for operators", async (fixture) => {
    const { operate, tenure } = fixture
    const body = { extend, reason: "outage" }
    await operate("PATCH", extendAll, body)
    await tenure.memberships.end({ projectId: "p1", userId: "1001" })
    const history = `${existing}/history`
    const none = {
      from: null,
      to: null,
      key_id: null,
      key_name: null,
      request_id: null,
      reason: null,
    }
    const first = fieldsOf((await operate("GET", `${history}?limit=2`)).body)
    expect(first).toMatchObject({
      total: 2,
      data: [
        { ...none, action: "ended", from: extend },
        {
          action: "bulk_extended",
          from: null,
          to: extend,
          reason: "outage",
          key_id: expect.any(String),
          key_name: "billing",
          request_id: expect.any(String),
        },
      ],
    })
    const second = await operate("GET", `${history}?after=${String(first["next"])}`)
    expect(second.body).toMatchObject({
      total: 1,
      next: null,
      data: [{ ...none, action: "granted", to: initialEndDate }],
    })
    expectInvalid(await operate("GET", `${history}?after=x`))
    const foreign = `${members}/a%20b/history`
    expectFailure(await operate("GET", foreign), 404, "MEMBERSHIP_NOT_FOUND")
  })
}

const ends = `${project}/ends`

const counts = {
  at: instant,
  total: 3,
  active: expect.any(Number),
  overdue: expect.any(Number),
  paused: expect.any(Number),
  expired: expect.any(Number),
  ends_today: expect.any(Number),
  ends_in_7_days: expect.any(Number),
  days: expect.any(Array),
}

/** Queries, and the parameter in the message. The core tests the rules about days. */
const refusedEnds = [
  ["from=2027-02-29", "from"],
  ["to=%00", "to"],
  ["from=2027-01-02&to=2027-01-01", "to"],
  ["from=2027-01-01&from=2027-01-01", "from"],
  ["extend=1", "extend"],
  ["extend=2001-01-01T00:00:00.000Z", "extend"],
  ["mode=set", "mode"],
  [`extend=${extend}&mode=neverShorten`, "mode"],
  [`extend=${extend}&extend_by=P1D`, "extend"],
  ["extend_by=P1D&mode=set", "mode"],
  ["extend_by=P1M", "extend_by"],
  ["extend_by=-P1D", "extend_by"],
] as const

const endsByDayTests = (test: ServerTest): void => {
  test("count the days around today, and what was extended on them", async (fixture) => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
    const [ended, soon] = [inDays(-3), inDays(3)]
    await fixture.tenure.memberships.extend({ projectId: "p1", userId: "1001", endDate: soon })
    await grant(fixture, "1002", ended)
    await fixture.tenure.memberships.extend({ projectId: "p1", userId: "1003", endDate: extend })
    const response = await fixture.call("GET", ends)
    const counted = { active: 2, overdue: 0, expired: 1, ends_today: 0, ends_in_7_days: 1 }
    expectSuccess(response, { data: { ...counts, ...counted } })
    const { days } = dataOf(response)
    expect(days).toHaveLength(60)
    expect(days).toContainEqual({ day: soon.slice(0, 10), ends: 1, extended: 0 })
    expect(days).toContainEqual(expect.objectContaining({ day: ended.slice(0, 10), ends: 1 }))
    // The members were granted before.
    expect(days).toContainEqual({ day: inDays(0).slice(0, 10), ends: 0, extended: 6 })
  })

  test("count the days that are asked for, and as if all memberships had been extended", async (fixture) => {
    const { call, otherToken } = fixture
    for (const userId of ["1001", "1002"]) await grant(fixture, userId, extend)
    await grant(fixture, "1003", "2099-01-02T23:59:59.999Z")
    const before = await endDatesOf(fixture)
    const range = "from=2098-12-31&to=2099-01-02"
    const [early, late] = ["2098-12-31T12:00:00.000Z", "2099-01-02T12:00:00.000Z"]
    for (const [query, numbers] of [
      ["", [0, 2, 1]],
      ["&extend_by=P1D", [0, 0, 2]],
      [`&extend=${late}&mode=set`, [0, 0, 3]],
      [`&extend=${Date.parse(late)}&mode=never_shorten`, [0, 0, 3]],
      [`&extend=${early}&mode=set`, [3, 0, 0]],
      [`&extend=${early}&mode=never_shorten`, [0, 2, 1]],
    ] as const) {
      const response = await call("GET", `${ends}?${range}${query}`)
      expectSuccess(response, { data: counts })
      const days = ["2098-12-31", "2099-01-01", "2099-01-02"]
      const expected = days.map((day, index) => ({ day, ends: numbers[index], extended: 0 }))
      expect([query, dataOf(response)["days"]]).toEqual([query, expected])
    }
    expect(await endDatesOf(fixture)).toEqual(before)
    for (const [query, field] of refusedEnds) {
      expectInvalid(await call("GET", `${ends}?${query}`), field)
    }
    expectFailure(await call("GET", ends, { token: otherToken }), 404, "PROJECT_NOT_FOUND")
  })
}

export const membershipTests = (test: ServerTest): void => {
  describe("granting a membership", () => {
    grantingTests(test)
  })
  describe("updating a membership", () => {
    updatingTests(test)
  })
  describe("ending a membership", () => {
    endingTests(test)
  })
  describe("memberships", () => {
    readingTests(test)
  })
  describe("the ends by day", () => {
    endsByDayTests(test)
  })
}

/** The longest body, in bytes. */
const longestImport = 2_097_152

const chunked = { "transfer-encoding": "chunked" }

const line = (user_id: unknown, end_date: unknown = validDate): string =>
  JSON.stringify({ user_id, end_date })

const many = (count: number): string =>
  Array.from({ length: count }, (_, index) => line(String(100_000 + index))).join("\n")

/** Sends lines with an operator's key. */
const sendLines = (
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

const unimported = { 1001: initialEndDate, 1002: initialEndDate, 1003: initialEndDate }

const importLineTests = (test: ServerTest): void => {
  test("creates memberships and sets end dates, in either format, which may be over", async (fixture) => {
    const body = [line("1003"), line("1004", 4_102_444_800_000), line("1005", past)].join("\n")
    expectSuccess(await sendLines(fixture, body), { total: 3, data: null })
    expect(await datesOf(fixture)).toEqual({
      ...unimported,
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
      expectSuccess(await sendLines(fixture, body), { total: 1, data: null })
      const found = await fixture.tenure.memberships.find({ projectId: "p1", userId: "1001" })
      expect(found.metadata).toEqual(metadata)
    }
  })

  test("takes whole days, in the project's time zone or another one, and kept days", async (fixture) => {
    const { operate, tenure } = fixture
    await operate("PATCH", project, { time_zone: "Europe/Berlin" })
    const lines = [
      { user_id: "a", through: "2098-01-31" },
      { user_id: "b", through: "2098-02-28", time_zone: "UTC" },
      { user_id: "c", through: "2098-02-28", kept_day: 30 },
      { user_id: "d", end_date: "2098-02-28T08:00:00.000Z", kept_day: 31 },
    ]
    const memberships = lines.map(
      ({ end_date: endDate, kept_day: keptDay, time_zone: timeZone, user_id, through }) => ({
        userId: `in-process-${user_id}`,
        endDate,
        through,
        timeZone,
        keptDay,
      }),
    )
    await tenure.memberships.import({ projectId: "p1", memberships })
    const body = lines.map((one) => JSON.stringify(one)).join("\n")
    expectSuccess(await sendLines(fixture, body), { total: 4, data: null })
    for (const prefix of ["", "in-process-"]) {
      const found = await operate(
        "GET",
        `${members}?user_ids=${["a", "b", "c", "d"].map((id) => prefix + id).join()}`,
      )
      expect(itemsOf(found)).toMatchObject([
        { end_date: "2098-01-31T23:00:00.000Z", through: "2098-01-31", kept_day: null },
        { end_date: "2098-03-01T00:00:00.000Z", through: null, kept_day: null },
        { end_date: "2098-02-28T23:00:00.000Z", through: "2098-02-28", kept_day: 30 },
        { end_date: "2098-02-28T08:00:00.000Z", through: null, kept_day: 31 },
      ])
    }
    // Imported again without it, a date drops the kept day.
    await sendLines(fixture, JSON.stringify({ user_id: "c", through: "2098-02-28" }))
    expect(dataOf(await operate("GET", `${members}/c`))).toMatchObject({
      through: "2098-02-28",
      kept_day: null,
    })
  })

  test("is answered which line has two dates, or a day, time zone or kept day that is invalid", async (fixture) => {
    const day = { through: "2098-01-31" }
    const noKeptDay = "must be a whole number from 1 to 31"
    const refused: ReadonlyArray<readonly [line: object, problem: string]> = [
      [{ ...day, end_date: validDate }, "end_date must be left out beside through"],
      [{ end_date: "2098-01-31" }, "a day is no instant; for the whole day, send through"],
      [{ through: "2098-02-30" }, "through must be"],
      [{ ...day, time_zone: "+01:00" }, "time_zone must be"],
      [{ end_date: validDate, time_zone: "UTC" }, "time_zone must be left out"],
      ...[0, 32, 1.5, "31", null].map(
        (kept_day) => [{ ...day, kept_day }, `kept_day ${noKeptDay}`] as const,
      ),
    ]
    const body = refused.map(([one], index) => JSON.stringify({ user_id: String(index), ...one }))
    const response = await sendLines(fixture, body.join("\n"))
    expect(fieldsOf(response.body)["errors"]).toMatchObject(
      refused.map(([, problem], index) => ({
        line: index + 1,
        message: expect.stringContaining(problem),
      })),
    )
    const memberships = [{ userId: "1", endDate: validDate, keptDay: 32 }]
    await expect(
      fixture.tenure.memberships.import({ projectId: "p1", memberships }),
    ).rejects.toThrow(`memberships[0].keptDay ${noKeptDay}`)
    expect(await datesOf(fixture)).toEqual(unimported)
  })

  test("takes ends of lines of either kind, white space at the end, and a byte order mark", async (fixture) => {
    for (const end of ["", "\n", "\r\n", "\n\n", "\r\n\r\n", "\n \n"]) {
      const body = `\u{feff}${line("1")}\r\n${line("2")}\n${line("3")}${end}`
      expectSuccess(await sendLines(fixture, body), { total: 3, data: null })
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
      ...impossibleDates.map((date) => line("7", date)),
    ]
    const response = await sendLines(fixture, [line("1"), ...bad, line("8")].join("\n"))
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
      const { body } = await sendLines(fixture, [...valid, ...refused].map(rewrite).join("\n"))
      found.push(fieldsOf(body)["errors"])
    }
    const lines = refused.map((_, index) => ({ line: valid.length + index + 1 }))
    expect(found[0]).toMatchObject(lines)
    for (const one of found) expect(one).toEqual(found[0])
    expect(await datesOf(fixture)).toEqual(unimported)
  })

  test.with({ userIds: "digits" })(
    "is answered the line of a user id that the host does not have",
    async (fixture) => {
      const response = await sendLines(fixture, [line("1"), line("user_2")].join("\n"))
      const message = "user_id must be digits"
      expectFailure(response, 422, ["VALIDATION_ERROR"], { line: 2, message })
    },
  )

  test("is answered one hundred errors at most", async (fixture) => {
    const { body } = await sendLines(fixture, `${line("1")}\n${"{}\n".repeat(9000)}`)
    const { errors } = fieldsOf(body)
    expect(errors).toHaveLength(100)
    expect(errors).toMatchObject({ 0: { line: 2 }, 99: { line: 101 } })
  })

  test("has one line at least, ten thousand at most, and UTF-8 of its own type", async (fixture) => {
    for (const body of ["", "\n", " \r\n "]) {
      expectFailure(await sendLines(fixture, body), 422, ["VALIDATION_ERROR"], { line: 1 })
    }
    const latin = Buffer.from(line("\u00fc"), "latin1")
    expectFailure(await sendLines(fixture, latin), 400, "MALFORMED_REQUEST")
    for (const type of ["application/json", "text/plain", "application/x-ndjsonp"]) {
      const response = await sendLines(fixture, line("1"), { "content-type": type })
      expect(response.status).toBeGreaterThanOrEqual(400)
    }
    const tooMany = await sendLines(fixture, `${many(10_000)}\n${line("1")}`)
    expectFailure(tooMany, 422, ["VALIDATION_ERROR"], { line: 10_001 })
    expect(await datesOf(fixture)).toEqual(unimported)
    expectSuccess(await sendLines(fixture, many(10_000)), { total: 10_000, data: null })
  })
}

const importBodyTests = (test: ServerTest): void => {
  test.with({ maxBodyBytes: 100 })(
    "has 2 MiB at most, whatever the limit of others is, with a Content-Length or chunked",
    async (fixture) => {
      const body = line("1").padEnd(longestImport, " ")
      for (const headers of [{}, chunked]) {
        expectSuccess(await sendLines(fixture, body, headers), { total: 1, data: null })
        expectFailure(await sendLines(fixture, `${body} `, headers), 413, "PAYLOAD_TOO_LARGE")
        const longer = await fixture.call("POST", webhooks, { body: " ".repeat(101), headers })
        expectFailure(longer, 413, "PAYLOAD_TOO_LARGE")
      }
    },
  )

  test("is refused without a key, a role, a path or a method, whatever is sent", async (fixture) => {
    const { call, operate } = fixture
    const body = " ".repeat(longestImport)
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
    const body = " ".repeat(longestImport)
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
      await sendLines(fixture, many(2000), keyed("k-1")),
      await sendLines(fixture, many(2000), keyed("k-1")),
    ]
    for (const response of [first, second]) expectSuccess(response, { total: 2000, data: null })
    expect(first.headers["idempotent-replayed"]).toBeUndefined()
    expect(second.headers["idempotent-replayed"]).toBe("true")
    expectFailure(await sendLines(fixture, many(1999), keyed("k-1")), 422, "IDEMPOTENCY_MISMATCH")
  })

  test.with({}, { isBehindParser: true })("works behind a parser of the host", async (fixture) => {
    expectSuccess(await sendLines(fixture, many(2000)), { total: 2000, data: null })
  })
}

export const importingTests = (test: ServerTest): void => {
  describe("an import", () => {
    importLineTests(test)
    importBodyTests(test)
  })
}
