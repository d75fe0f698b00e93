/** What cells cost the PostgreSQL servers, and how fast several processes deliver from them. */

import { setTimeout as sleep } from "node:timers/promises"
import { type Tenure, createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { median } from "../benchmark/rounds.ts"
import { now } from "../faults/clock.ts"
import { makeStage } from "../faults/world/stage.ts"
import { cpuOf, names, projectsOf, startServer, startServers } from "./world.ts"

const warmUpRounds = 3
const rounds = 5
const extensions = 3000

const openTenure = (stores: ReturnType<typeof postgres>) =>
  createTenure({
    stores,
    webhooks: { dispatch: false, allowedNetworks: ["127.0.0.0/8"] },
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  })

/** Extends memberships in all projects in turn, `at` as many at a time. */
const extendAll = async ({ memberships }: Tenure, projects: ReadonlyArray<string>, at: number) => {
  let next = 0
  const work = async (): Promise<void> => {
    while (next < extensions) {
      const n = next++
      const projectId = projects[n % projects.length] ?? ""
      const endDate = new Date(Date.now() + 1e10 + n).toISOString()
      await memberships.extend({ projectId, userId: "1", endDate })
    }
  }
  await Promise.all(Array.from({ length: at }, work))
}

/** Compares the processor time that an extension takes: cells on two servers, and everything on one. */
export const compareCosts = async (cells: number): Promise<void> => {
  const stage = makeStage()
  const [one, ...two] = await Promise.all([
    startServer(stage),
    startServer(stage),
    startServer(stage),
  ])
  const single = await openTenure(postgres({ url: one.url }))
  const several = await openTenure(
    postgres({ servers: two.map(({ url }, n) => ({ name: names[n] ?? "", url })), cells }),
  )
  const projects = projectsOf(cells)
  for (const target of [single, several])
    for (const projectId of projects) {
      await target.memberships.createProject(projectId)
      await target.memberships.grant({ projectId, userId: "1", endDate: new Date() })
    }
  // Each connection plans the statements for each cell, before it keeps the plans.
  for (const target of [single, several])
    for (let round = 0; round < warmUpRounds; round++) await extendAll(target, projects, 16)
  for (const { name, inOne, inSeveral } of [
    { name: "one at a time", inOne: 1, inSeveral: 1 },
    { name: "16 at a time in each cell", inOne: 16, inSeveral: 16 * cells },
    { name: "64 at a time in all", inOne: 64, inSeveral: 64 },
  ]) {
    const micros: Record<"one" | "several", Array<number>> = { one: [], several: [] }
    for (let round = 0; round < rounds; round++)
      for (const [kind, target, servers, at] of [
        ["one", single, [one], inOne],
        ["several", several, two, inSeveral],
      ] as const) {
        const before = await cpuOf(servers)
        await extendAll(target, projects, at)
        micros[kind].push((1000 * ((await cpuOf(servers)) - before)) / extensions)
      }
    const ratios = micros.several.map((cost, round) => cost / (micros.one[round] ?? Number.NaN))
    console.log(`an extension, ${name}:`, {
      "one cell on one server, µs": Math.round(median(micros.one)),
      [`${cells} cells on two servers, µs`]: Math.round(median(micros.several)),
      ratio: Number(median(ratios).toFixed(2)),
    })
  }
  await single.close()
  await several.close()
  await stage.end()
}

const backlog = 12_000

/** Compares how many deliveries a second one and three processes make. */
export const compareDispatchers = async (cells: number): Promise<void> => {
  const stage = makeStage()
  const { options, startProcesses } = await startServers(stage, cells)
  const receivers = await stage.receivers()
  const setter = await openTenure(postgres({ servers: options, migrate: false }))
  const projects = projectsOf(cells)
  for (const projectId of projects) {
    await setter.memberships.createProject(projectId)
    await setter.webhooks.create({ projectId, url: receivers.url("fast") })
  }
  const rates = new Map<number, Array<number>>()
  for (let round = 0; round < 3; round++)
    for (const count of [1, 3]) {
      const start = receivers.arrivals().length
      let sent = 0
      const publish = async (): Promise<void> => {
        while (sent < backlog) {
          const projectId = projects[sent++ % cells] ?? ""
          await setter.events.publish({ projectId, type: "some.event", data: {} })
        }
      }
      await Promise.all(Array.from({ length: 32 }, publish))
      const processes = await startProcesses(count)
      const delivered = () => receivers.arrivals().length - start
      // The first half warms the processes up, and their connections.
      while (delivered() < backlog / 2) await sleep(20)
      const [first, begin] = [delivered(), now()]
      while (delivered() < backlog) await sleep(20)
      const rate = ((backlog - first) / (now() - begin)) * 1000
      rates.set(count, [...(rates.get(count) ?? []), rate])
      await Promise.all(processes.map((one) => one.terminate()))
    }
  const [alone, together] = [median(rates.get(1) ?? []), median(rates.get(3) ?? [])]
  console.log("deliveries a second:", {
    "one process": Math.round(alone),
    "three processes": Math.round(together),
    ratio: Number((together / alone).toFixed(2)),
  })
  await setter.close()
  await stage.end()
}
