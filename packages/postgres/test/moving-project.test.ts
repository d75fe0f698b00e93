/** Moving a project from one database to another. */

import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { PgClient } from "@effect/sql-pg"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { startReceiver } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest"
import { type ShardOptions, migrate, postgres } from "../src/index.ts"
import { type ProjectMove, runCancelMove, runMoveProject } from "../src/ops/upkeep.ts"
import { clientLayer, execute } from "./harness.ts"

const [home, other] = ["tenure_moving_home", "tenure_moving_other"] as const
type Name = typeof home | typeof other

const urlOf = (database: string): string => {
  const url = new URL(inject("databaseUrl"))
  url.pathname = database
  return url.href
}

/** A database with the tables, which is copied for each test. */
const model = "tenure_moving_model"

const dropping = (...names: ReadonlyArray<string>) =>
  names.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)

const copying = [home, other].map((name) => `CREATE DATABASE ${name} TEMPLATE ${model}`)

let tenure: Tenure
beforeAll(() =>
  Effect.gen(function* () {
    yield* execute(...dropping(model), `CREATE DATABASE ${model}`)
    yield* Effect.provide(migrate(), clientLayer({ url: Redacted.make(urlOf(model)) }))
  }).pipe(Effect.runPromise),
)
beforeEach(() => Effect.runPromise(execute(...dropping(home, other), ...copying)))
afterEach(() => tenure.close())
afterAll(() => Effect.runPromise(execute(...dropping(home, other, model))))

/** Where the project is by the map, which can change while Tenure runs. */
let place: Name = home
const isIn = (name: Name) => (id: string) => (id === "p1" ? place : other) === name

const open = async (options: TenureOptions = {}): Promise<void> => {
  const shard = (name: Name): ShardOptions => ({
    name,
    url: urlOf(name),
    projects: isIn(name),
    maxConnections: 4,
  })
  tenure = await createTenure({
    stores: postgres([shard(home), shard(other)]),
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    ...options,
  })
}

const client = (name: Name) =>
  Effect.map(
    Layer.build(PgClient.layer({ url: Redacted.make(urlOf(name)), maxConnections: 1 })),
    Context.get(PgClient.PgClient),
  )

/** Runs a move, or its cancellation, between two databases. */
const between = (
  from: Name,
  to: Name,
  run: (move: ProjectMove) => Effect.Effect<void, unknown>,
  onStep?: ProjectMove["onStep"],
): Promise<void> =>
  Effect.gen(function* () {
    const [source, target] = [yield* client(from), yield* client(to)]
    yield* run({ source, target, schema: undefined, projectId: "p1", onStep })
  }).pipe(Effect.scoped, Effect.runPromise)

const mover = fileURLToPath(new URL("mover.ts", import.meta.url))

/** Moves the project in a process, which is killed at a point of the move. */
const killed = async (from: Name, to: Name, point: string): Promise<void> => {
  const child = fork(mover, [urlOf(from), urlOf(to), point], { execArgv: ["-C", "@tenure/source"] })
  const ended = once(child, "exit")
  expect(await Promise.race([once(child, "message"), ended])).toContain(point)
  child.kill("SIGKILL")
  await ended
}

/** Moves the project, but dies after a step. */
const died = async (from: Name, to: Name, last: string): Promise<void> => {
  const dying = (step: string) => (step === last ? Effect.die("died") : Effect.void)
  await expect(between(from, to, runMoveProject, dying)).rejects.toThrow("died")
}

const millis = (count: number) => 4_000_000_000_000 + count

/** All that clients can see of the project. */
const seen = async () => {
  const [project] = await tenure.memberships.listProjects({ within: new Set(["p1"]) })
  const members = await tenure.memberships.list({ projectId: "p1" })
  const history = await tenure.memberships.history({ projectId: "p1" })
  const webhooks = await tenure.webhooks.list({ projectId: "p1" })
  const { events } = await tenure.events.read({ projectId: "p1", after: "start" })
  const ids = events.map(({ id }) => id).toSorted()
  const deliveries = await Promise.all(
    webhooks.map(({ id }) => tenure.webhooks.deliveries({ projectId: "p1", webhookId: id })),
  )
  return {
    project,
    members,
    history: history.map(({ cursor: _, ...row }) => row),
    webhooks,
    ids,
    deliveries,
  }
}

/** Makes a project with something in every table. */
const fill = async (url: string): Promise<void> => {
  const { memberships } = tenure
  await memberships.createProject("p1")
  await memberships.createProject("p2")
  const webhook = await tenure.webhooks.create({ projectId: "p1", url })
  await tenure.webhooks.create({ projectId: "p1", url: `${url}/other` })
  for (let user = 1001; user < 1010; user++)
    await memberships.grant({ projectId: "p1", userId: String(user), endDate: millis(user) })
  await memberships.extendAll({ projectId: "p1", endDate: millis(1005) })
  const again = { projectId: "p1", userId: "1003", endDate: millis(2000), idempotencyKey: "once" }
  await memberships.extend(again)
  await tenure.webhooks.rotateSecret({ projectId: "p1", webhookId: webhook.id })
}

