/**
 * Cells on two PostgreSQL servers that move between them under load: `npm run cells`. Compares what was acknowledged,
 * delivered and followed with what is there in the end. Fails if anything was lost, or a client got an error.
 */

import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { type MoveStep, runListCells, runMoveCell, silent } from "@tenure/postgres/ops/upkeep"
import * as Effect from "effect/Effect"
import { parseInteger } from "../arguments.ts"
import { median } from "../benchmark/rounds.ts"
import {
  isAcknowledged,
  isNothing,
  longestSilence,
  lossesOf,
  refusalsOf,
} from "../faults/checks/losses.ts"
import { now } from "../faults/clock.ts"
import { readState } from "../faults/state.ts"
import { makeClient, startFollowers } from "../faults/workload/extending.ts"
import { makeSend } from "../faults/workload/http.ts"
import { makeRecorder } from "../faults/workload/recorder.ts"
import { connectTo } from "../faults/world/database.ts"
import { type Scenario, makeStage } from "../faults/world/stage.ts"
import { compareCosts, compareDispatchers } from "./costs.ts"
import { names, projectsOf, startServers } from "./world.ts"

const options = {
  cells: { type: "string", default: "16" },
  processes: { type: "string", default: "4" },
  /** How often cells move from one server to the other, one after the other. */
  moves: { type: "string", default: "12" },
  /** How many projects have followers. */
  followed: { type: "string", default: "2" },
  /** Whether to leave out what cells and dispatchers cost, or all else. */
  "no-costs": { type: "boolean", default: false },
  "only-costs": { type: "boolean", default: false },
} as const

const members = 12
const pauseMillis = 100
const calmMillis = 500
const longestMillis = 60_000

const sizeOf = (values: ReadonlyArray<number>) => ({
  median: Math.round(median(values)),
  most: Math.round(Math.max(...values)),
})

