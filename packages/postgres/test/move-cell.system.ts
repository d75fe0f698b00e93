/** Moves of cells between two servers. */

import { setTimeout as sleep } from "node:timers/promises"
import { PgClient } from "@effect/sql-pg"
import { type Tenure, createTenure } from "@tenure/core"
import { cellNumber } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as FastCheck from "fast-check"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { type CellDirectory, makeCellExecutor } from "../src/connection/cells.ts"
import { makeServer } from "../src/connection/executor.ts"
import { postgres } from "../src/index.ts"
import { planRebalance, runCancelMove, runListCells, runMoveCell } from "../src/ops/cells.ts"
import {
  type MoveStep,
  type MoveSurroundings,
  decideMove,
  moveCell,
  moveSteps,
  silent,
} from "../src/ops/move-cell.ts"
import { type SourceState, type TargetState, findProblems } from "../src/ops/move-checks.ts"
import { runListSchemas, runMakeCells } from "../src/ops/upkeep.ts"
import { clientLayer, recordingTransport } from "./harness.ts"

let servers: readonly [PostgresServer, PostgresServer]
let tenures: ReadonlyArray<Tenure> = []

const names = ["first", "second"] as const

const urlOf = (index: number, role: "tenure" | "owner" | "app"): string => {
  const url = new URL(servers[index]?.url ?? "")
  url.username = role
  return url.href
}

/** Both servers, as the role sees them that owns the tables. */
const options = () =>
  names.map((name, index) => ({
    name,
    url: urlOf(index, "owner"),
    listenUrl: undefined,
    replicationUrl: undefined,
  }))

/** Runs a statement as superuser. */
const sqlOn = <Row extends object>(index: number, ...statements: ReadonlyArray<string>) =>
  PgClient.PgClient.use((sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe<Row>(statement)),
  ).pipe(
    Effect.provide(
      clientLayer({
        url: Redacted.make(urlOf(index, "tenure")),
        maxConnections: 1,
        prepare: false,
      }),
    ),
    Effect.map((all) => all.flat()),
    run,
  )

const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)

const open = async (transport = recordingTransport().transport): Promise<Tenure> => {
  const tenure = await createTenure({
    stores: postgres({
      servers: names.map((name, index) => ({ name, url: urlOf(index, "app") })),
      migrate: false,
      maxConnections: 4,
    }),
    transport,
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  })
  tenures = [...tenures, tenure]
  return tenure
}

beforeAll(async () => {
  const settings = {
    wal_level: "logical",
    fsync: "off",
    max_sync_workers_per_subscription: "4",
    max_logical_replication_workers: "8",
  }
  servers = await Promise.all([startPostgres({ settings }), startPostgres({ settings })])
  // Rights as docs/internals/scaling.md has them, without a superuser.
  for (const index of names.keys())
    await sqlOn(
      index,
      "CREATE ROLE owner LOGIN REPLICATION PASSWORD 'tenure'",
      "CREATE ROLE app LOGIN PASSWORD 'tenure'",
      "GRANT CREATE ON DATABASE postgres TO owner",
      "GRANT pg_create_subscription TO owner",
    )
  await run(runMakeCells(options(), undefined, 4))
  const schemas = await run(runListSchemas(options(), undefined))
  for (const { name, url } of schemas)
    await sqlOn(
      url === urlOf(0, "owner") ? 0 : 1,
      `GRANT USAGE ON SCHEMA ${name} TO app`,
      `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name} TO app`,
      `GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO app`,
      `REVOKE UPDATE, DELETE ON ${name}.audit FROM app`,
    )
}, 60_000)
afterEach(async () => {
  await Promise.all(tenures.map((tenure) => tenure.close()))
  tenures = []
})
afterAll(() => Promise.all(servers.map(({ stop }) => stop())))

/** Returns a project of a cell. */
const projectIn = (number: number): string => {
  for (let n = 1; ; n++) if (cellNumber(ProjectId(`p${n}`), 4) === number) return `p${n}`
}

const move = (number: number, to: string) =>
  run(runMoveCell(options(), undefined, number, to, silent))

const places = async () => {
  const cells = await run(runListCells(options(), undefined))
  return cells.map(({ moved_from, moving_to, server }) => ({ server, moving_to, moved_from }))
}

