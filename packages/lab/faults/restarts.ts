/**
 * Two servers on one database, which are replaced one after the other behind a balancer that keeps its connections to
 * them and repeats no request: `npm run restarts -- --restarts 40`. Counts the requests that break, and how. Fails if
 * the balancer asks `/readyz` and any request breaks, or if a server does not stop by itself.
 */

import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { startPostgres } from "@tenure/testing/postgres-server"
import { parseInteger } from "../arguments.ts"
import { random } from "./random.ts"
import { type Broken, type Manner, startBalancer } from "./restarts/balancer.ts"
import { sendUntil } from "./restarts/clients.ts"
import { freePort } from "./world/ports.ts"
import { bundled, writeSeed } from "./world/program.ts"
import { makeServer, unlimited } from "./world/server.ts"

const { values } = parseArgs({
  options: {
    restarts: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    /** `probing` or `passive`; both by default. */
    manner: { type: "string", default: "both" },
    /** `DRAIN_DELAY` of the servers. */
    drain: { type: "string", default: "3" },
  },
})

const restarts = parseInteger("restarts", values.restarts, 0)
const manners: ReadonlyArray<Manner> = (["probing", "passive"] as const).filter(
  (one) => values.manner === "both" || values.manner === one,
)
if (manners.length === 0) throw new Error("--manner takes probing, passive or both")

// Between a server that is back and the end of the next one.
const settleMillis = 1500

const token = `tnr_${randomBytes(32).toString("base64url")}`
const memberships = Array.from({ length: 48 }, (_, index) => ({
  user_id: String(index + 1),
  end_date: "2098-01-01T00:00:00.000Z",
}))

/** In which state a server was when a request to it broke. */
type Phase = "running" | "stopping"

interface Outcome {
  readonly requests: number
  readonly reused: number
  readonly broken: ReadonlyArray<Broken & { readonly phase: Phase }>
  /** What the clients saw, with how often. */
  readonly failures: ReadonlyMap<string, number>
  /** How long each server took to stop, in milliseconds. */
  readonly stops: ReadonlyArray<number>
  /** The servers that did not stop with the exit code 0. */
  readonly wrongExits: number
}

const program = await bundled()
const seedFile = await writeSeed(program, {
  projects: [{ id: "p1", memberships }],
  api_keys: [{ token, role: "admin" }],
})

const observe = async (manner: Manner): Promise<Outcome> => {
  const postgres = await startPostgres({ settings: { fsync: "off" } })
  const environment = {
    DATABASE_URL: postgres.url,
    SEED_FILE: seedFile,
    DRAIN_DELAY: values.drain,
    ...unlimited,
  }
  const one = makeServer("one", program, await freePort(), environment)
  const other = makeServer("other", program, await freePort(), environment)
  await one.start()
  await other.start()
  const balancer = await startBalancer(manner, [one, other])
  while (!balancer.sendsTo("one") || !balancer.sendsTo("other")) await sleep(50)

  const phases = new Map<string, Phase>()
  const broken: Array<Broken & { readonly phase: Phase }> = []
  const note = (): void => {
    for (const found of balancer.broken.slice(broken.length)) {
      broken.push({ ...found, phase: phases.get(found.server) ?? "running" })
    }
  }
  const over = new AbortController()
  const sending = sendUntil(over.signal, balancer.url, token, random(values.seed, manner))
  const stops: Array<number> = []
  let wrongExits = 0
  await sleep(2 * settleMillis)
  for (let restart = 0; restart < restarts; restart++) {
    const server = restart % 2 === 0 ? one : other
    note()
    phases.set(server.name, "stopping")
    const { code, millis } = await server.terminate()
    stops.push(millis)
    if (code !== 0) wrongExits++
    // What is on its way to the balancer.
    await sleep(100)
    note()
    phases.set(server.name, "running")
    await server.start()
    while (!balancer.sendsTo(server.name)) await sleep(50)
    await sleep(settleMillis)
  }
  over.abort()
  const { failures, requests } = await sending
  note()
  balancer.close()
  await Promise.all([one.terminate(), other.terminate()])
  await postgres.stop()
  return { requests, reused: balancer.reused(), broken, failures, stops, wrongExits }
}

/** Says in which way a request broke. */
const wayOf = ({ code, idleMillis, isBegun, phase }: Outcome["broken"][number]): string => {
  const idle =
    idleMillis === undefined
      ? "on a new connection"
      : `on one that was idle for ${idleMillis < 1000 ? "less than 1 s" : `${Math.floor(idleMillis / 1000)} s`}`
  return `${code} ${idle}, server ${phase}${isBegun ? ", after the response began" : ""}`
}

let failed = false
for (const manner of manners) {
  const { broken, failures, requests, reused, stops, wrongExits } = await observe(manner)
  const ways = new Map<string, number>()
  for (const one of broken) ways.set(wayOf(one), (ways.get(wayOf(one)) ?? 0) + 1)
  const slowest = Math.max(0, ...stops)
  console.log(
    `${manner}: ${requests} requests, ${reused} on used connections, ${stops.length} restarts, ${broken.length} broken; a stop took ${Math.round(slowest)} ms at most`,
  )
  for (const [way, count] of ways) console.log(`  ${count} × ${way}`)
  for (const [failure, count] of failures) console.log(`  clients saw ${count} × ${failure}`)
  if (wrongExits > 0) console.log(`  ${wrongExits} servers did not stop by themselves`)
  if (wrongExits > 0 || (manner === "probing" && failures.size > 0)) failed = true
}
process.exit(failed ? 1 : 0)