const unavailable = { _tag: "StoreUnavailable" }

/** Where a move can be killed. */
const points = ["parked", "being copied", "copied", "found at the target", "deleted at the source"]

const directions = [
  { name: "from the home", from: home, to: other },
  { name: "to the home", from: other, to: home },
] as const

describe.each(directions)("a move $name", ({ from, to }) => {
  const prepared = async () => {
    place = from
    await open({ webhooks: { dispatch: false, allowedNetworks: ["127.0.0.0/8"] } })
    await fill("http://127.0.0.1:1/hook")
    return { before: await seen(), key: await tenure.apiKeys.issue({ projects: ["p1"] }) }
  }

  const checkMoved = async ({ before, key }: Awaited<ReturnType<typeof prepared>>) => {
    const after = await seen()
    expect(after).toEqual(before)
    const [listed] = await tenure.apiKeys.list()
    expect(listed).toMatchObject({ id: key.id, projects: new Set(["p1"]) })
    const { total } = await tenure.memberships.extendAll({ projectId: "p1", endDate: millis(3000) })
    expect(total).toBe(9)
    const repeated = { userId: "1003", endDate: millis(2000), idempotencyKey: "once" }
    await tenure.memberships.extend({ projectId: "p1", ...repeated })
    expect(await tenure.memberships.find({ projectId: "p1", userId: "1003" })).toMatchObject({
      endDate: millis(3000),
    })
  }

  it("keeps everything of the project, and its keys", async () => {
    const state = await prepared()
    const { cursor } = await tenure.events.read({ projectId: "p1" })
    await between(from, to, runMoveProject)
    await expect(seen()).rejects.toMatchObject(unavailable)
    await expect(tenure.memberships.createProject("p1")).rejects.toMatchObject(unavailable)
    place = to
    await checkMoved(state)
    await expect(tenure.events.read({ projectId: "p1", after: cursor })).rejects.toMatchObject({
      _tag: "CursorExpired",
    })
    // Back again, past what housekeeping has left of the first stay.
    await between(to, from, runMoveProject)
    place = from
    expect(await tenure.memberships.find({ projectId: "p1", userId: "1003" })).toMatchObject({
      endDate: millis(3000),
    })
    const [listed] = await tenure.apiKeys.list()
    expect(listed).toMatchObject({ projects: new Set(["p1"]) })
  })

  it("that is killed at each of its points in turn can be repeated", async () => {
    const state = await prepared()
    for (const point of points) {
      await killed(from, to, point)
      if (point !== "deleted at the source") {
        await expect(
          tenure.events.publish({ projectId: "p1", type: "late", data: {} }),
        ).rejects.toMatchObject(unavailable)
      }
      for (const mapped of [from, to]) {
        place = mapped
        const listed = await tenure.memberships.listProjects()
        expect(listed.find(({ id }) => id === "p1")).toEqual(state.before.project)
        expect(listed).toHaveLength(2)
      }
      place = from
    }
    await between(from, to, runMoveProject)
    place = to
    await checkMoved(state)
    await between(from, to, runMoveProject)
  })

  it.each(["parked", "copied"])(
    "that dies when the project is %s can be cancelled",
    async (last) => {
      const state = await prepared()
      await died(from, to, last)
      const { createProject, deleteProject } = tenure.memberships
      for (const mapped of [to, from]) {
        place = mapped
        await expect(createProject("p1")).rejects.toMatchObject(unavailable)
        await expect(deleteProject("p1")).rejects.toMatchObject(unavailable)
      }
      await between(from, to, runCancelMove)
      await checkMoved(state)
      await between(from, to, runMoveProject)
      place = to
      expect(await tenure.memberships.find({ projectId: "p1", userId: "1003" })).toMatchObject({
        endDate: millis(3000),
      })
    },
  )
})

it("has members watched at the target whom nobody has watched at the source", async () => {
  place = home
  await open({ expiry: { reminders: ["1 day"] } })
  const ask = (name: Name, statement: string) =>
    Effect.runPromise(
      Effect.scoped(Effect.flatMap(client(name), (sql) => sql.unsafe<object>(statement))),
    )
  const watched =
    "SELECT FROM tenure.expiry_settings WHERE NOT EXISTS (SELECT FROM tenure.expiry_passes)"
  for (const name of [home, other]) await expect.poll(() => ask(name, watched)).toHaveLength(1)
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: millis(0) })
  await ask(home, "UPDATE tenure.memberships SET next_check_at = NULL")
  await between(home, other, runMoveProject)
  await expect
    .poll(() => ask(other, "SELECT FROM tenure.memberships WHERE next_check_at IS NOT NULL"))
    .toHaveLength(1)
})

