/**
 * Kills processes that have a database in a folder, and compares what is left with what they answered:
 * `npm run folders -- --seeds 1-200`.
 */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { createTenure } from "@tenure/core"
import { FolderUnusable, client, embedded } from "@tenure/embedded"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import { parseSeeds } from "../../arguments.ts"
import { random } from "../random.ts"
import type { Scenario } from "../world/stage.ts"

const program = fileURLToPath(new URL("changing.ts", import.meta.url))

// The project's webhook gets the events for all changes.
const projectId = "p1"

/** The members, who are changed at the same time. */
export const userIds = ["1001", "1002", "1003", "1004"] as const

const maxOfSeed = 1_000_000

/** A change for a member: the later it is made, the later the end date. Its row and its event have the reason. */
export const changeOf = (seed: number, userId: string, number: number) => ({
  projectId,
  userId,
  endDate: Date.UTC(2030, 0, 1) + seed * maxOfSeed + number,
  reason: `${seed}/${userId}/${number}`,
})

/** How often a change is found. */
interface Found {
  readonly reason: string
  readonly changes: number
  readonly events: number
  readonly deliveries: number
}

/** What the next process finds. */
export interface Content {
  readonly found: ReadonlyArray<Found>
  /** The members whose end date is not that from their last change. */
  readonly untrue: ReadonlyArray<{ readonly user: string }>
}

const isWhole = ({ changes, deliveries, events }: Found): boolean =>
  changes === 1 && events === 1 && deliveries === 1

/** The member's change that may be there without having been answered. */
const nextOf = (seed: number, answered: ReadonlySet<string>, userId: string): string => {
  let number = 1
  while (answered.has(changeOf(seed, userId, number).reason)) number++
  return changeOf(seed, userId, number).reason
}

/**
 * Returns what must not be.
 *
 * @param before - the reasons for the changes that were there before the seed's
 * @param answered - the reasons for those that were answered
 */
export const compare = (
  seed: number,
  before: ReadonlySet<string>,
  answered: ReadonlySet<string>,
  { found, untrue }: Content,
): ReadonlyArray<string> => {
  const reasons = new Set(found.map(({ reason }) => reason))
  const expected = [...before, ...answered]
  const allowed = new Set([...expected, ...userIds.map((id) => nextOf(seed, answered, id))])
  return [
    ...expected.filter((reason) => !reasons.has(reason)).map((reason) => `${reason} is lost`),
    ...[...reasons].filter((reason) => !allowed.has(reason)).map((one) => `${one} was never made`),
    ...found.filter((one) => !isWhole(one)).map((one) => `In parts: ${JSON.stringify(one)}`),
    ...untrue.map(({ user }) => `The end date of ${user} is not that of the last change`),
  ]
}

const counts = `
  SELECT reason, count(DISTINCT a.id)::integer AS changes, count(DISTINCT e.id)::integer AS events,
         count(DISTINCT d.event_id)::integer AS deliveries
  FROM (SELECT id, reason FROM tenure.audit WHERE user_id IS NOT NULL) a
  FULL JOIN (SELECT id, body::jsonb #>> '{data,reason}' AS reason FROM tenure.events) e USING (reason)
  LEFT JOIN tenure.deliveries d ON d.event_id = e.id
  GROUP BY reason`

const untrueDates = `
  SELECT m.user_id AS user FROM tenure.memberships_current m
  WHERE m.end_date <> (SELECT max(to_date) FROM tenure.audit a WHERE a.user_id = m.user_id)`

/** Reads what the next process finds in the folder. */
const read = (path: string): Promise<Content> =>
  SqlClient.use((sql) =>
    Effect.all({
      found: sql.unsafe<Found>(counts),
      untrue: sql.unsafe<{ readonly user: string }>(untrueDates),
    }),
  ).pipe(Effect.provide(client({ path })), Effect.runPromise)

const isRefused = (path: string): Promise<boolean> =>
  createTenure({ stores: embedded({ path }) }).then(
    () => false,
    (error) => error instanceof FolderUnusable,
  )

type Host = ChildProcess & { readonly stdout: NodeJS.ReadableStream }

/** Starts a host, and kills it at the seed's moment. Returns what it answered. */
const kill = async (path: string, seed: number) => {
  const choose = random("kill", seed)
  const host: Host = spawn(
    process.execPath,
    ["-C", "@tenure/source", program, path, String(seed)],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const exit = once(host, "exit")
  // A quarter are killed after a time, mostly while they open the folder, and the others in a change.
  const killed = choose.chance(0.25)
    ? sleep(choose.between(200, 3000)).then(() => host.kill("SIGKILL"))
    : undefined
  const most = 1 + choose.below(200)
  const answered = new Set<string>()
  const wrong: Array<string> = []
  for await (const reason of createInterface(host.stdout)) {
    answered.add(reason)
    if (answered.size === 1 && !(await isRefused(path)))
      wrong.push("A second process had the folder")
    if (answered.size === most) {
      await sleep(choose.between(0, 10))
      host.kill("SIGKILL")
    }
  }
  await killed
  const [, signal] = await exit
  if (signal !== "SIGKILL") wrong.push("The host ended by itself")
  return { answered, wrong }
}

/**
 * Prepares an empty folder, and returns what kills a seed's host. That returns how many changes were answered,
 * how many there are, at most one more for each member, and what must not be.
 */
export const startFolder = async (path: string) => {
  const tenure = await createTenure({ stores: embedded({ path }), webhooks: { dispatch: false } })
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
  await tenure.close()
  const before = new Set<string>()
  return async (seed: number) => {
    const { answered, wrong } = await kill(path, seed)
    const content = await read(path)
    const left = content.found.length - before.size
    wrong.push(...compare(seed, before, answered, content))
    for (const { reason } of content.found) before.add(reason)
    return { answered: answered.size, left, wrong }
  }
}

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({ args, options: { seeds: { type: "string", default: "1-5" } } })
  const path = stage.own(await mkdtemp(join(tmpdir(), "tenure-folder-")), (folder) =>
    rm(folder, { recursive: true }),
  )
  const killOne = await startFolder(path)
  const figures = { kills: 0, whileOpening: 0, answered: 0, unanswered: 0, wrong: 0 }
  for (const seed of parseSeeds(values.seeds)) {
    const { answered, left, wrong } = await killOne(seed)
    figures.kills++
    if (answered === 0) figures.whileOpening++
    figures.answered += answered
    figures.unanswered += left - answered
    figures.wrong += wrong.length
    if (wrong.length > 0) console.log(`seed ${seed}:`, wrong)
  }
  console.log(figures)
  return figures.wrong === 0
}
