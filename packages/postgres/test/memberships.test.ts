/** Grants that share statements, with each other and with imports, and a membership's history. */

import { PgClient } from "@effect/sql-pg"
import { describe, expect } from "@effect/vitest"
import { isReplayedResponse, lastEndDate } from "@tenure/core/internal"
import {
  type AuditRow,
  MembershipStore,
  ProjectId,
  UserId,
  changesOfUser,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import fc from "fast-check"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, countRows, duringSteps, sql, testsOn, waitingOn } from "./harness.ts"
import { type Changes, change as changeOfTrail, trailOf, userId as ofTrail } from "./trails.ts"

const schema = "memberships"
const { change, in2027, in2028, p1, p2, u1 } = Fixture
const test = testsOn(schema)
const together = { concurrency: "unbounded" } as const

const user = (n: number): UserId => UserId(String(5000 + n))
const range = (count: number) => Array.from({ length: count }, (_, index) => index)

const grant = (projectId: ProjectId, userId: UserId, event = Fixture.draft(projectId)) =>
  MembershipStore.use((store) =>
    store.grant({ ...change(projectId), event, userId, endDate: in2028 }),
  )

/** How many members the projects have counted. */
const counts = MembershipStore.use((store) =>
  Effect.forEach([p1, p2], (projectId) =>
    Effect.map(store.findProject(projectId), ({ memberships }) => memberships),
  ),
)

const historyOf = (userId: UserId) =>
  MembershipStore.use((store) => store.history(p1, { userId, limit: 100 }))

/** How many transactions have granted memberships here. */
const transactions = countRows(
  `(SELECT DISTINCT xmin::text FROM ${schema}.audit WHERE user_id > '5') written`,
)

const lockedProject = `SELECT 1 FROM ${schema}.projects WHERE id = 'p1' FOR UPDATE`

describe("grants at the same time", () => {
  test("share statements, and are counted once for each new member", function* () {
    const grants = range(200).map((n) => grant(n % 2 === 0 ? p1 : p2, user(n % 50)))
    yield* Effect.all(grants, together)
    expect(yield* counts).toEqual([2 + 25, 2 + 25])
    const first = yield* transactions
    expect(first).toBeLessThan(20)
    // With idempotency keys, too, and each is made once.
    const store = yield* MembershipStore
    const keyed = range(100).map((n) => ({
      userId: user(100 + n),
      endDate: in2028,
      idempotency: { ...Fixture.idempotency(), key: String(n) },
    }))
    const repeated = [...keyed, ...keyed].map((one) => store.grant({ ...change(p1), ...one }))
    const results = yield* Effect.all(repeated, together)
    expect(results.filter(isReplayedResponse)).toHaveLength(100)
    expect(yield* counts).toEqual([2 + 25 + 100, 2 + 25])
    expect((yield* transactions) - first).toBeLessThan(20)
  })

  test("fail alone if their project is unknown or their event is stored", function* () {
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
      together,
    )
    expect(exits.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Failure", "Success"])
    expect(String(exits[1])).toContain("ProjectNotFound")
    expect(yield* historyOf(user(3))).toEqual([])
    expect(yield* counts).toEqual([3, 3])
  })

  test("do not wait with one whose project or membership is locked", function* () {
    const lockedMember = `
      SELECT 1 FROM ${schema}.memberships m JOIN ${schema}.projects p ON p.number = m.project_number
      WHERE p.id = 'p2' AND user_id = '1001' FOR UPDATE OF m`
    const waiting = yield* duringSteps(
      Effect.all([sql(lockedProject), sql(lockedMember)]),
      function* () {
        const fibers = [
          yield* Effect.forkDetach(grant(p1, user(1))),
          yield* Effect.forkDetach(grant(p2, u1)),
        ]
        const others = range(20).map((n) => grant(p2, user(n)))
        yield* Effect.all(others, together)
        expect(fibers.map((fiber) => fiber.pollUnsafe())).toEqual([undefined, undefined])
        return fibers
      },
    )
    yield* Effect.forEach(waiting, Fiber.join)
    expect(yield* counts).toEqual([3, 22])
  })

  test("go on if one is interrupted, which is stored whole or not at all", function* () {
    const others = yield* duringSteps(sql(lockedProject), function* () {
      const start = (n: number) => Effect.forkDetach(grant(p1, user(n)))
      const first = yield* start(1)
      const rest = [yield* start(2), yield* start(3)]
      yield* waitingOn(schema)
      yield* Fiber.interrupt(first)
      return rest
    })
    yield* Effect.forEach(others, Fiber.join)
    // In one snapshot, as the interrupted caller's statement may still run.
    const client = yield* PgClient.PgClient
    const snapshot = sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    const read = Effect.all([snapshot, counts, historyOf(user(1))])
    const [, counted, history] = yield* client.withTransaction(read)
    expect(counted).toEqual([4 + history.length, 2])
  })

  test("and other changes by two processes come one after another", function* () {
    const one = yield* MembershipStore
    const stores = Layer.fresh(postgresLayer({ schema, migrate: false }))
    const services = yield* Layer.build(Layer.provide(stores, clientLayer()))
    const other = Context.get(services, MembershipStore)
    const users = range(4).map(user)
    const changes = range(120).map((n) => {
      const store = n % 2 === 0 ? one : other
      const endDate = n % 5 === 0 ? in2027 : in2028
      const made = { ...change(n % 3 === 0 ? p2 : p1), userId: users[n % 4] ?? u1, endDate }
      if (n % 7 === 0)
        return store.import({ ...made, memberships: users.map((userId) => ({ userId, endDate })) })
      if (n % 11 === 0) return Effect.ignore(store.end(made))
      return n % 3 === 1 ? Effect.ignore(store.extend(made)) : store.grant(made)
    })
    yield* Effect.all(changes, together)
    // Each starts where the one before has ended.
    for (const userId of users) {
      const rows = yield* historyOf(userId)
      expect(rows.map(({ from }) => from)).toEqual([
        ...rows.slice(1).map(({ to }) => to),
        undefined,
      ])
    }
    const members = yield* Effect.forEach([p1, p2], (projectId) =>
      one.list(projectId, { after: undefined, limit: 100 }),
    )
    expect(yield* counts).toEqual(members.map(({ length }) => length))
  })
})

