/** Grants that share statements, with each other and with imports. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { isReplayedResponse } from "@tenure/core/internal"
import { type AuditRow, MembershipStore, ProjectId, UserId } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { postgresLayer } from "../src/index.ts"
import { clientLayer } from "./harness.ts"
import { blocked, holding, testsOn } from "./locking.ts"

const schema = "granting"
const { change, in2027, in2028, p1, p2, u1, u3 } = Fixture
const onStores = testsOn(schema)

const user = (n: number): UserId => UserId(String(5000 + n))

const grant = (projectId: ProjectId, userId: UserId, event = Fixture.draft(projectId)) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.grant({ ...change(projectId), event, userId, endDate: in2028 }),
  )

/** The number of members that a project has counted. */
const countOf = (projectId: ProjectId) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.findProject(projectId), ({ memberships }) => memberships),
  )

const historyOf = (userId: UserId) =>
  Effect.flatMap(MembershipStore, (store) => store.history(p1, { userId, limit: 100 }))

const lockedProject = `SELECT 1 FROM ${schema}.projects WHERE id = 'p1' FOR UPDATE`

describe("grants at the same time", () => {
  onStores(
    "share statements, and are counted once for each new member",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const grants = Array.from({ length: 200 }, (_, index) =>
        grant(index % 2 === 0 ? p1 : p2, user(index % 50)),
      )
      yield* Effect.all(grants, { concurrency: "unbounded" })
      expect(yield* countOf(p1)).toBe(2 + 25)
      expect(yield* countOf(p2)).toBe(2 + 25)
      const wrote = sql.unsafe(
        `SELECT DISTINCT xmin::text FROM ${schema}.audit WHERE user_id > '5'`,
      )
      expect((yield* wrote).length).toBeLessThan(20)
    }),
  )

  onStores(
    "share statements with idempotency keys, too, and each is made once",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const store = yield* MembershipStore
      const keyed = Array.from({ length: 100 }, (_, index) => ({
        userId: user(index),
        endDate: in2028,
        once: { ...Fixture.once(), key: String(index) },
      }))
      const grants = [...keyed, ...keyed].map((one) => store.grant({ ...change(p1), ...one }))
      const results = yield* Effect.all(grants, { concurrency: "unbounded" })
      expect(results.filter(isReplayedResponse)).toHaveLength(100)
      expect(yield* countOf(p1)).toBe(2 + 100)
      const wrote = sql.unsafe(
        `SELECT DISTINCT xmin::text FROM ${schema}.audit WHERE user_id > '5'`,
      )
      expect((yield* wrote).length).toBeLessThan(20)
    }),
  )

  onStores(
    "fail alone: one of an unknown project, and one whose event cannot be stored",
    Effect.gen(function* () {
      const published = Fixture.draft(p1)
      yield* grant(p1, u1, published)
      const exits = yield* Effect.forEach(
        [
          grant(p1, user(1)),
          grant(ProjectId("nowhere"), user(2)),
          grant(p1, user(3), published),
          grant(p2, user(4)),
        ],
        (one) => Effect.exit(Effect.mapError(one, ({ _tag }) => _tag)),
        { concurrency: "unbounded" },
      )
      expect(exits.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Failure", "Success"])
      expect(String(exits[1])).toContain("ProjectNotFound")
      expect(yield* historyOf(user(3))).toEqual([])
      expect(yield* countOf(p1)).toBe(3)
      expect(yield* countOf(p2)).toBe(3)
    }),
  )

  onStores(
    "do not wait with one whose project or membership is locked",
    Effect.gen(function* () {
      const lockedMember = `
        SELECT 1 FROM ${schema}.memberships m JOIN ${schema}.projects p ON p.number = m.project_number
        WHERE p.id = 'p2' AND user_id = '1001' FOR UPDATE OF m`
      const waiting = yield* holding(
        `WITH project AS MATERIALIZED (${lockedProject}), member AS MATERIALIZED (${lockedMember})
         SELECT (SELECT count(*) FROM project), (SELECT count(*) FROM member)`,
        Effect.gen(function* () {
          const locked = [grant(p1, user(1)), grant(p2, u1)]
          const fibers = yield* Effect.forEach(locked, (one) => Effect.forkDetach(one))
          yield* Effect.all(
            Array.from({ length: 20 }, (_, index) => grant(p2, user(index))),
            { concurrency: "unbounded" },
          )
          expect(fibers.map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
          return fibers
        }),
      )
      yield* Effect.forEach(waiting, Fiber.join)
      expect(yield* countOf(p1)).toBe(3)
      expect(yield* countOf(p2)).toBe(22)
    }),
  )

  onStores(
    "go on if the caller of one is interrupted, which is stored as a whole or not at all",
    Effect.gen(function* () {
      const all = yield* holding(
        lockedProject,
        Effect.gen(function* () {
          const fibers = yield* Effect.forEach([1, 2, 3], (n) =>
            Effect.forkDetach(grant(p1, user(n))),
          )
          yield* blocked
          const [first] = fibers
          if (first !== undefined) yield* Fiber.interrupt(first)
          return fibers.slice(1)
        }),
      )
      yield* Effect.forEach(all, Fiber.join)
      // After this one, a statement of the interrupted caller has run or never will.
      yield* grant(p1, u3)
      const rows = yield* historyOf(user(1))
      expect(yield* countOf(p1)).toBe(5 + rows.length)
    }),
  )
})

/** Returns whether each row of a user's history starts where the one before ends. */
const isChained = (newestFirst: ReadonlyArray<AuditRow>): boolean =>
  newestFirst.every(({ from }, index) => from === newestFirst[index + 1]?.to)

describe("grants, imports, extensions and endings by two processes", () => {
  onStores(
    "come one after another, in several projects at once",
    Effect.gen(function* () {
      const one = yield* MembershipStore
      const services = yield* Layer.build(
        Layer.provide(Layer.fresh(postgresLayer({ schema })), clientLayer()),
      )
      const other = Context.get(services, MembershipStore)
      const users = [0, 1, 2, 3].map(user)
      const changes = Array.from({ length: 120 }, (_, index) => {
        const store = index % 2 === 0 ? one : other
        const projectId = index % 3 === 0 ? p2 : p1
        const userId = users[index % 4] ?? u1
        const endDate = index % 5 === 0 ? in2027 : in2028
        const common = change(projectId)
        if (index % 7 === 0) {
          const memberships = users.map((each) => ({ userId: each, endDate }))
          return store.import({ ...common, memberships })
        }
        if (index % 11 === 0) return Effect.ignore(store.end({ ...common, userId }))
        return index % 3 === 1
          ? Effect.ignore(store.extend({ ...common, userId, endDate }))
          : store.grant({ ...common, userId, endDate })
      })
      yield* Effect.all(changes, { concurrency: "unbounded" })
      for (const userId of users) expect(isChained(yield* historyOf(userId))).toBe(true)
      const members = yield* one.list(p1, { after: undefined, limit: 100 })
      expect(yield* countOf(p1)).toBe(members.length)
    }).pipe(Effect.scoped),
  )
})
