/** Pausing and resuming memberships, and moving them to other user ids. */

import { describe, expect } from "vitest"
import {
  dataOf,
  expectFailure,
  expectInvalid,
  expectSuccess,
  instant,
  itemsOf,
} from "../../support/http.ts"
import {
  type Fixture,
  type ServerTest,
  endDatesOf,
  extendOne,
  initialEndDate,
  keyed,
  members,
  project,
} from "../harness.ts"

const existing = `${members}/1001`
const pause = `${existing}/pause`
const resume = `${existing}/resume`
const move = `${existing}/move`

const past = "2001-01-01T00:00:00.000Z"

const dayMillis = 86_400_000

const inDays = (days: number): string => new Date(Date.now() + days * dayMillis).toISOString()

/** The day so many days from today, in UTC. */
const dayIn = (days: number): string => inDays(days).slice(0, 10)

const grant = ({ tenure }: Fixture, endDate: string, userId = "1001") =>
  tenure.memberships.grant({ projectId: "p1", userId, endDate })

/** Resolves at an instant. */
const reached = (at: string) =>
  new Promise((resolve) => void setTimeout(resolve, Date.parse(at) - Date.now() + 100))

const active = {
  user_id: "1001",
  end_date: initialEndDate,
  through: null,
  kept_day: null,
  state: "active",
  grace_until: null,
  paused_at: null,
  resumes_at: null,
  metadata: {},
}

const paused = { ...active, state: "paused", paused_at: instant }

const actionsOf = async ({ tenure }: Fixture, userId = "1001") =>
  (await tenure.memberships.history({ projectId: "p1", userId })).map(({ action }) => action)

const millisOf = (date: unknown): number => Date.parse(String(date))

