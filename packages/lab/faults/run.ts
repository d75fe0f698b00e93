/** A run: the world of a seed, its faults and its workload, and what is recorded of them. */

import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout as sleep } from "node:timers/promises"
import { causes } from "./causes.ts"
import { drainMillisFor } from "./checks/deliveries.ts"
import { missedBy } from "./checks/feed.ts"
import { grownAmong } from "./checks/processes.ts"
import { now } from "./clock.ts"
import {
  type Exit,
  type Fault,
  type Holding,
  type Log,
  type Manner,
  type Reader,
  type Run,
  type Sample,
  type Size,
  manners,
} from "./history.ts"
import { random } from "./random.ts"
import type { Episode, Planned, Schedule } from "./schedule.ts"
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
import { type Recorder, type Scene, makeRecorder } from "./workload/recorder.ts"
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

const lateHosts = ["late0", "late1", "late2"]

const crowdKey = "crowd"
const lazyKeys = lazyReaders.map(({ key }) => key)

// More than what is documented, so that what is late is seen, too.
const drainMillis = 60_000
const catchUpMillis = 20_000

/** Three webhooks for each project: one that is well, and two of any manner. */
const createWebhooks = async (world: World, recorder: Recorder, seed: number): Promise<void> => {
  const choose = random(seed, "webhooks")
  for (const projectId of projects) {
    const chosen: ReadonlyArray<Manner> = ["fast", ...choose.shuffle(manners).slice(0, 2)]
    for (const manner of chosen) await createWebhook(world, recorder, projectId, manner)
  }
}

const cause = async (
  world: World,
  planned: Planned,
  onExit: (exit: Exit) => void,
): Promise<Fault> => {
  const { kind, millis, target } = planned
  const start = now()
  const end = await causes[kind](world, planned, onExit)
  await sleep(millis)
  await end()
  return { kind, target, start, end: now() }
}

/** Causes the faults of an episode, and returns when all have ended. */
const runEpisode = async (
  world: World,
  episode: Episode,
  onExit: (exit: Exit) => void,
): Promise<ReadonlyArray<Fault>> => {
  const [first] = episode
  const begin = first?.at ?? 0
  return Promise.all(
    episode.map(async (planned) => {
      await sleep(planned.at - begin)
      return cause(world, planned, onExit)
    }),
  )
}

// Whoever collects garbage answers nothing meanwhile.
const samplingMillis = 20_000

/**
 * Causes the faults of a schedule, with a calm before and after each episode, unless its time is over: on a busy
 * machine, processes take longer to start again. Tells of the last calm.
 */
const runFaults = async (
  world: World,
  { calmMillis, episodes }: Schedule,
  onExit: (exit: Exit) => void,
  onLastCalm: () => void,
) => {
  const faults: Array<Fault> = []
  const samples = [...(await samplesOf(world))]
  const lastBegin = now() + (episodes.at(-1)?.[0]?.at ?? 0)
  await sleep(episodes[0]?.[0]?.at ?? 0)
  for (const episode of episodes) {
    faults.push(...(await runEpisode(world, episode, onExit)))
    const isLast = episode === episodes.at(-1) || now() > lastBegin
    if (isLast) onLastCalm()
    await sleep(calmMillis)
    const last = samples.at(-1)?.at ?? -Infinity
    if (now() - last > samplingMillis) samples.push(...(await samplesOf(world)))
    if (isLast) break
  }
  return { faults, samples }
}

const announceMillis = 20_000

/** Waits until every end date has come that is near, and until no end is left to announce. */
const announce = async ({ database }: World, recorder: Recorder): Promise<void> => {
  await sleep(Math.max(0, recorder.latestAhead() - now()))
  const session = await database.connect()
  const deadline = now() + announceMillis
  while ((await isAnnouncing(session)) && now() < deadline) await sleep(100)
  await session.close()
}

/**
 * Waits until every delivery has ended, but not much longer than that may take. Returns how many there were, and
 * how long that took, in milliseconds.
 */
const drain = async ({ database, receivers }: World, { pace }: Schedule) => {
  receivers.becomeWell()
  const session = await database.connect()
  const begin = now()
  const backlog = pace === 1 ? 0 : await countOpen(session)
  const deadline = begin + drainMillis + drainMillisFor(backlog)
  while ((await countOpen(session)) > 0 && now() < deadline) {
    await endHolds(session)
    await sleep(200)
  }
  await session.close()
  return { backlog, drainedMillis: now() - begin }
}

/** Waits until every reader of the feed has got every event of its project, but no longer than documented. */
const catchUp = async (
  { database }: World,
  { readers }: ReturnType<typeof startReaders>,
): Promise<void> => {
  const session = await database.connect()
  const { events } = await readState(session)
  await session.close()
  const isBehind = (reader: Reader): boolean => missedBy(reader, { state: { events } }).length > 0
  const deadline = now() + catchUpMillis
  while (readers().some(isBehind) && now() < deadline) await sleep(100)
}

