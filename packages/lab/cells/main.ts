/**
 * Cells on two PostgreSQL servers that move between them under load: `npm run cells`. Compares what was acknowledged,
 * delivered and followed with what is there in the end. Fails if anything was lost, or a client got an error.
 */

import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import {
  type CellState,
  type MoveStep,
  runListCells,
  runMoveCell,
  silent,
} from "@tenure/postgres/ops/upkeep"
import * as Effect from "effect/Effect"
import { parseInteger } from "../arguments.ts"
import { median } from "../benchmark/rounds.ts"
import { longestSilence, lossesOf } from "../failover/outcome.ts"
import { type Extender, makeExtender, startFollowers } from "../failover/workload.ts"
import { now } from "../faults/clock.ts"
import { makeSend } from "../faults/workload/http.ts"
import { connectTo } from "../faults/world/database.ts"
import { bundled } from "../faults/world/program.ts"
import { startReceivers } from "../faults/world/receivers.ts"
import { compareCosts, compareDispatchers } from "./costs.ts"
import { names, projectsOf, startProcesses, startServers, tenure } from "./world.ts"

const { values } = parseArgs({
  options: {
    cells: { type: "string", default: "16" },
    processes: { type: "string", default: "4" },
    /** How often cells move from one server to the other, one after the other. */
    moves: { type: "string", default: "12" },
    /** How many projects have followers. */
    followed: { type: "string", default: "2" },
    /** Whether to leave out what cells and dispatchers cost, or all else. */
    "no-costs": { type: "boolean", default: false },
    "only-costs": { type: "boolean", default: false },
  },
})

const cells = parseInteger("cells", values.cells, 2)
const count = parseInteger("processes", values.processes, 1)
const moves = parseInteger("moves", values.moves, 0)
const followed = parseInteger("followed", values.followed, 1)

for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => process.exit(130))

const program = await bundled()

const compare = async (): Promise<void> => {
  await compareCosts(cells)
  await compareDispatchers(program, cells)
}
if (values["only-costs"]) {
  await compare()
  process.exit(0)
}

const servers = await startServers(program)
const { databaseUrl, options, token } = servers
await tenure(databaseUrl, "migrate", "--cells", String(cells))
const processes = await startProcesses(program, servers, count)
const receivers = await startReceivers()
const urls = processes.map(({ url }) => url)
const projects = projectsOf(cells)
const urlOf = (index: number): string => urls[index % urls.length] ?? ""

const admin = makeSend()
const demand = async (method: string, path: string, body: object): Promise<void> => {
  const { problem, status } = await admin.send(urlOf(0), { method, path, token, body })
  if (status !== 200) throw new Error(`${method} ${path}: ${problem ?? status}`)
}

const members = 12
for (const projectId of projects) {
  await demand("PUT", `/v2/projects/${projectId}`, {})
  for (let n = 1; n <= members; n++)
    await demand("PUT", `/v2/projects/${projectId}/memberships/${n}`, {
      end_date: "2098-01-01T00:00:00.000Z",
    })
  await demand("POST", `/v2/projects/${projectId}/integrations/webhooks`, {
    url: receivers.url("fast"),
  })
}

/** Clients: one for each project, which changes processes. */

const working = new AbortController()
const over = new AbortController()
const extenders = projects.map((projectId) => makeExtender({ urls, projectId, token }))
let longest = 0
const pauseMillis = 100

const work = async ({ extend }: Extender, index: number): Promise<void> => {
  for (let turn = index; !working.signal.aborted; turn++) {
    const began = now()
    await extend(turn % urls.length, String(1 + (turn % members)))
    longest = Math.max(longest, now() - began)
    await sleep(pauseMillis)
  }
}

const clients = extenders.map(work)
const following = projects
  .slice(0, followed)
  .map((projectId, index) =>
    startFollowers({ urls: [urlOf(index)], projectId, token, signal: over.signal }),
  )
await sleep(2000)

/** What a move did to the project of its cell. */
interface Observed {
  /** The longest time without a change. */
  readonly silence: number
  /** For how long the last attempt of the switch kept writers out. */
  readonly locked: number
}

const silenceOf = (index: number, since: number): number =>
  longestSilence(extenders[index]?.acknowledged.map(({ at }) => at) ?? [], since, now())

const observed: Array<Observed> = []
const move = async (cell: number, to: string): Promise<void> => {
  const since = now()
  const steps = new Map<MoveStep, number>()
  const onStep = (step: MoveStep) => Effect.sync(() => steps.set(step, now()))
  await Effect.runPromise(runMoveCell(options, undefined, cell, to, { ...silent, onStep }))
  const whole = now() - since
  await sleep(calmMillis)
  const locked = (steps.get("switched") ?? 0) - (steps.get("locked") ?? 0)
  const one = { silence: silenceOf(cell, since), locked }
  observed.push(one)
  console.log(
    `cell ${cell} to ${to}: ${Math.round(whole)} ms, writers waited ${Math.round(locked)} ms, ${Math.round(one.silence)} ms without a change`,
  )
}