const pauseTests = (test: ServerTest): void => {
  test("lets the end date stand, until it is resumed, and is in answers, lists and the history", async (fixture) => {
    const { call, operate, tenure } = fixture
    const begun = await operate("POST", pause, { reason: "in hospital" })
    expectSuccess(begun, { data: paused })
    const { paused_at } = dataOf(begun)
    expectSuccess(await call("GET", existing), { data: { ...paused, paused_at } })
    for (const [state, ids] of [
      ["paused", ["1001"]],
      ["active", ["1002", "1003"]],
      ["expired", []],
    ] as const) {
      const listed = itemsOf(await call("GET", `${members}?state=${state}`))
      expect(listed.map(({ user_id }) => user_id)).toEqual(ids)
    }
    const ending = itemsOf(await call("GET", `${members}?ending_before=2999-01-01T00:00:00.000Z`))
    expect(ending.map(({ user_id }) => user_id)).toEqual(["1002", "1003"])
    const counted = { total: 3, active: 2, paused: 1 }
    expect(dataOf(await call("GET", `${project}/ends`))).toMatchObject(counted)
    const resumed = await operate("POST", resume, { reason: "back" })
    const { end_date } = dataOf(resumed)
    expectSuccess(resumed, { data: { ...active, end_date: instant } })
    const difference = millisOf(end_date) - Date.parse(initialEndDate)
    expect(difference).toBeGreaterThanOrEqual(0)
    expect(difference).toBeLessThanOrEqual(Date.now() - millisOf(paused_at))
    expectSuccess(await call("GET", existing), { data: { ...active, end_date } })
    const rows = itemsOf(await operate("GET", `${existing}/history?limit=2`))
    expect(rows).toMatchObject([
      { action: "resumed", from: initialEndDate, to: end_date, reason: "back" },
      { action: "paused", from: initialEndDate, to: initialEndDate, reason: "in hospital" },
    ])
    const found = await tenure.memberships.find({ projectId: "p1", userId: "1001" })
    expect(found.endDate).toBe(millisOf(end_date))
    // From the process of some hosts, undefined fields do not arrive.
    expect(found.pausedAt).toBeUndefined()
  })

  test("without a body begins and ends, too", async ({ operate }) => {
    expectSuccess(await operate("POST", pause), { data: paused })
    expectSuccess(await operate("POST", resume), { data: { ...active, end_date: instant } })
  })

  test("ends by itself at an instant in either format, or after a whole day in a time zone", async (fixture) => {
    const { operate } = fixture
    const until = inDays(30)
    const midnight = `${dayIn(31)}T00:00:00.000Z`
    for (const [body, resumes_at] of [
      [{ until }, until],
      [{ until: Date.parse(until) }, until],
      [{ through: dayIn(30) }, midnight],
      [{ through: dayIn(30), time_zone: "Etc/GMT+5" }, midnight.replace("T00", "T05")],
    ] as const) {
      await operate("DELETE", existing)
      await grant(fixture, initialEndDate)
      expectSuccess(await operate("POST", pause, body), { data: { ...paused, resumes_at } })
    }
    await operate("PATCH", project, { time_zone: "Etc/GMT-3" })
    const other = `${members}/1002/pause`
    const { resumes_at } = dataOf(await operate("POST", other, { through: dayIn(30) }))
    expect(resumes_at).toBe(`${dayIn(30)}T21:00:00.000Z`)
  })

  test("that ends by itself adds the time paused, for every reader", async (fixture) => {
    const { call, operate } = fixture
    const until = new Date(Date.now() + 500).toISOString()
    const { paused_at } = dataOf(await operate("POST", pause, { until }))
    await reached(until)
    const pausedFor = Date.parse(until) - millisOf(paused_at)
    const end_date = new Date(Date.parse(initialEndDate) + pausedFor).toISOString()
    expectSuccess(await call("GET", existing), { data: { ...active, end_date } })
    expect(itemsOf(await call("GET", `${members}?state=paused`))).toEqual([])
    expectFailure(await operate("POST", resume), 409, "STATE_CONFLICT", { current_state: "active" })
    expectSuccess(await operate("POST", pause), { data: { ...paused, end_date } })
  })

  test("has its clock stand for extensions, and is kept by a new date", async (fixture) => {
    const { call, operate } = fixture
    const begun = dataOf(await operate("POST", pause, { until: inDays(10) }))
    const standing = { paused_at: begun["paused_at"], resumes_at: begun["resumes_at"] }
    const body = { extend_by: "P1D", from: "now" }
    const extended = await call("PATCH", extendOne, { body, headers: keyed() })
    const end_date = new Date(millisOf(begun["paused_at"]) + dayMillis).toISOString()
    expect(dataOf(extended)).toMatchObject({ new_end_date: end_date })
    expectSuccess(await call("GET", existing), { data: { ...paused, end_date, ...standing } })
    const granted = await operate("PUT", existing, { end_date: past })
    expectSuccess(granted, { data: { ...paused, end_date: past, ...standing } })
    const left = await operate("PUT", existing, { end_date: initialEndDate, if_absent: true })
    const kept = { ...paused, end_date: past, ...standing, created: false }
    expectSuccess(left, { data: kept })
    expectSuccess(await operate("DELETE", existing), { data: null })
    const anew = await operate("PUT", existing, { end_date: initialEndDate })
    expectSuccess(anew, { data: active })
  })

  test("is refused unless the membership is active, before its end, and told the state", async (fixture) => {
    const { operate } = fixture
    const expectState = async (path: string, current_state: string) =>
      expectFailure(await operate("POST", path, {}), 409, "STATE_CONFLICT", { current_state })
    await expectState(resume, "active")
    await grant(fixture, past)
    await expectState(pause, "expired")
    await expectState(resume, "expired")
    await operate("PATCH", project, { grace: "P7D" })
    await grant(fixture, inDays(-1))
    await expectState(pause, "active")
    await grant(fixture, initialEndDate)
    expect((await operate("POST", pause, {})).status).toBe(200)
    await expectState(pause, "paused")
    await operate("POST", resume, {})
    await expectState(resume, "active")
    const changes = (await actionsOf(fixture)).filter((action) => /paused|resumed/.test(action))
    expect(changes).toEqual(["resumed", "paused"])
  })

  test("is not found without a membership, or with an invalid user id", async ({ operate }) => {
    for (const user of ["2001", "a%20b", "__proto__"]) {
      for (const act of ["pause", "resume"]) {
        const body = act === "pause" ? { until: inDays(1) } : {}
        const response = await operate("POST", `${members}/${user}/${act}`, body)
        expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
      }
      const byDay = await operate("POST", `${members}/${user}/pause`, { through: dayIn(1) })
      expectFailure(byDay, 404, "MEMBERSHIP_NOT_FOUND")
    }
    for (const act of ["pause", "resume"]) {
      const foreign = await operate("POST", pause.replace("p1", "p2").replace("pause", act), {})
      expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
    }
  })

  test("fails if a field is invalid, and changes nothing", async (fixture) => {
    const { operate } = fixture
    const until = inDays(30)
    const through = dayIn(30)
    const refused: ReadonlyArray<readonly [body: object, problem: string]> = [
      [{ until: past }, "until must be in the future"],
      [{ until: Date.now() - 1 }, "until must be in the future"],
      [{ until: inDays(732) }, "until must be at most two years ahead"],
      [{ until: "9999-12-31T23:59:59.999Z" }, "until must be at most two years ahead"],
      [{ through: dayIn(-1) }, "until must be in the future"],
      [{ through: dayIn(732) }, "until must be at most two years ahead"],
      [{ until, through }, "until"],
      [{ until, time_zone: "UTC" }, "time_zone"],
      ...[null, "", "soon", 7, [until], until.slice(0, 10), until.replace("Z", "+00:00")].map(
        (date) => [{ until: date }, "until"] as const,
      ),
      ...[null, "", 7, "2027-02-30", until, `${through}Z`].map(
        (day) => [{ through: day }, "through"] as const,
      ),
      ...["+01:00", "Mars/Olympus", "", 1, null].map(
        (time_zone) => [{ through, time_zone }, "time_zone"] as const,
      ),
      ...["", "r".repeat(501), null, 7].map((reason) => [{ reason }, "reason"] as const),
    ]
    for (const [body, problem] of refused) {
      expectInvalid(await operate("POST", pause, body), problem)
    }
    expect(await actionsOf(fixture)).toEqual(["granted"])
    await operate("POST", pause, {})
    for (const reason of ["", null, 7]) {
      expectInvalid(await operate("POST", resume, { reason }), "reason")
    }
    expect(await actionsOf(fixture)).toEqual(["paused", "granted"])
  })

  test("begins and ends for operators alone, once with an idempotency key", async (fixture) => {
    const { call, operate } = fixture
    for (const path of [pause, resume]) {
      expectFailure(await call("POST", path, { body: {} }), 403, "FORBIDDEN")
    }
    const begun = { data: { ...paused, resumes_at: instant } }
    const body = { until: inDays(30) }
    const [first, second] = [
      await operate("POST", pause, body, keyed("k-1")),
      await operate("POST", pause, body, keyed("k-1")),
    ]
    for (const response of [first, second]) expectSuccess(response, begun)
    expect(dataOf(second)).toEqual(dataOf(first))
    expect(first.headers["idempotent-replayed"]).toBeUndefined()
    expect(second.headers["idempotent-replayed"]).toBe("true")
    const other = await operate("POST", pause, { until: inDays(31) }, keyed("k-1"))
    expectFailure(other, 422, "IDEMPOTENCY_MISMATCH")
    const resumed = await operate("POST", resume, {}, keyed("k-2"))
    // The replay is the first response, whatever the membership is now.
    const replayed = await operate("POST", pause, body, keyed("k-1"))
    expect(dataOf(replayed)).toEqual(dataOf(first))
    const again = await operate("POST", resume, {}, keyed("k-2"))
    expect(again.headers["idempotent-replayed"]).toBe("true")
    expect(dataOf(again)).toEqual(dataOf(resumed))
    expect(await actionsOf(fixture)).toEqual(["resumed", "paused", "granted"])
  })
}