/** Everything at both ends that is only there during moves. */
const leftovers = async () => {
  const found = await Promise.all(
    [...names.keys()].map((index) =>
      sqlOn<{ readonly name: string }>(
        index,
        `SELECT slot_name::text AS name FROM pg_replication_slots
         UNION ALL SELECT subname::text FROM pg_subscription
         UNION ALL SELECT pubname::text FROM pg_publication
         UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspname LIKE '%_moved'
         UNION ALL SELECT tgname::text FROM pg_trigger WHERE tgname = 'closed'`,
      ),
    ),
  )
  return found.flat().map(({ name }) => name)
}

const day = 86_400_000

// Between two changes, so that moves are what the test takes its time for.
const pauseMillis = 10

const memberCount = 20

/** Extends half of the memberships of a project, one after another, until it is stopped. Returns what was acknowledged. */
const startLoad = (tenure: Tenure, projectId: string, half: 0 | 1) => {
  const acknowledged = new Map<string, number>()
  const ended = new AbortController()
  let changes = 0
  const working = (async () => {
    while (!ended.signal.aborted) {
      const userId = String((2 * changes++ + half) % memberCount)
      const endDate = Date.UTC(2099, 0, 1) + changes * day
      await tenure.memberships.extend({
        projectId,
        userId,
        endDate: new Date(endDate).toISOString(),
      })
      acknowledged.set(userId, endDate)
      await sleep(pauseMillis)
    }
  })()
  return async () => {
    ended.abort()
    await working
    return { acknowledged, changes }
  }
}

const fill = async (tenure: Tenure, projectId: string) => {
  await tenure.memberships.createProject(projectId)
  const memberships = Array.from({ length: memberCount }, (_, n) => ({
    projectId,
    userId: String(n),
    endDate: "2098-01-01T00:00:00.000Z",
  }))
  for (const membership of memberships) await tenure.memberships.grant(membership)
}

/** Follows the feed from its beginning. */
const follow = (tenure: Tenure, projectId: string) => {
  const seen: Array<string> = []
  const ended = new AbortController()
  const following = (async () => {
    for await (const { id } of tenure.events.stream({
      projectId,
      after: "start",
      signal: ended.signal,
    }))
      seen.push(id)
  })()
  return {
    seen,
    stop: async () => {
      ended.abort()
      await following.catch(() => {})
    },
  }
}

const idsOf = (sent: ReturnType<typeof recordingTransport>["sent"]) =>
  new Set(sent.map(({ headers }) => new Headers(headers).get("webhook-id")))

it("moves a cell there and back while two processes work on it", async () => {
  const { sent, transport } = recordingTransport()
  const tenure = await open(transport)
  const other = await open(transport)
  const projectId = projectIn(0)
  await fill(tenure, projectId)
  await tenure.webhooks.create({ projectId, url: "https://example.com/" })
  const follower = follow(other, projectId)
  const stops = [startLoad(tenure, projectId, 0), startLoad(other, projectId, 1)]
  expect(await move(0, "second")).toBe(true)
  expect(await move(0, "second")).toBe(false)
  expect((await places())[0]).toEqual({ server: "second", moving_to: null, moved_from: null })
  // No process has used the former place for so long.
  await sqlOn(0, "UPDATE tenure.cells SET moved_at = moved_at - interval '1 minute'")
  expect(await move(0, "first")).toBe(true)
  const loads = await Promise.all(stops.map((stop) => stop()))
  const changes = loads.reduce((sum, load) => sum + load.changes, 0)
  for (const { acknowledged } of loads)
    for (const [userId, endDate] of acknowledged)
      expect(await tenure.memberships.find({ projectId, userId })).toMatchObject({ endDate })
  const ids = new Set<string>()
  for (let after: string = "start"; ;) {
    const page = await tenure.events.read({ projectId, after })
    for (const { id } of page.events) ids.add(id)
    if (page.isLast) break
    after = page.cursor
  }
  expect(ids.size).toBe(memberCount + changes)
  await expect.poll(() => follower.seen.length).toBe(ids.size)
  expect(new Set(follower.seen)).toEqual(ids)
  await follower.stop()
  const deliverable = [...ids].slice(memberCount)
  await expect.poll(() => deliverable.filter((id) => !idsOf(sent).has(id))).toEqual([])
  expect(await leftovers()).toEqual([])
}, 60_000)