it("waits for a transaction that has seen the project, and writes later", async () => {
  place = home
  await open({ webhooks: { dispatch: false } })
  await tenure.memberships.createProject("p1")
  const seeing = Effect.gen(function* () {
    const sql = yield* client(home)
    const watching = yield* client(home)
    // When the move has asked whether it can go on, as it does until it can.
    const asked = new Set<string>()
    const countAsked = async () => {
      const rows = await Effect.runPromise(
        watching.unsafe<{ readonly at: string }>(
          `SELECT query_start::text AS at FROM pg_stat_activity
           WHERE query LIKE '%pg_snapshot_xmin%AS holds%' AND pid <> pg_backend_pid()`,
        ),
      )
      for (const { at } of rows) asked.add(at)
      return asked.size
    }
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql.unsafe("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield* sql.unsafe("SELECT FROM tenure.projects")
        const moving = between(home, other, runMoveProject)
        yield* Effect.promise(() => expect.poll(countAsked).toBeGreaterThan(2))
        yield* sql.unsafe(`
          INSERT INTO tenure.memberships (project_number, user_id, end_date, seq)
          SELECT p.number, '1001', 'epoch', 1 FROM tenure.projects p WHERE p.id = 'p1'
        `)
        return moving
      }),
    )
  })
  await Effect.runPromise(Effect.scoped(seeing))
  place = other
  expect(await tenure.memberships.list({ projectId: "p1" })).toHaveLength(1)
})

it("refuses what cannot be moved, or is not moved", async () => {
  place = home
  await open()
  const refused = (run: typeof runMoveProject, from: Name, to: Name) =>
    between(from, to, run).then(() => "done", String)
  expect(await refused(runMoveProject, home, other)).toContain(
    "There is no project p1 at the source",
  )
  expect(await refused(runMoveProject, home, home)).toContain("are the same database")
  expect(await refused(runCancelMove, home, other)).toContain("No move of p1 has begun there")
  await tenure.memberships.createProject("p1")
  expect(await refused(runCancelMove, home, other)).toContain("No move of p1 has begun there")
  place = other
  await expect(tenure.memberships.createProject("p1")).rejects.toMatchObject(unavailable)
  place = home
  await between(home, other, runMoveProject)
  expect(await refused(runCancelMove, home, other)).toContain("No move of p1 has begun there")
})

it("loses no delivery, nor the order of a member's, while servers go on, and no acknowledged change", async () => {
  const [receiver, ordered] = [await startReceiver(), await startReceiver()]
  place = home
  await open({ webhooks: { allowedNetworks: ["127.0.0.0/8"] } })
  await tenure.memberships.createProject("p1")
  await tenure.webhooks.create({ projectId: "p1", url: receiver.url })
  await tenure.webhooks.create({ projectId: "p1", url: ordered.url, ordered: true })
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: millis(0) })
  const published = new Set<string>()
  let refusals = 0
  const ending = new AbortController()
  const publishing = (async () => {
    for (let n = 0; !ending.signal.aborted; n++) {
      const data = { user_id: "1001", n }
      await tenure.events.publish({ projectId: "p1", type: "counted", data }).then(
        (id) => published.add(id),
        () => refusals++,
      )
    }
  })()
  for (const [from, to] of [
    [home, other],
    [other, home],
  ] as const) {
    await expect.poll(() => published.size).toBeGreaterThan(100)
    await between(from, to, runMoveProject)
    place = to
    const before = published.size
    await expect.poll(() => published.size).toBeGreaterThan(before + 50)
  }
  ending.abort()
  await publishing
  const receivedBy = ({ received }: typeof receiver) =>
    new Set(received.map(({ headers }) => String(headers["webhook-id"])))
  for (const one of [receiver, ordered])
    await expect.poll(() => [...published].filter((id) => !receivedBy(one).has(id))).toEqual([])
  expect([...receivedBy(ordered)].filter((id) => published.has(id))).toEqual([...published])
  expect(refusals).toBeGreaterThan(0)
  const { events } = await tenure.events.read({ projectId: "p1", after: "start", limit: 1000 })
  const found = new Set<string>(events.map(({ id }) => id))
  if (published.size < 1000) expect([...published].filter((id) => !found.has(id))).toEqual([])
  for (const one of [receiver, ordered]) one.close()
})

it("repetitions are answered after a move to where another project has used their key", async () => {
  place = home
  await open({ webhooks: { dispatch: false, allowedNetworks: ["127.0.0.0/8"] } })
  await fill("http://127.0.0.1:1/hook")
  const idempotencyKey = "once"
  const there = { projectId: "p2", userId: "1003", endDate: millis(1), idempotencyKey }
  await tenure.memberships.grant(there)
  await between(home, other, runMoveProject)
  place = other
  const here = { projectId: "p1", userId: "1003", endDate: millis(2000), idempotencyKey }
  for (const projectId of ["p1", "p2"]) {
    await tenure.memberships.grant({ projectId, userId: "1003", endDate: millis(9) })
  }
  await tenure.memberships.extend(here)
  await tenure.memberships.grant(there)
  for (const projectId of ["p1", "p2"]) {
    const found = await tenure.memberships.find({ projectId, userId: "1003" })
    expect(found).toMatchObject({ endDate: millis(9) })
  }
})
