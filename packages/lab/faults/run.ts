/** A run: a seed's world, faults and workload, and what they leave in the record. */

import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import { drainMillisFor } from "./checks/deliveries.ts"
import { missedBy } from "./checks/feed.ts"
import { grownAmong } from "./checks/processes.ts"
import { now } from "./clock.ts"
import { type Fault, type Holding, type Manner, type Run, type Size, manners } from "./history.ts"
import { kinds } from "./kinds.ts"
import { random } from "./random.ts"
import type { Planned, Schedule } from "./schedule.ts"
import { countOpen, endHolds, isAnnouncing, readState } from "./state.ts"
import { runClient, runGreedyClient, runProbes, warmUp } from "./workload/clients.ts"
import { lazyReaders, runCrowd, runLazyReader, runRevoked } from "./workload/crowd.ts"
import {
  createWebhook,
  runBulkHost,
  runEnding,
  runHost,
  runLateHost,
  runRush,
} from "./workload/hosts.ts"
import { intruderKey, runIntruders } from "./workload/intruders.ts"
import { readerKeys, startNaiveReader, startReaders } from "./workload/readers.ts"
import { type Scene, makeRecorder } from "./workload/recorder.ts"
import {
  type Ground,
  type World,
  host,
  leads,
  limits,
  makeWorld,
  places,
  projects,
  retrySchedule,
} from "./world/world.ts"

const clientKeys = ["c1", "c2", "c3", "c4"]
const greedyKeys = Array.from({ length: 12 }, (_, index) => `greedy${index}`)
const crowdKey = "crowd"
const lazyKeys = lazyReaders.map(({ key }) => key)
const keys = [...clientKeys, ...greedyKeys, ...readerKeys, crowdKey, ...lazyKeys, intruderKey]

/** Three webhooks for each project: one that is well, and two with any manners. */
const createWebhooks = async ({ recorder, seed, world }: Scene): Promise<void> => {
  const choose = random(seed, "webhooks")
  for (const projectId of projects) {
    const chosen: ReadonlyArray<Manner> = ["fast", ...choose.shuffle(manners).slice(0, 2)]
    for (const manner of chosen) await createWebhook(world, recorder, projectId, manner)
  }
}

const cause = async (world: World, planned: Planned, after: number): Promise<Fault> => {
  await sleep(after)
  const { kind, millis, target } = planned
  const start = now()
  const end = await kinds[kind].cause(world, planned)
  await sleep(millis)
  await end()
  return { kind, target, start, end: now() }
}

const samplesOf = async ({ servers }: World) => {
  const all = await Promise.all([...servers.values()].map((server) => server.sample()))
  return all.filter((sample) => sample !== undefined)
}

// Whoever collects garbage answers nothing meanwhile.
const samplingMillis = 20_000

/**
 * Causes the faults in a schedule, with a calm before and after each episode, unless its time is over: on a busy
 * machine, processes take longer to start again. Tells about the last calm.
 */
const runFaults = async (
  world: World,
  { calmMillis, episodes }: Schedule,
  onLastCalm: () => void,
) => {
  const faults: Array<Fault> = []
  const samples = [...(await samplesOf(world))]
  const lastBegin = now() + (episodes.at(-1)?.[0]?.at ?? 0)
  await sleep(episodes[0]?.[0]?.at ?? 0)
  for (const episode of episodes) {
    const begin = episode[0]?.at ?? 0
    const caused = episode.map((planned) => cause(world, planned, planned.at - begin))
    faults.push(...(await Promise.all(caused)))
    const isLast = episode === episodes.at(-1) || now() > lastBegin
    if (isLast) onLastCalm()
    await sleep(calmMillis)
    const last = samples.at(-1)?.at ?? -Infinity
    if (now() - last > samplingMillis) samples.push(...(await samplesOf(world)))
    if (isLast) break
  }
  return { faults, samples }
}

/** Has the clients at work until all faults have healed. */
const work = async (calm: Scene, schedule: Schedule) => {
  let over = false
  let isLastCalm = false
  const scene: Scene = { ...calm, isOver: () => over }
  // Afterwards, ends have most time before the run is over.
  const ending: Scene = { ...calm, isOver: () => over || isLastCalm }
  const crowd = runCrowd(scene, crowdKey)
  const revoked = runRevoked(scene)
  const intruders = runIntruders(scene)
  const working = [
    ...lazyReaders.map((lazy) => runLazyReader(scene, lazy)),
    ...clientKeys.map((key) => runClient(scene, key)),
    runGreedyClient(scene, greedyKeys),
    runHost(scene),
    runBulkHost(scene),
    runEnding(ending),
    runRush(ending),
    ...["late0", "late1", "late2"].map((name) => runLateHost(scene, name)),
    runProbes(scene),
  ]
  try {
    const caused = await runFaults(calm.world, schedule, () => (isLastCalm = true))
    over = true
    return {
      ...caused,
      connections: await crowd,
      revocations: await revoked,
      intrusions: await intruders,
    }
  } finally {
    over = true
    await Promise.all(working)
  }
}