/** The ends of a move, for moves that die: they leave everything as it is. */
const surroundings = Effect.gen(function* () {
  const [home, ...others] = yield* Effect.forEach(options(), ({ name, url }) =>
    Effect.map(
      Layer.build(clientLayer({ url: Redacted.make(url), maxConnections: 2 })),
      (built) => ({ name, client: Context.get(built, PgClient.PgClient), replicationUrl: url }),
    ),
  )
  if (home === undefined) return yield* Effect.die("no servers")
  const ends: MoveSurroundings = {
    home: home.client,
    homeSchema: "tenure",
    servers: new Map([home, ...others].map((server) => [server.name, server])),
  }
  return ends
})

/** Moves a cell until a step is done. */
const moveUntil = (number: number, to: string, last: MoveStep) =>
  surroundings.pipe(
    Effect.flatMap((ends) =>
      moveCell(ends, number, to, {
        ...silent,
        onStep: (step) => (step === last ? Effect.die("killed") : Effect.void),
      }),
    ),
    Effect.scoped,
    Effect.exit,
    run,
  )

it("goes on, or begins again, wherever it was killed", async () => {
  const projectId = projectIn(2)
  const tenure = await open()
  await fill(tenure, projectId)
  // A process would complete the move by itself.
  await tenure.close()
  const cancel = () => run(runCancelMove(options(), undefined, 2, "second"))
  const decided = moveSteps.indexOf("decided")
  for (const [index, step] of moveSteps.entries()) {
    expect([step, Exit.isFailure(await moveUntil(2, "second", step))]).toEqual([step, true])
    const [, , place] = await places()
    expect(place).toEqual(
      index < moveSteps.indexOf("switched")
        ? { server: "first", moving_to: "second", moved_from: null }
        : { server: "second", moving_to: null, moved_from: "first" },
    )
    if (index === decided) await expect(cancel()).rejects.toThrow("decided")
    if (index >= decided || index % 2 === 1) continue
    expect(await cancel()).toBe(true)
    expect(await leftovers()).toEqual([])
  }
  expect(await move(2, "second")).toBe(true)
  expect(await leftovers()).toEqual([])
  const { memberships } = await open()
  expect(await memberships.find({ projectId, userId: "1" })).toBeDefined()
}, 60_000)

it("a process completes a move whose mover died after the decision", async () => {
  const tenure = await open()
  const projectId = projectIn(1)
  await fill(tenure, projectId)
  await moveUntil(1, "first", "decided")
  const endDate = "2099-01-01T00:00:00.000Z"
  await tenure.memberships.extend({ projectId, userId: "1", endDate })
  expect((await places())[1]).toEqual({ server: "first", moving_to: null, moved_from: "second" })
  expect(await move(1, "first")).toBe(true)
  expect(await leftovers()).toEqual([])
  expect(await tenure.memberships.find({ projectId, userId: "1" })).toMatchObject({
    endDate: Date.parse(endDate),
  })
}, 60_000)

it("runs a statement that does not wait for a move where the cell has gone", async () => {
  await sqlOn(1, "CREATE SCHEMA gone", "CREATE VIEW gone.seen AS SELECT 1 AS count")
  const rows = Effect.gen(function* () {
    const opened = yield* Effect.forEach(names, (name, index) =>
      Layer.build(clientLayer({ url: Redacted.make(urlOf(index, "tenure")) })).pipe(
        Effect.flatMap((built) => makeServer(Context.get(built, PgClient.PgClient), 2, name)),
        Effect.map((server) => [name, server] as const),
      ),
    )
    let place: string = "first"
    const directory: CellDirectory = {
      serverOf: () => place,
      confirm: () => Effect.void,
      refresh: Effect.sync(() => {
        place = "second"
      }),
      left: () => Effect.die("it has waited"),
    }
    const executor = makeCellExecutor(0, '"gone"', directory, new Map(opened))
    return yield* executor.executeApart("SELECT count FROM gone.seen", [], { failsInMove: true })
  })
  expect(await run(Effect.scoped(rows))).toEqual([{ count: 1 }])
  await sqlOn(1, "DROP SCHEMA gone CASCADE")
})

