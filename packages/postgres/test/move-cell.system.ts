/** Moves that die on the way, that others complete, or that are refused. */

import { PgClient } from "@effect/sql-pg"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { expect, it } from "vitest"
import { type CellDirectory, makeCellExecutor } from "../src/connection/cells.ts"
import { makeServer } from "../src/connection/executor.ts"
import { runCancelMove } from "../src/ops/cells.ts"
import { type MoveStep, moveCell, moveSteps, silent } from "../src/ops/move-cell.ts"
import { clientLayer } from "./harness.ts"
import { fill, names, run, twoServers } from "./moving-cells.ts"

const { leftovers, move, open, options, places, projectIn, sqlOn, urlOf } = twoServers()

/** Moves a cell until a step is done, and dies: it leaves everything as it is. */
const moveUntil = (number: number, to: string, last: MoveStep) =>
  Effect.gen(function* () {
    const servers = yield* Effect.forEach(options(), ({ name, url }) =>
      Effect.map(
        Layer.build(clientLayer({ url: Redacted.make(url), maxConnections: 2 })),
        (built) => ({ name, client: Context.get(built, PgClient.PgClient), replicationUrl: url }),
      ),
    )
    const [home] = servers
    if (home === undefined) return yield* Effect.die("no servers")
    const byName = new Map(servers.map((server) => [server.name, server]))
    const ends = { home: home.client, homeSchema: "tenure", servers: byName }
    return yield* moveCell(ends, number, to, {
      ...silent,
      onStep: (step) => (step === last ? Effect.die("killed") : Effect.void),
    })
  }).pipe(Effect.scoped, Effect.exit, run)

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
})

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
})

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

it("refuses unknown cells and servers", async () => {
  await expect(move(0, "third")).rejects.toThrow("There is no server third")
  await expect(move(9, "second")).rejects.toThrow("There is no cell 9")
})
