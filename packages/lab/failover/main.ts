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
import { now } from "../faults/clock.ts"
import { countOpen, readState } from "../faults/state.ts"
import { makeSend } from "../faults/workload/http.ts"
import { connectTo } from "../faults/world/database.ts"
import { freePort } from "../faults/world/ports.ts"
import { bundled, writeSeed } from "../faults/world/program.ts"
import { startReceivers } from "../faults/world/receivers.ts"
import { makeServer, unlimited } from "../faults/world/server.ts"
import { patience, startCluster } from "./cluster.ts"
import {
  type Incident,
  type Loss,
  excerptOf,
  excessOf,
  lossesOf,
  silencesOf,
  tableOf,
} from "./outcome.ts"
import { clusterPackages, findMissing, programs } from "./programs.ts"
import { memberIds, startClients, startFollowers, startPlainDriver } from "./workload.ts"

const { values } = parseArgs({
  options: {
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
  },
})

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

const packages = values.pooler ? ([...clusterPackages, "pgbouncer"] as const) : clusterPackages
const missing = await findMissing(packages)
if (missing.length > 0) {
  console.error(`Programs are missing. On Debian: apt-get install ${missing.join(" ")}`)
  process.exit(1)
}

// What is registered for the exit then removes what was started.
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => process.exit(130))

const versionOf = async (program: string): Promise<string> => {
  const flag = program.endsWith("haproxy") ? "-v" : "--version"
  const { stdout } = await promisify(execFile)(program, [flag])
  return stdout.split("\n")[0] ?? ""
}

// Longer than the leases of deliveries of a process.
const longestMillis = 60_000

/** Waits for a minute at most. Returns whether it came about. */
const until = async (isDone: () => Promise<boolean> | boolean): Promise<boolean> => {
  const deadline = now() + longestMillis
  while (!(await isDone())) {
    if (now() > deadline) return false
    await sleep(50)
  }
  return true
}

const projectId = "p1"
const token = `tnr_${randomBytes(32).toString("base64url")}`

const program = await bundled()
const memberships = memberIds.map((userId) => ({
  user_id: userId,
  end_date: "2098-01-01T00:00:00.000Z",
}))
const seedFile = await writeSeed(program, {
  projects: [{ id: projectId, memberships }],
  api_keys: [{ token, role: "admin" }],
})

for (const name of packages) console.log(await versionOf(programs[name]))
const isSynchronous = !values.asynchronous
console.log({
  synchronous_mode: isSynchronous,
  synchronous_mode_strict: values.strict,
  ...patience,
})

const cluster = await startCluster({
  isSynchronous,
  isStrict: values.strict,
  hasPooler: values.pooler,
})
const receivers = await startReceivers()
const environment = {
  DATABASE_URL: cluster.url,
  ...(values.pooler && { DATABASE_LISTEN_URL: cluster.listenUrl }),
  SEED_FILE: seedFile,
  ...unlimited,
  WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
  LOG_REQUESTS: "none",
}
const servers = [
  makeServer("one", program, await freePort(), environment),
  makeServer("two", program, await freePort(), environment),
]
for (const server of servers) await server.start()

const admin = makeSend()
const created = await admin.send(servers[0]?.url ?? "", {
  method: "POST",
  path: `/v2/projects/${projectId}/integrations/webhooks`,
  token,
  body: { url: receivers.url("fast") },
})
if (created.status !== 200) throw new Error(`no webhook: ${created.status}`)
admin.close()

const table = new pg.Client({ connectionString: cluster.listenUrl })
await table.connect()
await table.query("CREATE TABLE plain (at timestamptz DEFAULT now())")
await table.end()

const over = new AbortController()
const working = new AbortController()
const urls = servers.map(({ url }) => url)
const driver = startPlainDriver(cluster.listenUrl, over.signal)
const pooled = values.pooler ? startPlainDriver(cluster.url, over.signal) : undefined
const clients = startClients({ urls, projectId, token, signal: working.signal })
const following = startFollowers({ urls, projectId, token, signal: over.signal })

const hasSucceededSince = (at: number): boolean =>
  (driver.written.at(-1) ?? 0) > at &&
  servers.every(
    (_, index) => (clients.acknowledged.findLast(({ server }) => server === index)?.at ?? 0) > at,
  )

// What the silences before and after an incident are told from.
const calmMillis = 3000

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
    changes: servers.map((_, index) =>
      clients.acknowledged.filter(({ server }) => server === index).map(({ at }) => at),
    ),
    deliveries: [receivers.arrivals().map(({ at }) => at)],
    feed: following.followers.map(({ at }) => at),
  }
  const { name: to } = await cluster.leader()
  return { loss, from, to, silences: silencesOf(signs, since, now()) }
}

// How much longer than the driver a server may take for a change.
const mostExcessMillis = 3000

const incidents: Array<Incident> = []
for (const loss of planned) {
  const since = now()
  const incident = await observe(loss)
  incidents.push(incident)
  console.log(tableOf([incident]).split("\n")[1])
  if (excessOf(incident) <= mostExcessMillis) continue
  for (const { log, name } of servers) {
    console.log(`  the log of server ${name}:`)
    for (const line of excerptOf(log(), since)) console.log(`    ${line}`)
  }
}
working.abort()
await clients.done

const session = await connectTo(cluster.listenUrl)
await until(async () => (await countOpen(session)) === 0)
const held = await readState(session)
const lossesNow = () =>
  lossesOf(
    held,
    clients.acknowledged,
    new Set(receivers.arrivals().map(({ headers }) => headers["webhook-id"] ?? "")),
    following.followers,
  )
await until(() => lossesNow().missed === 0)
const losses = lossesNow()
await session.close()
over.abort()
await Promise.all([driver.done, pooled?.done, following.done])

console.log(`\n${tableOf(incidents)}\n`)
console.log("answers other than 200:", Object.fromEntries(clients.refusals))
console.log(`${clients.acknowledged.length} changes, ${held.events.length} events:`, losses)
for (const { name, repeated, resets } of following.followers) {
  if (repeated + resets > 0) console.log(`  ${name}: ${resets} resets, ${repeated} events again`)
}

const exits = await Promise.all(servers.map((server) => server.terminate()))
await receivers.close()
await cluster.stop()
const haveStopped = exits.every(({ code }) => code === 0)
if (!haveStopped) console.log("servers did not stop by themselves:", exits)
const isSound =
  haveStopped &&
  Object.values(losses).every((count) => count === 0) &&
  [...clients.refusals.keys()].every((status) => status === "503")
process.exit(isSound ? 0 : 1)
