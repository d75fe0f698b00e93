/** Seed files are planned and stored, or refused with the path of the wrong entry. */

import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { ApiKeys, Memberships, tenureLayer } from "@tenure/core/effect"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { afterAll, describe, expect } from "vitest"
import { planSeed } from "../src/seed-plan.ts"
import { seedFromFile } from "../src/seed.ts"

const folder = await mkdtemp(join(tmpdir(), "tenure-seed-"))
afterAll(() => rm(folder, { recursive: true }))

const end_date = "2099-01-01T00:00:00.000Z"
const later = "2101-01-01T00:00:00.000Z"

const membersOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ user_id: String(index), end_date }))

describe("a plan", () => {
  it("has every membership once, in steps that are short", () => {
    const projects = Array.from({ length: 2000 }, (_, index) => ({
      id: `p${index}`,
      memberships: membersOf(index === 7 ? 10_001 : 5),
    }))
    const { batches } = Result.getOrThrow(planSeed({ projects }))
    const found = new Map<string, Array<string>>()
    for (const batch of batches) {
      expect(batch.length).toBeLessThanOrEqual(100)
      expect(batch.flatMap(({ memberships }) => memberships).length).toBeLessThanOrEqual(2000)
      for (const { memberships, projectId } of batch) {
        const users = memberships.map(({ userId }) => userId)
        found.set(projectId, [...(found.get(projectId) ?? []), ...users])
      }
    }
    expect(batches.length).toBeLessThan(40)
    expect([...found]).toEqual(
      projects.map(({ id, memberships }) => [id, memberships.map(({ user_id }) => user_id)]),
    )
  })

  it("has a token once, with all that it opens", () => {
    const { keys } = Result.getOrThrow(
      planSeed({
        projects: [
          { id: "p1", api_keys: ["one", { token: "all", role: "admin" }] },
          { id: "p2", api_keys: ["one"] },
        ],
        api_keys: [{ token: "all", role: "admin" }],
      }),
    )
    expect(keys).toMatchObject([
      { token: "one", role: "client", projects: new Set(["p1", "p2"]) },
      { token: "all", role: "admin", projects: "all" },
    ])
  })
})

const seeding = Effect.fnUntraced(function* (seed: object | string) {
  const path = join(folder, "seed.json")
  yield* Effect.promise(() =>
    writeFile(path, typeof seed === "string" ? seed : JSON.stringify(seed)),
  )
  yield* seedFromFile(path, false)
})

const TenureLive = tenureLayer({ webhooks: { dispatch: false }, expiry: false }).pipe(
  Layer.provide(memory()),
)

const layer = <A, E>(work: Effect.Effect<A, E, Memberships | ApiKeys>) =>
  Effect.provide(work, TenureLive)

const admin = { token: "secret", role: "admin" }

const keysOf = (...keys: ReadonlyArray<object>) => ({
  projects: [],
  api_keys: [{ token: "another", role: "admin" }, ...keys],
})

const projectOf = (fields: object) => ({ projects: [{ id: "p", ...fields }] })

const membersIn = (...memberships: ReadonlyArray<object>) => projectOf({ memberships })

