/** Kills hosts that change memberships in a folder, and compares what is left with what they answered. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { createTenure } from "@tenure/core"
import { FolderUnusable, client, embedded } from "@tenure/embedded"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import { random } from "../random.ts"
import { projectId } from "./changes.ts"
import { type Content, type Found, compare } from "./compare.ts"

const program = fileURLToPath(new URL("changing.ts", import.meta.url))

/** What is left of the changes of a seed. */
export interface Left {
  /** How many changes were answered. */
  readonly answered: number
  /** How many changes there are: those that were answered, and at most one more of each member. */
  readonly left: number
  /** What must not be. */
  readonly wrong: ReadonlyArray<string>
}

const counts = `
  SELECT reason, count(DISTINCT a.id)::integer AS changes, count(DISTINCT e.id)::integer AS events,
         count(DISTINCT d.event_id)::integer AS deliveries
  FROM (SELECT id, reason FROM tenure.audit WHERE user_id IS NOT NULL) a
  FULL JOIN (SELECT id, body::jsonb #>> '{data,reason}' AS reason FROM tenure.events) e USING (reason)
  LEFT JOIN tenure.deliveries d ON d.event_id = e.id
  GROUP BY reason
`

const untrue = `
  SELECT m.user_id AS user FROM tenure.memberships_current m
  WHERE m.end_date <> (SELECT max(to_date) FROM tenure.audit a WHERE a.user_id = m.user_id)
`

/** Reads what the next process finds in the folder. */
const read = (path: string): Promise<Content> =>
  SqlClient.use((sql) =>
    Effect.all({
      found: sql.unsafe<Found>(counts),
      untrue: sql.unsafe<{ readonly user: string }>(untrue),
    }),
  ).pipe(Effect.provide(client({ path })), Effect.runPromise)

const isRefused = (path: string): Promise<boolean> =>
  createTenure({ stores: embedded({ path }) }).then(
    () => false,
    (error) => error instanceof FolderUnusable,
  )

type Host = ChildProcess & { readonly stdout: NodeJS.ReadableStream }

/** Starts a host, and kills it at the moment of the seed. Returns what it answered. */
const run = async (path: string, seed: number) => {
  const choose = random("kill", seed)
  const host: Host = spawn(
    process.execPath,
    ["-C", "@tenure/source", program, path, String(seed)],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const exit = once(host, "exit")
  // A quarter are killed after a time, most of them while they open the folder, and the others in a change.
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

/** Prepares an empty folder, and returns what kills the host of a seed. */
export const start = async (path: string) => {
  const tenure = await createTenure({ stores: embedded({ path }), webhooks: { dispatch: false } })
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
  await tenure.close()
  const before = new Set<string>()

  return {
    kill: async (seed: number): Promise<Left> => {
      const { answered, wrong } = await run(path, seed)
      const content = await read(path)
      const left = content.found.length - before.size
      const differences = compare(seed, before, answered, content)
      for (const { reason } of content.found) before.add(reason)
      return { answered: answered.size, left, wrong: [...wrong, ...differences] }
    },
  }
}