describe("before a move", () => {
  const source: SourceState = {
    database: "1 5",
    wal_level: "logical",
    may_replicate: true,
    may_publish: true,
    owns_schema: true,
    free_slots: 2,
    free_senders: 2,
  }
  const target: TargetState = {
    database: "2 5",
    may_subscribe: true,
    needs_password: false,
    free_workers: 2,
  }
  const problems = (
    from: Partial<SourceState>,
    to: Partial<TargetState> = {},
    url = "postgres://a@b/c",
  ) =>
    findProblems(
      { source: "first", target: "second" },
      { ...source, ...from },
      { ...target, ...to },
      url,
    )

  it("tells all that is missing", () => {
    expect(problems({})).toEqual([])
    expect(problems({}, { needs_password: true }, "postgres://a:b@c/d")).toEqual([])
    for (const [found, word] of [
      [problems({ database: "2 5" }), "same database"],
      [problems({ wal_level: "replica" }), "wal_level = logical"],
      [problems({ may_replicate: false }), "REPLICATION"],
      [problems({ may_publish: false }), "GRANT CREATE"],
      [problems({ owns_schema: false }), "own the tables"],
      [problems({ free_slots: 1 }), "max_replication_slots"],
      [problems({}, { may_subscribe: false }), "pg_create_subscription"],
      [problems({}, { needs_password: true }), "password"],
      [problems({}, { free_workers: 1 }), "max_logical_replication_workers"],
    ] as const)
      expect(found).toEqual([expect.stringContaining(word)])
  })

  it("decides how to go on by what there is at both ends", () => {
    const next = (isAtSource: boolean, isDecided: boolean) =>
      (["absent", "closed", "open"] as const).map((there) =>
        decideMove({ isAtSource, isDecided, target: there }),
      )
    expect(next(true, false)).toEqual(["begin", "undo", "refuse"])
    expect(next(false, true)).toEqual(["refuse", "complete", "complete"])
    expect(next(false, false)).toEqual(["refuse", "refuse", "refuse"])
    expect(next(true, true)).toEqual(["refuse", "refuse", "refuse"])
  })

  it("refuses unknown cells and servers", async () => {
    await expect(move(0, "third")).rejects.toThrow("There is no server third")
    await expect(move(9, "second")).rejects.toThrow("There is no cell 9")
  })
})

describe("the plan of a rebalance", () => {
  const all = ["a", "b", "c", "d"]
  const cells = FastCheck.array(
    FastCheck.record({
      server: FastCheck.constantFrom(...all, "gone"),
      moving_to: FastCheck.option(FastCheck.constantFrom(...all)),
      bytes: FastCheck.option(FastCheck.nat(100)),
    }),
    { minLength: 1, maxLength: 20 },
  ).map((made) => made.map((cell, number) => ({ ...cell, number })))
  const some = FastCheck.subarray(all, { minLength: 1 })

  it("leaves each server with as many cells as any other, or one more, by as few moves as that takes", () => {
    FastCheck.assert(
      FastCheck.property(cells, some, (made, on) => {
        const given = made.map((cell) =>
          cell.moving_to === null || on.includes(cell.moving_to)
            ? cell
            : { ...cell, moving_to: null },
        )
        const plan = planRebalance(given, on)
        const begun = given.flatMap(({ moving_to: to, number, server: from }) =>
          to === null ? [] : [{ number, from, to }],
        )
        expect(plan.slice(0, begun.length)).toEqual(begun)
        const placed = new Map(
          given.map(({ moving_to, number, server }) => [number, moving_to ?? server]),
        )
        const before = on.map((name) => [...placed.values()].filter((one) => one === name).length)
        for (const { from, number, to } of plan.slice(begun.length)) {
          expect(placed.get(number)).toBe(from)
          placed.set(number, to)
        }
        const after = on.map((name) => [...placed.values()].filter((one) => one === name).length)
        expect(after.reduce((sum, count) => sum + count, 0)).toBe(given.length)
        expect(Math.max(...after) - Math.min(...after)).toBeLessThanOrEqual(1)
        // What is missing where it is missing: the larger shares are where the most cells are.
        const shares = before
          .toSorted((a, b) => b - a)
          .map(
            (count, index) =>
              [
                count,
                Math.floor(given.length / on.length) + (index < given.length % on.length ? 1 : 0),
              ] as const,
          )
        const fewest = shares.reduce((sum, [count, share]) => sum + Math.max(0, share - count), 0)
        expect(plan.length - begun.length).toBe(fewest)
      }),
    )
  })
})