describe("a seed file", () => {
  it.live.each<readonly [string, object | string, RegExp]>([
    ["is not valid JSON", "{", /SEED_FILE/],
    ["has no projects", {}, /SEED_FILE.*projects/s],
    ["has an invalid user id", membersIn({ user_id: "a b", end_date }), /userId/],
    ["has an invalid end date", membersIn({ user_id: "1", end_date: "soon" }), /end date/],
    ["has no end date", membersIn({ user_id: "1" }), /0: memberships: 0: end_date must be there/],
    [
      "has a day in place of an instant",
      membersIn({ user_id: "1", end_date: "2099-01-31" }),
      /for the whole day, send through/,
    ],
    [
      "has two dates",
      membersIn({ user_id: "1", end_date, through: "2099-01-31" }),
      /end_date must be left out beside through/,
    ],
    ["has an invalid day", membersIn({ user_id: "1", through: "2099-02-30" }), /through must be/],
    [
      "has a time zone without a day",
      membersIn({ user_id: "1", end_date, time_zone: "UTC" }),
      /time_zone must be left out without through/,
    ],
    [
      "has an offset for a day",
      membersIn({ user_id: "1", through: "2099-01-31", time_zone: "+01:00" }),
      /time_zone must be the name/,
    ],
    [
      "has an invalid kept day",
      membersIn({ user_id: "1", through: "2099-01-31", kept_day: 32 }),
      /kept_day must be/,
    ],
    [
      "resumes without a pause",
      membersIn({ user_id: "1", end_date, resumes_at: end_date }),
      /resumes_at must be left out without paused_at/,
    ],
    [
      "has a day in place of the beginning of a pause",
      membersIn({ user_id: "1", end_date, paused_at: "2026-01-31" }),
      /paused_at must be/,
    ],
    [
      "has a user twice",
      membersIn({ user_id: "1", end_date }, { user_id: "1", end_date: later }),
      /projects: 0: memberships: 1: user_id/,
    ],
    [
      "has an offset in place of a time zone",
      projectOf({ time_zone: "+01:00" }),
      /projects: 0: time_zone must be the name/,
    ],
    [
      "has a grace with months",
      projectOf({ grace: "P1M" }),
      /projects: 0: grace must be a duration in weeks/,
    ],
    ["has an invalid token", projectOf({ api_keys: ["ü"] }), /api_keys: 0: token/],
    [
      "has an unknown field",
      projectOf({ api_key: ["secret"] }),
      /0: api_key: there is no such field/,
    ],
    ["has an unknown role", keysOf({ token: "secret", role: "root" }), /api_keys: 1: role/],
    ["has a key without a role", keysOf({ token: "secret" }), /api_keys: 1: role/],
    ["has a key with an unknown field", keysOf({ ...admin, roles: [] }), /api_keys: 1: roles/],
    [
      "has a key with two roles",
      keysOf(admin, { ...admin, role: "client" }),
      /2: .* role is admin/,
    ],
    [
      "has a key with two roles in projects",
      { ...projectOf({ api_keys: ["secret"] }), api_keys: [admin] },
      /SEED_FILE: api_keys: 0: .* role is client/,
    ],
    [
      "has an unknown field of keys in projects",
      projectOf({ api_keys: [{ ...admin, tokens: 1 }] }),
      /projects: 0: api_keys: 0: tokens/,
    ],
  ])("that %s is refused, and not shown", ([_name, content, problem]) =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(seeding(content))
      expect(message).toMatch(problem)
      expect(message).not.toContain("secret")
    }).pipe(layer),
  )

  it.live("adds what is missing, and leaves what is there as it is", () =>
    Effect.gen(function* () {
      const memberships = yield* Memberships
      const changed = { projectId: "p1", userId: "3" }
      yield* memberships.createProject("p1")
      yield* memberships.grant({ ...changed, endDate: later })
      const seed = { projects: [{ id: "p1", memberships: membersOf(2500) }, { id: "p2" }] }
      yield* seeding(seed)
      yield* memberships.end({ projectId: "p1", userId: "4" })
      yield* seeding(seed)
      expect(yield* memberships.findProject("p1")).toMatchObject({ memberships: 2500 })
      expect(yield* memberships.findProject("p2")).toMatchObject({ memberships: 0 })
      expect((yield* memberships.find(changed)).endDate).toBe(Date.parse(later))
      const rows = yield* memberships.history({ projectId: "p1", limit: 10_000 })
      // 2,499 were missing the first time, and one the second time.
      expect(rows.filter(({ action }) => action === "imported")).toHaveLength(2500)
    }).pipe(layer),
  )

  it.live("has settings for new projects, and leaves those of others", () =>
    Effect.gen(function* () {
      const memberships = yield* Memberships
      const settingsOf = Effect.map(memberships.listProjects(), (found) =>
        found.map(({ grace, id, timeZone }) => [id, timeZone, grace / 86_400_000]),
      )
      yield* memberships.createProject("p1")
      const time_zone = "europe/berlin"
      const projects = [
        { id: "p1", time_zone },
        { id: "p2", time_zone },
        { id: "p2", time_zone: "UTC", grace: "P7D" },
        { id: "p2", grace: null },
        { id: "p3", grace: null },
      ]
      yield* seeding({ projects })
      const others = ["p1", "UTC", 0]
      const third = ["p3", "UTC", 0]
      expect(yield* settingsOf).toEqual([others, ["p2", "Europe/Berlin", 7], third])
      const changed = { timeZone: "Asia/Kathmandu", grace: "P1D" }
      yield* memberships.updateProject({ projectId: "p2", ...changed })
      yield* seeding({ projects })
      expect(yield* settingsOf).toEqual([others, ["p2", "Asia/Kathmandu", 1], third])
    }).pipe(layer),
  )

  it.live("may have dates of any year, and members for life", () =>
    Effect.gen(function* () {
      const memberships = [
        { user_id: "1", end_date: "1969-12-31T00:00:00.000Z" },
        { user_id: "2", end_date: null },
      ]
      yield* seeding({ projects: [{ id: "p1", memberships }] })
      expect(yield* (yield* Memberships).list({ projectId: "p1" })).toMatchObject([
        { endDate: -86_400_000 },
        { endDate: Date.UTC(9999, 11, 31, 23, 59, 59, 999) },
      ])
    }).pipe(layer),
  )

  it.live("may have whole days, in the time zone of the project or another one", () =>
    Effect.gen(function* () {
      const through = "2099-02-28"
      const memberships = [
        { user_id: "1", through },
        { user_id: "2", through, time_zone: "UTC" },
        { user_id: "3", through, kept_day: 30 },
      ]
      yield* seeding({ projects: [{ id: "p1", time_zone: "Europe/Berlin", memberships }] })
      const endDate = Date.UTC(2099, 1, 28, 23)
      expect(yield* (yield* Memberships).list({ projectId: "p1" })).toMatchObject([
        { through, endDate, keptDay: undefined },
        { through: undefined, endDate: Date.UTC(2099, 2, 1) },
        { through, endDate, keptDay: 30 },
      ])
    }).pipe(layer),
  )

  it.live("may have paused members", () =>
    Effect.gen(function* () {
      const paused = { end_date: "2099-01-01T00:00:00.000Z", paused_at: "2026-01-31T00:00:00.000Z" }
      const memberships = [
        { user_id: "1", ...paused },
        { user_id: "2", ...paused, resumes_at: "2098-01-01T00:00:00.000Z" },
      ]
      yield* seeding({ projects: [{ id: "p1", memberships }] })
      const pausedAt = Date.UTC(2026, 0, 31)
      expect(yield* (yield* Memberships).list({ projectId: "p1" })).toMatchObject([
        { state: "paused", pausedAt, resumesAt: undefined },
        { state: "paused", pausedAt, resumesAt: Date.UTC(2098, 0, 1) },
      ])
    }).pipe(layer),
  )

  it.live("stores nothing if its last entry is invalid", () =>
    Effect.gen(function* () {
      const projects = [
        { id: "p1", memberships: membersOf(10) },
        { id: "p2", memberships: [...membersOf(10), { user_id: "10", end_date: "soon" }] },
      ]
      const { message } = yield* Effect.flip(seeding({ projects }))
      expect(message).toMatch(/^SEED_FILE: projects: 1: memberships: 10: .*end date/)
      expect(yield* (yield* Memberships).listProjects()).toEqual([])
    }).pipe(layer),
  )

  it.live("stores nothing if a token is that of a key with another role", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      yield* keys.issue({ projects: "all", role: "admin", token: "known" })
      const seed = { projects: [{ id: "p1", memberships: membersOf(3), api_keys: ["known"] }] }
      const { message } = yield* Effect.flip(seeding(seed))
      expect(message).toMatch(/^SEED_FILE: projects: 0: api_keys: 0: .* role is admin/)
      expect(yield* (yield* Memberships).listProjects()).toEqual([])
      expect(yield* keys.list()).toHaveLength(1)
    }).pipe(layer),
  )
})
