/**
 * Two servers on one database, which are replaced one after the other behind a balancer that keeps its connections to
 * them and repeats no request: `npm run restarts -- --restarts 40`. Counts the requests that break, and how. Fails if
 * the balancer asks `/readyz` and any request breaks, or if a server does not stop by itself.
 */

import { randomBytes } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { parseArgs } from "node:util"
import { parseInteger } from "../../arguments.ts"
import { type Random, random } from "../random.ts"
import { makeSend } from "../workload/http.ts"
import { type Scenario, makeStage } from "../world/stage.ts"
import { type Broken, type Manner, startBalancer } from "./balancer.ts"

// From when a server is back until the next one ends.
const settleMillis = 1500

const steadyClients = 8
const burstClients = 40

// A connection that waits longer than this is one that a server may close.
const longestPauseMillis = 9000

const token = `tnr_${randomBytes(32).toString("base64url")}`
const memberships = Array.from({ length: steadyClients + burstClients }, (_, index) => ({
  user_id: String(index + 1),
  end_date: "2098-01-01T00:00:00.000Z",
}))
const seed = { projects: [{ id: "p1", memberships }], api_keys: [{ token, role: "admin" }] }

const increment = (counts: Map<string, number>, name: string): void =>
  void counts.set(name, (counts.get(name) ?? 0) + 1)

/**
 * Sends until the signal, over connections that are kept: some clients without a pause, others all at once from time
 * to time. Returns how many requests there were, and each response that was not a 200, or the error in its place, with how
 * often it was seen.
 */
const sendUntil = async (signal: AbortSignal, url: string, choose: Random) => {
  const failures = new Map<string, number>()
  const { close, send } = makeSend(false)
  let requests = 0
  let time = Date.parse("2099-01-01T00:00:00.000Z")

  const sendOne = async (member: number): Promise<void> => {
    requests++
    const path = `/v2/projects/p1/memberships/${member}`
    const { problem, status } = await (choose.chance(0.5)
      ? send(url, {
          method: "PATCH",
          path: `${path}/extend`,
          token,
          body: { extend: new Date(time++).toISOString() },
        })
      : send(url, { method: "GET", path, token }))
    if (status !== 200) increment(failures, `${status} ${problem ?? ""}`)
  }

  const sendSteadily = async (member: number): Promise<void> => {
    while (!signal.aborted) {
      await sendOne(member)
      await sleep(choose.between(0, 20))
    }
  }

  /** Uses many connections at the same time, which are idle until the next time. */
  const sendBursts = async (): Promise<void> => {
    while (!signal.aborted) {
      const members = Array.from({ length: burstClients }, (_, index) => steadyClients + 1 + index)
      await Promise.all(members.map(sendOne))
      await sleep(choose.next() ** 2 * longestPauseMillis)
    }
  }

  const steady = Array.from({ length: steadyClients }, (_, index) => sendSteadily(1 + index))
  await Promise.all([...steady, sendBursts()])
  close()
  return { requests, failures }
}

/** Says in which way a request broke. */
const wayOf = ({ code, idleMillis, isBegun }: Broken, isStopping: boolean): string => {
  const idle =
    idleMillis === undefined
      ? "on a new connection"
      : `on one that was idle for ${idleMillis < 1000 ? "less than 1 s" : `${Math.floor(idleMillis / 1000)} s`}`
  const phase = isStopping ? "stopping" : "running"
  return `${code} ${idle}, server ${phase}${isBegun ? ", after the response began" : ""}`
}

/** Replaces the servers behind one balancer. Returns whether that was seamless. */
const observe = async (
  manner: Manner,
  options: { readonly drain: string; readonly restarts: number; readonly seed: string },
): Promise<boolean> => {
  const stage = makeStage()
  const { url } = await stage.postgres({ fsync: "off" })
  const environment = { DRAIN_DELAY: options.drain }
  const one = await stage.server("one", url, seed, environment)
  const other = await stage.server("other", url, seed, environment)
  const ways = new Map<string, number>()
  let stopping = ""
  let broken = 0
  const balancer = await startBalancer(manner, [one, other], (found) => {
    broken++
    increment(ways, wayOf(found, found.server === stopping))
  })
  stage.own(balancer, ({ close }) => close())
  while (!balancer.sendsTo(one.name) || !balancer.sendsTo(other.name)) await sleep(50)

  const over = new AbortController()
  const sending = sendUntil(over.signal, balancer.url, random(options.seed, manner))
  const stops: Array<number> = []
  let wrongExits = 0
  await sleep(2 * settleMillis)
  for (let restart = 0; restart < options.restarts; restart++) {
    const server = restart % 2 === 0 ? one : other
    stopping = server.name
    const { code, millis } = await server.terminate()
    stops.push(millis)
    if (code !== 0) wrongExits++
    // What is on its way to the balancer.
    await sleep(100)
    stopping = ""
    await server.start()
    while (!balancer.sendsTo(server.name)) await sleep(50)
    await sleep(settleMillis)
  }
  over.abort()
  const { failures, requests } = await sending
  console.log(
    `${manner}: ${requests} requests, ${balancer.reused()} on used connections, ${stops.length} restarts, ` +
      `${broken} broken; a stop took ${Math.round(Math.max(0, ...stops))} ms at most`,
  )
  for (const [way, count] of ways) console.log(`  ${count} × ${way}`)
  for (const [failure, count] of failures) console.log(`  clients saw ${count} × ${failure}`)
  if (wrongExits > 0) console.log(`  ${wrongExits} servers did not stop by themselves`)
  await stage.end()
  return wrongExits === 0 && (manner === "passive" || failures.size === 0)
}

export const run: Scenario = async (_, args) => {
  const { values } = parseArgs({
    args,
    options: {
      restarts: { type: "string", default: "20" },
      seed: { type: "string", default: "1" },
      /** `probing` or `passive`; both by default. */
      manner: { type: "string", default: "both" },
      /** The servers' `DRAIN_DELAY`. */
      drain: { type: "string", default: "3" },
    },
  })
  const restarts = parseInteger("restarts", values.restarts, 0)
  const manners: ReadonlyArray<Manner> = (["probing", "passive"] as const).filter(
    (one) => values.manner === "both" || values.manner === one,
  )
  if (manners.length === 0) throw new Error("--manner takes probing, passive or both")
  let isSound = true
  for (const manner of manners) {
    const isSeamless = await observe(manner, { ...values, restarts })
    isSound &&= isSeamless
  }
  return isSound
}