const calmMillis = 500
const began = now()
await sleep(10 * calmMillis)
const calm = Math.max(...projects.map((_, index) => silenceOf(index, began)))
console.log(`no move: ${Math.round(calm)} ms without a change`)

const places = async (): Promise<ReadonlyArray<CellState>> =>
  Effect.runPromise(runListCells(options, undefined))
for (let n = 0; n < moves; n++) {
  // Four cells move back and forth.
  const cell = n % Math.min(4, cells)
  const { server } = (await places())[cell] ?? { server: "" }
  await move(cell, server === names[0] ? names[1] : names[0])
}
for (const { number, server } of (await places()).slice(0, Math.ceil(cells / 2)))
  if (server === names[0]) await move(number, names[1])
const rebalanced = now()
console.log(await tenure(databaseUrl, "cells", "rebalance"))
const inRebalance = Math.max(...projects.map((_, index) => silenceOf(index, rebalanced)))
working.abort()
await Promise.all(clients)
for (const { close } of extenders) close()
const refusals = new Map<string, number>()
for (const extender of extenders)
  for (const [refusal, times] of extender.refusals)
    refusals.set(refusal, (refusals.get(refusal) ?? 0) + times)

/** What is there in the end. */

interface Row {
  readonly user_id: string
  readonly to_date: number
}

const schemas = await places()
const sessions = await Promise.all(servers.all.map(({ url }) => connectTo(url)))
const heldOf = async (cell: number) => {
  const on = names.findIndex((name) => name === schemas[cell]?.server)
  const query = sessions[on]?.query
  if (query === undefined) throw new Error(`The cell ${cell} is nowhere`)
  const schema = `tenure_${cell}`
  const audit = await query<Row>(
    `SELECT user_id, (extract(epoch FROM to_date) * 1000)::float8 AS to_date FROM ${schema}.audit WHERE to_date IS NOT NULL`,
  )
  const events = await query<{ id: string; type: string }>(`SELECT id, type FROM ${schema}.events`)
  const [open] = await query<{ n: number }>(
    `SELECT count(*)::integer AS n FROM ${schema}.deliveries`,
  )
  return {
    audit: audit.map((row) => ({ userId: row.user_id, to: Math.round(row.to_date) })),
    events,
    open: open?.n ?? 0,
  }
}
const lossesNow = async () => {
  const delivered = new Set(receivers.arrivals().map(({ headers }) => headers["webhook-id"] ?? ""))
  const total = { lost: 0, undelivered: 0, missed: 0, repeated: 0, resets: 0, events: 0 }
  for (const cell of projects.keys()) {
    const held = await heldOf(cell)
    const followers = following[cell]?.followers ?? []
    const losses = lossesOf(held, extenders[cell]?.acknowledged ?? [], delivered, followers)
    total.events += held.events.length
    for (const name of ["lost", "undelivered", "missed", "repeated", "resets"] as const)
      total[name] += losses[name]
  }
  return total
}
const deadline = now() + 60_000
let losses = await lossesNow()
while (losses.undelivered + losses.missed > 0 && now() < deadline) {
  await sleep(1000)
  losses = await lossesNow()
}
over.abort()
await Promise.all(following.map(({ done }) => done))
const left = await Promise.all(
  sessions.map(({ query }) =>
    query(`SELECT slot_name FROM pg_replication_slots UNION ALL SELECT subname FROM pg_subscription
           UNION ALL SELECT pubname FROM pg_publication
           UNION ALL SELECT nspname FROM pg_namespace WHERE nspname LIKE '%moved'`),
  ),
)
const silences = observed.map(({ silence }) => silence)
const locks = observed.map(({ locked }) => locked)
console.log({
  acknowledged: extenders.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0),
  ...losses,
  received: receivers.arrivals().length,
  followers: following.flatMap(({ followers }) => followers).length,
  moves: observed.length,
  "writers waited, ms": { median: Math.round(median(locks)), most: Math.round(Math.max(...locks)) },
  "without a change, ms": {
    "no move": Math.round(calm),
    median: Math.round(median(silences)),
    most: Math.round(Math.max(...silences)),
    rebalance: Math.round(inRebalance),
  },
  "slowest request, ms": Math.round(longest),
  "errors to clients": Object.fromEntries(refusals),
  "left behind": left.flat().length,
})
await Promise.all(sessions.map(({ close }) => close()))
await Promise.all(processes.map((server) => server.terminate()))
await receivers.close()
admin.close()
await Promise.all(servers.all.map(({ stop }) => stop()))

if (!values["no-costs"]) await compare()
const { lost, missed, repeated, resets, undelivered } = losses
const isSound =
  lost + missed + repeated + resets + undelivered + left.flat().length + refusals.size === 0
process.exit(isSound ? 0 : 1)
