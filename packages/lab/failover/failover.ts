/**
 * Two servers on PostgreSQL under Patroni, whose primary is lost again and again: `npm run failover`. Compares what
 * was acknowledged, delivered and followed with what is there in the end, and how long changes stood still with how
 * long a plain driver could not write. Fails if anything was lost.
 */

import { execFile } from "node:child_process"
import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs, promisify } from "node:util"
import pg from "pg"
import { parseInteger } from "../arguments.ts"
import { isAcknowledged, isNothing, lossesOf, refusalsOf } from "../faults/checks/losses.ts"
import { now } from "../faults/clock.ts"
import { countOpen, readState } from "../faults/state.ts"
import { makeClient, startFollowers } from "../faults/workload/extending.ts"
import { makeSend } from "../faults/workload/http.ts"
import { makeRecorder } from "../faults/workload/recorder.ts"
import { connectTo } from "../faults/world/database.ts"
import type { Scenario } from "../faults/world/stage.ts"
import { findMissing, packagesOf, patience, programs, startCluster } from "./cluster.ts"
import { type Incident, type Loss, excerptOf, excessOf, silencesOf, tableOf } from "./outcome.ts"

const options = {
  /** How often the primary's processes are killed. */
  crashes: { type: "string", default: "10" },
  /** How often they are stopped for good. */
  hangs: { type: "string", default: "2" },
  /** How often Patroni is asked to change the primary. */
  switchovers: { type: "string", default: "10" },
  /** How often the standby's processes are stopped for good. */
  standbys: { type: "string", default: "2" },
  /** Whether commits do not wait for the standby. */
  asynchronous: { type: "boolean", default: false },
  /** Whether a primary without a standby refuses to commit. */
  strict: { type: "boolean", default: false },
  /** Whether PgBouncer is between the servers and HAProxy. */
  pooler: { type: "boolean", default: false },
} as const

const versionOf = async (program: string): Promise<string> => {
  const flag = program.endsWith("haproxy") ? "-v" : "--version"
  const { stdout } = await promisify(execFile)(program, [flag])
  return stdout.split("\n")[0] ?? ""
}

// Longer than a process leases deliveries.
const longestMillis = 60_000

/** Waits for a minute at most. */
const until = async (isDone: () => Promise<boolean> | boolean): Promise<void> => {
  const deadline = now() + longestMillis
  while (!(await isDone()) && now() <= deadline) await sleep(50)
}

const attemptMillis = 100
const connectTimeoutMillis = 2000

// Writes that wait for a lost standby keep their connections, and the server has 100.
const maxAttempts = 20

/** Inserts a row over a new connection ten times a second. Returns when one was inserted. */
const startPlainDriver = (connectionString: string, signal: AbortSignal) => {
  const written: Array<number> = []
  const write = async (): Promise<void> => {
    const client = new pg.Client({
      connectionString,
      connectionTimeoutMillis: connectTimeoutMillis,
    })
    client.on("error", () => {})
    try {
      await client.connect()
      await client.query("INSERT INTO plain DEFAULT VALUES")
      written.push(now())
    } catch {
      // Its absence is what is measured.
    } finally {
      client.end().catch(() => {})
    }
  }
  const run = async (): Promise<void> => {
    const attempts = new Set<Promise<void>>()
    while (!signal.aborted) {
      if (attempts.size < maxAttempts) {
        // Beside those that wait for something that died.
        const attempt = write()
        attempts.add(attempt)
        void attempt.then(() => attempts.delete(attempt))
      }
      await sleep(attemptMillis)
    }
    await Promise.all(attempts)
  }
  return { written, done: run() }
}

const projectId = "p1"

const clientsPerServer = 4

// Each client has its own.
const memberIds = Array.from({ length: 48 }, (_, index) => String(index + 1))

const pauseMillis = 30

// Over one connection after the other, so that a client that fails fast does not take the processor for itself.
const pauseAfterFailureMillis = 100

// What the silences before and after an incident are told from.
const calmMillis = 3000