/** Moves cells under load. Returns whether nothing was lost or left behind. */
const moveCells = async (cells: number, count: number, moves: number, followed: number) => {
  const stage = makeStage()
  const { all, options: servers, startProcesses, tenure, token } = await startServers(stage, cells)
  const processes = await startProcesses(count)
  const receivers = await stage.receivers()
  const projects = projectsOf(cells)
  const processOf = (index: number) => processes.slice(index % count)[0] ?? processes[0]

  const admin = stage.own(makeSend(), ({ close }) => close())
  const demand = async (method: string, path: string, body: object): Promise<void> => {
    const url = processOf(0)?.url ?? ""
    const { problem, status } = await admin.send(url, { method, path, token, body })
    if (status !== 200) throw new Error(`${method} ${path}: ${problem ?? status}`)
  }
  for (const projectId of projects) {
    const path = `/v2/projects/${projectId}`
    await demand("PUT", path, {})
    for (let n = 1; n <= members; n++)
      await demand("PUT", `${path}/memberships/${n}`, { end_date: "2098-01-01T00:00:00.000Z" })
    await demand("POST", `${path}/integrations/webhooks`, { url: receivers.url("fast") })
  }

  // A client for each project changes processes.
  const working = new AbortController()
  const over = new AbortController()
  const recorder = makeRecorder(0)
  const work = async (projectId: string, index: number): Promise<void> => {
    const { close, extend } = makeClient(recorder, token)
    for (let turn = index; !working.signal.aborted; turn++) {
      const server = processOf(turn)
      if (server !== undefined) await extend(server, projectId, String(1 + (turn % members)))
      await sleep(pauseMillis)
    }
    close()
  }
  const clients = projects.map(work)
  const following = projects
    .slice(0, followed)
    .map((projectId, index) =>
      startFollowers(
        processes.slice(index % count, (index % count) + 1),
        projectId,
        token,
        over.signal,
      ),
    )
  await sleep(2000)

  const silenceOf = (projectId: string | undefined, since: number): number => {
    const own = recorder.operations().filter((one) => one.projectId === projectId)
    const instants = own.filter(isAcknowledged).map(({ end }) => end)
    return longestSilence(instants, since, now())
  }
  const longestOf = (since: number): number =>
    Math.max(...projects.map((projectId) => silenceOf(projectId, since)))

  const silences: Array<number> = []
  /** For how long the last attempt at each switch kept writers out. */
  const locks: Array<number> = []
  const move = async (cell: number, to: string): Promise<void> => {
    const since = now()
    const steps = new Map<MoveStep, number>()
    const onStep = (step: MoveStep) => Effect.sync(() => steps.set(step, now()))
    await Effect.runPromise(runMoveCell(servers, undefined, cell, to, { ...silent, onStep }))
    const whole = now() - since
    await sleep(calmMillis)
    const locked = (steps.get("switched") ?? 0) - (steps.get("locked") ?? 0)
    const silence = silenceOf(projects[cell], since)
    silences.push(silence)
    locks.push(locked)
    console.log(
      `cell ${cell} to ${to}: ${Math.round(whole)} ms, writers waited ${Math.round(locked)} ms, ${Math.round(silence)} ms without a change`,
    )
  }

  const began = now()
  await sleep(10 * calmMillis)
  const calm = longestOf(began)
  console.log(`no move: ${Math.round(calm)} ms without a change`)
  const places = () => Effect.runPromise(runListCells(servers, undefined))
  for (let n = 0; n < moves; n++) {
    // Four cells move back and forth.
    const cell = n % Math.min(4, cells)
    const { server } = (await places())[cell] ?? { server: "" }
    await move(cell, server === names[0] ? names[1] : names[0])
  }
  for (const { number, server } of (await places()).slice(0, Math.ceil(cells / 2)))
    if (server === names[0]) await move(number, names[1])
  const rebalanced = now()
  console.log(await tenure("cells", "rebalance"))
  const inRebalance = longestOf(rebalanced)
  working.abort()
  await Promise.all(clients)

  const operations = recorder.operations()
  const homes = await places()
  const sessions = await Promise.all(all.map(({ url }) => connectTo(url)))
  const followers = following.flatMap((one) => one.followers)
  const lossesNow = async () => {
    const states = await Promise.all(
      projects.map((_, cell) => {
        const session = sessions[names.findIndex((name) => name === homes[cell]?.server)]
        if (session === undefined) throw new Error(`The cell ${cell} is nowhere`)
        return readState(session, `tenure_${cell}`)
      }),
    )
    const state = {
      memberships: states.flatMap(({ memberships }) => memberships),
      audit: states.flatMap(({ audit }) => audit),
      events: states.flatMap(({ events }) => events),
      deliveries: states.flatMap(({ deliveries }) => deliveries),
      webhooks: states.flatMap(({ webhooks }) => webhooks),
    }
    const losses = lossesOf({ state, operations, arrivals: receivers.arrivals() }, followers)
    return { losses, events: state.events.length }
  }
  const deadline = now() + longestMillis
  let found = await lossesNow()
  while (found.losses.undelivered + found.losses.missed > 0 && now() < deadline) {
    await sleep(1000)
    found = await lossesNow()
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
  const refusals = refusalsOf(operations)
  console.log({
    acknowledged: operations.filter(isAcknowledged).length,
    ...found.losses,
    events: found.events,
    received: receivers.arrivals().length,
    followers: followers.length,
    moves: silences.length,
    "writers waited, ms": sizeOf(locks),
    "without a change, ms": {
      "no move": Math.round(calm),
      ...sizeOf(silences),
      rebalance: Math.round(inRebalance),
    },
    "slowest request, ms": Math.round(Math.max(...operations.map(({ end, start }) => end - start))),
    "errors to clients": Object.fromEntries(refusals),
    "left behind": left.flat().length,
  })
  await Promise.all(sessions.map(({ close }) => close()))
  await Promise.all(processes.map((server) => server.terminate()))
  await stage.end()
  return isNothing(found.losses) && left.flat().length + refusals.size === 0
}

export const run: Scenario = async (_, args) => {
  const { values } = parseArgs({ args, options })
  const cells = parseInteger("cells", values.cells, 2)
  const count = parseInteger("processes", values.processes, 1)
  const moves = parseInteger("moves", values.moves, 0)
  const followed = parseInteger("followed", values.followed, 1)
  const isSound = values["only-costs"] || (await moveCells(cells, count, moves, followed))
  if (values["only-costs"] || !values["no-costs"]) {
    await compareCosts(cells)
    await compareDispatchers(cells)
  }
  return isSound
}