const holdings = async ({ servers }: World): Promise<ReadonlyMap<string, Holding>> =>
  new Map(
    await Promise.all(
      [...servers].map(async ([name, server]) => [name, await server.holding()] as const),
    ),
  )

const samplesOf = async ({ servers }: World): Promise<ReadonlyArray<Sample>> => {
  const all = await Promise.all([...servers.values()].map((server) => server.sample()))
  return all.filter((sample) => sample !== undefined)
}

const nothing: Holding = { bytes: 0, handles: 0 }

// A server closes a connection to a receiver that it has not used for ten seconds.
const keptAliveMillis = 12_000

const sizesOf = (
  before: ReadonlyMap<string, Holding>,
  after: ReadonlyMap<string, Holding>,
): ReadonlyArray<Size> =>
  [...after].map(([process, holding]) => ({
    process,
    before: before.get(process) ?? nothing,
    after: holding,
  }))

/** Returns what servers hold once they have closed the connections that they do not use any more. */
const settledSizes = async (
  world: World,
  before: ReadonlyMap<string, Holding>,
): Promise<ReadonlyArray<Size>> => {
  const patience = now() + keptAliveMillis
  for (;;) {
    const all = sizesOf(before, await holdings(world))
    if (grownAmong(all).length === 0 || now() > patience) return all
    await sleep(500)
  }
}

/** Has the clients at work until all faults have healed. */
const work = async (
  world: World,
  recorder: Recorder,
  seed: number,
  schedule: Schedule,
  onExit: (exit: Exit) => void,
) => {
  let over = false
  let isLastCalm = false
  const scene: Scene = { world, recorder, seed, isOver: () => over }
  // Afterwards, ends have most of their time before the run is over.
  const ending: Scene = { ...scene, isOver: () => over || isLastCalm }
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
    ...lateHosts.map((name) => runLateHost(scene, name)),
    runProbes(scene),
  ]
  try {
    const { faults, samples } = await runFaults(world, schedule, onExit, () => (isLastCalm = true))
    over = true
    return {
      faults,
      samples,
      connections: await crowd,
      revocations: await revoked,
      intrusions: await intruders,
    }
  } finally {
    over = true
    await Promise.all(working)
  }
}

const closeHost = async ({ closeHost: close }: World): Promise<Exit> => {
  const asked = now()
  const code = (await close()) ? 0 : 1
  return { process: host, code, signal: null, millis: now() - asked }
}

/** Ends all processes and reads what they leave behind. */
const leave = async (world: World) => {
  const exits = await Promise.all([
    ...[...world.servers.values()].map((server) => server.terminate()),
    closeHost(world),
  ])
  const session = await world.database.connect()
  const state = await readState(session)
  await session.close()
  const logs = [
    ...[...world.servers].map(([process, server]): Log => ({ process, text: server.log() })),
    { process: host, text: world.hostLog() },
  ]
  return { exits, state, logs }
}

/** Performs the run of a seed. `slackMillis` is how much later than documented things may happen. */
export const perform = async (
  ground: Ground,
  seed: number,
  schedule: Schedule,
  slackMillis: number,
): Promise<Run> => {
  const lag = monitorEventLoopDelay()
  const keys = [...clientKeys, ...greedyKeys, ...readerKeys, crowdKey, ...lazyKeys, intruderKey]
  const world = await makeWorld(ground, seed, keys, schedule)
  try {
    const recorder = makeRecorder(seed)
    const exits: Array<Exit> = []
    const onExit = (exit: Exit) => void exits.push(exit)
    await createWebhooks(world, recorder, seed)
    await warmUp(world)
    lag.enable()
    const before = await holdings(world)
    const scene: Scene = { world, recorder, seed, isOver: () => false }
    const readers = startReaders(scene)
    const stopNaive = startNaiveReader(scene)
    const worked = await work(world, recorder, seed, schedule, onExit)
    await announce(world, recorder)
    const drained = await drain(world, schedule)
    await catchUp(world, readers)
    await readers.stop()
    const naiveReader = await stopNaive()
    lag.disable()
    const sizes = await settledSizes(world, before)
    const endedAt = now()
    const left = await leave(world)
    const operations = recorder.operations()
    const secrets = operations.flatMap(({ webhook }) =>
      webhook === undefined ? [] : [[`the secret of ${webhook.id}`, webhook.secret] as const],
    )
    return {
      seed,
      processes: places.processes,
      operations,
      arrivals: world.receivers.arrivals(),
      manners: world.receivers.manners(),
      readers: readers.readers(),
      naive: naiveReader,
      connections: [...readers.connections, ...worked.connections],
      revocations: worked.revocations,
      intrusions: worked.intrusions,
      faults: worked.faults,
      exits: [...exits, ...left.exits],
      logs: left.logs,
      secrets: { ...world.secrets, ...Object.fromEntries(secrets) },
      sizes,
      samples: worked.samples,
      limits,
      leads,
      mostAttempts: retrySchedule.length + 1,
      slackMillis: lag.max / 1e6 + slackMillis,
      ...drained,
      endedAt,
      state: left.state,
    }
  } finally {
    await world.close()
  }
}