const moveTests = (test: ServerTest): void => {
  test("has the later end, joined metadata, and a row in each history", async (fixture) => {
    const { call, operate, tenure } = fixture
    const later = "2098-01-01T00:00:00.000Z"
    for (const [user, end_date, metadata] of [
      ["1001", later, { plan: "gold", seat: "12A" }],
      ["1002", initialEndDate, { plan: "silver" }],
    ] as const) {
      await operate("PUT", `${members}/${user}`, { end_date, metadata })
    }
    const response = await operate("POST", move, { to: "1002", reason: "two accounts" })
    expectSuccess(response, { data: { user_id: "1002", end_date: later } })
    expectFailure(await call("GET", existing), 404, "MEMBERSHIP_NOT_FOUND")
    const joined = { user_id: "1002", metadata: { plan: "silver", seat: "12A" } }
    expectSuccess(await call("GET", `${members}/1002`), {
      data: { ...active, end_date: later, ...joined },
    })
    for (const userId of ["1001", "1002"]) {
      const [row] = await tenure.memberships.history({ projectId: "p1", userId, limit: 1 })
      expect(row).toMatchObject({ action: "moved", reason: "two accounts" })
    }
    const toNobody = await operate("POST", `${members}/1002/move`, { to: "ada@example.com" })
    expectSuccess(toNobody, { data: { user_id: "ada@example.com", end_date: later } })
    await tenure.memberships.grant({ projectId: "p1", userId: "1003", endDate: null })
    const forLife = await operate("POST", `${members}/1003/move`, { to: "ada@example.com" })
    expectSuccess(forLife, { data: { user_id: "ada@example.com", end_date: null } })
  })

  test("is refused while either membership is paused", async (fixture) => {
    const { operate } = fixture
    const conflict = { current_state: "paused" }
    const other = `${members}/1002/move`
    await operate("POST", pause, {})
    for (const [path, to] of [
      [move, "1002"],
      [move, "2001"],
      [other, "1001"],
    ] as const) {
      expectFailure(await operate("POST", path, { to }), 409, "STATE_CONFLICT", conflict)
    }
    expect(await endDatesOf(fixture)).toEqual([initialEndDate, initialEndDate, initialEndDate])
    await operate("POST", resume, {})
    expect((await operate("POST", move, { to: "1002" })).status).toBe(200)
    await grant(fixture, past, "1003")
    const ended = await operate("POST", `${members}/1003/move`, { to: "2001" })
    expectSuccess(ended, { data: { user_id: "2001", end_date: past } })
  })

  test("is not found without a membership, or with an invalid user id", async ({ operate }) => {
    for (const user of ["2001", "a%20b", "__proto__"]) {
      const response = await operate("POST", `${members}/${user}/move`, { to: "1002" })
      expectFailure(response, 404, "MEMBERSHIP_NOT_FOUND")
    }
    const foreign = await operate("POST", move.replace("p1", "p2"), { to: "1002" })
    expectFailure(foreign, 404, "PROJECT_NOT_FOUND")
  })

  test("fails to no other user, with an invalid field, or with too much metadata", async (fixture) => {
    const { operate } = fixture
    const names = (letter: string) =>
      Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`${letter}${n}`, "x"]))
    await operate("PUT", `${members}/1001`, { end_date: initialEndDate, metadata: names("a") })
    await operate("PUT", `${members}/1002`, { end_date: initialEndDate, metadata: names("b") })
    const before = await actionsOf(fixture)
    for (const [body, problem] of [
      [{}, "to"],
      [{ to: "1001" }, "to must be another user"],
      [{ to: "1002" }, "to must leave at most 16 names"],
      ...[null, 1002, "", "a b", ".", "..", "\u00e9", "9".repeat(129), ["1002"]].map(
        (to) => [{ to }, "to"] as const,
      ),
      ...["", null, 7].map((reason) => [{ to: "2001", reason }, "reason"] as const),
    ] as const) {
      expectInvalid(await operate("POST", move, body), problem)
    }
    expectFailure(await operate("POST", move), 400, "MALFORMED_REQUEST")
    expect(await actionsOf(fixture)).toEqual(before)
  })

  test.with({ userIds: "digits" })(
    "fails to a user id that the host does not have",
    async ({ operate }) => {
      expectInvalid(await operate("POST", move, { to: "ada" }), "to must be digits")
      expect((await operate("POST", move, { to: "2001" })).status).toBe(200)
    },
  )

  test("is made by operators alone, once with an idempotency key", async (fixture) => {
    const { call, operate } = fixture
    const body = { to: "2001" }
    expectFailure(await call("POST", move, { body }), 403, "FORBIDDEN")
    for (const replayed of [undefined, "true"]) {
      const response = await operate("POST", move, body, keyed("k-1"))
      expectSuccess(response, { data: { user_id: "2001", end_date: initialEndDate } })
      expect(response.headers["idempotent-replayed"]).toBe(replayed)
    }
    const other = await operate("POST", move, { to: "2002" }, keyed("k-1"))
    expectFailure(other, 422, "IDEMPOTENCY_MISMATCH")
    expect(await actionsOf(fixture, "2001")).toEqual(["moved"])
  })
}

export const pausingTests = (test: ServerTest): void => {
  describe("a pause", () => {
    pauseTests(test)
  })
  describe("a move", () => {
    moveTests(test)
  })
}