describe("the history of a membership", () => {
  /** Stores a trail without its first rows, as if these were older than `auditRetention`. */
  const store = Effect.fnUntraced(function* (
    projectId: ProjectId,
    { isMember, rows }: ReturnType<typeof trailOf>,
    forgotten: number,
  ) {
    yield* sql(`INSERT INTO ${schema}.projects (id) VALUES ($1)`, [projectId])
    yield* sql(
      `INSERT INTO ${schema}.audit (project_number, user_id, subject, seq, action, from_date, to_date, extend_by, at)
       SELECT number, user_id, subject, r.seq, action, date '2030-01-01' + from_date, date '2030-01-01' + to_date,
              extend_by * interval '24 hours', now()
       FROM jsonb_to_recordset($2::jsonb)
       AS r (user_id text, subject text, seq bigint, action text, from_date integer, to_date integer, extend_by integer), ${schema}.projects
       WHERE projects.id = $1`,
      [projectId, JSON.stringify(rows.slice(forgotten))],
    )
    if (!isMember) return
    yield* sql(
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
       SELECT number, $2, now(), 0 FROM ${schema}.projects WHERE id = $1`,
      [projectId, ofTrail],
    )
  })

  /** Reads a history page by page. */
  const pagesOf = Effect.fnUntraced(function* (projectId: ProjectId, limit: number) {
    const memberships = yield* MembershipStore
    const rows: Array<AuditRow> = []
    for (;;) {
      const asked = { userId: ofTrail, after: rows.at(-1)?.cursor, limit }
      const page: ReadonlyArray<AuditRow> = yield* memberships.history(projectId, asked)
      rows.push(...page)
      if (page.length < limit) return rows
    }
  })

  test("shows that a pause has moved no date of a membership for life", function* (memberships) {
    const endDate = lastEndDate
    yield* memberships.grant({ ...change(p1), userId: u1, endDate })
    const now = Date.now()
    const day = 86_400_000
    for (const at of [now - day, now]) {
      const pausing = { ...change(p1), at, userId: u1, until: at + day, expected: { endDate } }
      yield* memberships.pause(pausing)
    }
    const rows = yield* memberships.history(p1, { userId: u1, limit: 2 })
    expect(rows).toMatchObject([
      { action: "paused", from: endDate, to: endDate },
      { action: "resumed", from: endDate, to: endDate },
    ])
  })

  test("has the changes that applied to it, whatever the trail and the pages", function* () {
    const context = yield* Effect.context<PgClient.PgClient | MembershipStore>()
    const memberships = yield* MembershipStore
    let projects = 0
    const isSame = (made: Changes, forgotten: number, limit: number) =>
      Effect.gen(function* () {
        const projectId = ProjectId(`project ${projects++}`)
        const trail = trailOf(made)
        yield* store(projectId, trail, forgotten)
        const all = yield* memberships.history(projectId, { userId: undefined, limit: 100 })
        const expected = changesOfUser(all.toReversed(), ofTrail, trail.isMember)
        expect(yield* pagesOf(projectId, limit)).toEqual(expected.toReversed())
      }).pipe(Effect.runPromiseWith(context))
    const changes = fc.array(changeOfTrail, { maxLength: 30 })
    const property = fc.asyncProperty(changes, fc.nat(8), fc.integer({ min: 1, max: 5 }), isSame)
    yield* Effect.promise(() => fc.assert(property, { numRuns: 200 }))
  })
})