/** Waits until something has come about, for so long at most. */
const until = async (
  isDone: () => Promise<boolean> | boolean,
  maxMillis: number,
  pauseMillis: number,
): Promise<void> => {
  const deadline = now() + maxMillis
  while (!(await isDone()) && now() < deadline) await sleep(pauseMillis)
}

// More than what is documented, so that what is late is seen, too.
const announceMillis = 20_000
const drainMillis = 60_000
const catchUpMillis = 20_000

/**
 * Waits until every end date that is near has come and was announced, every delivery has ended, and every reader has
 * got every event, but not much longer than that may take. Returns how many deliveries there were, and how long they
 * took, in milliseconds.
 */
const settle = async (
  { recorder, world: { database, receivers } }: Scene,
  { pace }: Schedule,
  readers: ReturnType<typeof startReaders>["readers"],
) => {
  await sleep(Math.max(0, recorder.latestAhead() - now()))
  const session = await database.connect()
  await until(async () => !(await isAnnouncing(session)), announceMillis, 100)
  receivers.becomeWell()
  const begin = now()
  const backlog = pace === 1 ? 0 : await countOpen(session)
  const hasDrained = async () => {
    if ((await countOpen(session)) === 0) return true
    await endHolds(session)
    return false
  }
  await until(hasDrained, drainMillis + drainMillisFor(backlog), 200)
  const drainedMillis = now() - begin
  const { events } = await readState(session)
  await session.close()
  const haveCaughtUp = () =>
    readers().every((reader) => missedBy(reader, { state: { events } }).length === 0)
  await until(haveCaughtUp, catchUpMillis, 100)
  return { backlog, drainedMillis }
}

const holdings = async ({ servers }: World): Promise<ReadonlyMap<string, Holding>> => {
  const all = [...servers].map(async ([name, server]) => [name, await server.holding()] as const)
  return new Map(await Promise.all(all))
}

// A server closes a connection to a receiver that it has not used for ten seconds.
const keptAliveMillis = 12_000

/** Returns what servers hold once they have closed the connections that they do not use any more. */
const settledSizes = async (
  world: World,
  before: ReadonlyMap<string, Holding>,
): Promise<ReadonlyArray<Size>> => {
  let sizes: ReadonlyArray<Size> = []
  const isFlat = async () => {
    sizes = [...(await holdings(world))].map(([process, after]) => ({
      process,
      before: before.get(process) ?? { bytes: 0, handles: 0 },
      after,
    }))
    return grownAmong(sizes).length === 0
  }
  await until(isFlat, keptAliveMillis, 500)
  return sizes
}

/** Ends all processes and reads what they leave behind. */
const leave = async ({ closeHost, database, hostLog, servers }: World) => {
  const asked = now()
  const ending = [...servers.values()].map((server) => server.terminate())
  const code = (await closeHost()) ? 0 : 1
  const ofHost = { process: host, code, signal: null, millis: now() - asked }
  await Promise.all(ending)
  const session = await database.connect()
  const state = await readState(session)
  await session.close()
  const logs = [...servers].map(([process, { log }]) => ({ process, text: log() }))
  return {
    exits: [...[...servers.values()].flatMap((server) => server.exits()), ofHost],
    state,
    logs: [...logs, { process: host, text: hostLog() }],
  }
}

/** Performs a seed's run. `slackMillis` is how much later than documented things may happen. */
export const perform = async (
  ground: Ground,
  seed: number,
  schedule: Schedule,
  slackMillis: number,
): Promise<Run> => {
  const lag = monitorEventLoopDelay()
  const world = await makeWorld(ground, seed, keys, schedule)
  try {
    const recorder = makeRecorder(seed)
    const scene: Scene = { world, recorder, seed, isOver: () => false }
    await createWebhooks(scene)
    await warmUp(world)
    lag.enable()
    const before = await holdings(world)
    const readers = startReaders(scene)
    const stopNaive = startNaiveReader(scene)
    const { connections, ...worked } = await work(scene, schedule)
    const settled = await settle(scene, schedule, readers.readers)
    await readers.stop()
    const naive = await stopNaive()
    lag.disable()
    const sizes = await settledSizes(world, before)
    const endedAt = now()
    const left = await leave(world)
    const operations = recorder.operations()
    const secrets = operations.flatMap(({ webhook }) =>
      webhook === undefined ? [] : [[`the secret of ${webhook.id}`, webhook.secret] as const],
    )
    return {
      ...worked,
      ...settled,
      ...left,
      seed,
      processes: places.processes,
      operations,
      arrivals: world.receivers.arrivals(),
      manners: world.receivers.manners(),
      readers: readers.readers(),
      naive,
      connections: [...readers.connections, ...connections],
      secrets: { ...world.secrets, ...Object.fromEntries(secrets) },
      sizes,
      limits,
      leads,
      maxAttempts: retrySchedule.length + 1,
      slackMillis: lag.max / 1e6 + slackMillis,
      endedAt,
    }
  } finally {
    await world.close()
  }
}