// How much longer than the driver a server may take for a change.
const maxExcessMillis = 3000

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({ args, options })
  const repeat = (
    loss: Loss,
    option: "crashes" | "hangs" | "switchovers" | "standbys",
  ): ReadonlyArray<Loss> =>
    Array.from({ length: parseInteger(option, values[option], 0) }, () => loss)
  const planned: ReadonlyArray<Loss> = [
    ...repeat("crash", "crashes"),
    ...repeat("hang", "hangs"),
    ...repeat("switchover", "switchovers"),
    ...repeat("standby hangs", "standbys"),
  ]
  const how = {
    isSynchronous: !values.asynchronous,
    isStrict: values.strict,
    hasPooler: values.pooler,
  }
  const packages = packagesOf(how)
  const missing = await findMissing(packages)
  if (missing.length > 0) {
    console.error(`Programs are missing. On Debian: apt-get install ${missing.join(" ")}`)
    return false
  }
  for (const name of packages) console.log(await versionOf(programs[name]))
  console.log({
    synchronous_mode: how.isSynchronous,
    synchronous_mode_strict: how.isStrict,
    ...patience,
  })

  const cluster = await startCluster(stage, how)
  const receivers = await stage.receivers()
  const token = `tnr_${randomBytes(32).toString("base64url")}`
  const memberships = memberIds.map((userId) => ({
    user_id: userId,
    end_date: "2098-01-01T00:00:00.000Z",
  }))
  const seed = { projects: [{ id: projectId, memberships }], api_keys: [{ token, role: "admin" }] }
  const environment = {
    ...(values.pooler && { DATABASE_LISTEN_URL: cluster.listenUrl }),
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
    LOG_REQUESTS: "none",
  }
  const servers = [
    await stage.server("one", cluster.url, seed, environment),
    await stage.server("two", cluster.url, seed, environment),
  ] as const
  const [first] = servers
  const admin = makeSend()
  const created = await admin.send(first.url, {
    method: "POST",
    path: `/v2/projects/${projectId}/integrations/webhooks`,
    token,
    body: { url: receivers.url("fast") },
  })
  if (created.status !== 200) throw new Error(`no webhook: ${created.status}`)
  admin.close()
  const table = await connectTo(cluster.listenUrl)
  await table.query("CREATE TABLE plain (at timestamptz DEFAULT now())")
  await table.close()

  const over = new AbortController()
  const working = new AbortController()
  const recorder = makeRecorder(0)
  const driver = startPlainDriver(cluster.listenUrl, over.signal)
  const pooled = values.pooler ? startPlainDriver(cluster.url, over.signal) : undefined
  const { close, extend } = makeClient(recorder, token)
  const work = async (client: number): Promise<void> => {
    const count = clientsPerServer * servers.length
    const own = memberIds.filter((_, index) => index % count === client)
    for (let turn = 0; !working.signal.aborted; turn++) {
      const server = servers[client % 2] ?? first
      const done = await extend(server, projectId, own[turn % own.length] ?? "")
      await sleep(isAcknowledged(done) ? pauseMillis : pauseAfterFailureMillis)
    }
  }
  const clients = Array.from({ length: clientsPerServer * servers.length }, (_, index) =>
    work(index),
  )
  const following = startFollowers(servers, projectId, token, over.signal)

  /** When each server acknowledged changes. */
  const changes = (): ReadonlyArray<ReadonlyArray<number>> => {
    const acknowledged = recorder.operations().filter(isAcknowledged)
    return servers.map(({ name }) =>
      acknowledged.filter(({ process }) => process === name).map(({ end }) => end),
    )
  }

  const hasSucceededSince = (at: number): boolean =>
    [driver.written, ...changes()].every((instants) => (instants.at(-1) ?? 0) > at)

  /** Causes a loss, and returns what brings the node back. */
  const lose = async (loss: Loss): Promise<() => Promise<void>> => {
    const primary = await cluster.leader()
    const standby = await cluster.standby()
    switch (loss) {
      case "crash":
        await primary.crash()
        return primary.start
      case "hang":
        await primary.hang()
        return primary.start
      case "switchover":
        await cluster.switchOver()
        return async () => {}
      case "standby hangs":
        await standby.hang()
        return standby.start
    }
  }

  const observe = async (loss: Loss): Promise<Incident> => {
    await cluster.untilHealthy()
    await sleep(calmMillis)
    const since = now()
    const { name: from } = await cluster.leader()
    const heal = await lose(loss)
    await until(async () => loss === "standby hangs" || (await cluster.leader()).name !== from)
    // What was under way may still succeed.
    await sleep(calmMillis)
    const elected = now()
    // A strict primary waits for the node that is to come back.
    await until(() => values.strict || hasSucceededSince(elected))
    await heal()
    await cluster.untilHealthy()
    await sleep(calmMillis)
    const signs = {
      driver: [driver.written],
      ...(pooled !== undefined && { "pooled driver": [pooled.written] }),
      changes: changes(),
      deliveries: [receivers.arrivals().map(({ at }) => at)],
      feed: following.followers.map(({ at }) => at),
    }
    const { name: to } = await cluster.leader()
    return { loss, from, to, silences: silencesOf(signs, since, now()) }
  }

  const incidents: Array<Incident> = []
  for (const loss of planned) {
    const since = now()
    const incident = await observe(loss)
    incidents.push(incident)
    console.log(tableOf([incident]).split("\n")[1])
    if (excessOf(incident) <= maxExcessMillis) continue
    for (const { log, name } of servers) {
      console.log(`  the log of server ${name}:`)
      for (const line of excerptOf(log(), since)) console.log(`    ${line}`)
    }
  }
  working.abort()
  await Promise.all(clients)
  close()

  const session = await connectTo(cluster.listenUrl)
  await until(async () => (await countOpen(session)) === 0)
  const state = await readState(session)
  await session.close()
  const operations = recorder.operations()
  const lossesNow = () =>
    lossesOf({ state, operations, arrivals: receivers.arrivals() }, following.followers)
  await until(() => lossesNow().missed === 0)
  const losses = lossesNow()
  over.abort()
  await Promise.all([driver.done, pooled?.done, following.done])

  const refusals = refusalsOf(operations)
  const count = operations.filter(isAcknowledged).length
  console.log(`\n${tableOf(incidents)}\n`)
  console.log("answers other than 200:", Object.fromEntries(refusals))
  console.log(`${count} changes, ${state.events.length} events:`, losses)
  for (const { name, resets } of following.followers) {
    if (resets > 0) console.log(`  ${name}: ${resets} resets`)
  }
  const exits = await Promise.all(servers.map((server) => server.terminate()))
  const haveStopped = exits.every(({ code }) => code === 0)
  if (!haveStopped) console.log("servers did not stop by themselves:", exits)
  return haveStopped && isNothing(losses) && [...refusals.keys()].every((one) => one === "503")
}
