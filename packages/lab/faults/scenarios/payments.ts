/**
 * Kills hosts in transactions that record a payment and extend a membership, and counts what is left:
 * `npm run payments -- --seeds 1-200`.
 */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { parseSeeds } from "../../arguments.ts"
import { connectTo } from "../world/database.ts"
import type { Scenario, Stage } from "../world/stage.ts"

const payer = fileURLToPath(new URL("payer.ts", import.meta.url))

// The project's webhook gets the events for all payments.
const projectId = "p1"

export const endDate = Date.UTC(2040, 0, 1)

export const member = (seed: number | string) => ({ projectId, userId: `${1000 + Number(seed)}` })

/** The invoice that is paid: the host's row, the audit row and both events have it. */
export const invoiceOf = (seed: number | string): string => `invoice ${seed}`

/** The name by which the server knows the connection. */
export const nameOf = (seed: number | string): string => `payer ${seed}`

const counts = `
  WITH event AS (SELECT id FROM tenure.events WHERE body LIKE '%"' || $1 || '"%')
  SELECT (SELECT count(*)::integer FROM payments WHERE invoice = $1) AS payments,
         (SELECT count(*)::integer FROM tenure.audit WHERE reason = $1) AS changes,
         (SELECT count(*)::integer FROM tenure.memberships
          WHERE user_id = $2 AND end_date = to_timestamp($3::float8 / 1000)) AS extended,
         (SELECT count(*)::integer FROM event) AS events,
         (SELECT count(*)::integer FROM tenure.deliveries
          WHERE event_id IN (SELECT id FROM event)) AS deliveries`

const all = JSON.stringify({ payments: 1, changes: 1, extended: 1, events: 2, deliveries: 2 })
const nothing = all.replaceAll(/\d/g, "0")

/** Prepares an empty database, and returns what runs a seed's payment and tells what is left. */
export const startPayments = async ({ own }: Pick<Stage, "own">, url: string) => {
  const tenure = own(
    await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } }),
    ({ close }) => close(),
  )
  const { close, query } = await connectTo(url)
  own(undefined, close)
  await query("CREATE TABLE payments (invoice text PRIMARY KEY)")
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })

  return async (seed: number): Promise<"all" | "nothing" | { readonly part: object }> => {
    await tenure.memberships.grant({ ...member(seed), endDate: Date.UTC(2030, 0, 1) })
    const host = spawn(process.execPath, ["-C", "@tenure/source", payer, url, String(seed)], {
      stdio: ["ignore", "inherit", "inherit"],
    })
    const [, signal] = await once(host, "exit")
    if (signal !== "SIGKILL") throw new Error(`The host of seed ${seed} ended by itself`)
    // The server notices later that the payer is gone.
    const isOpen = "SELECT FROM pg_stat_activity WHERE application_name = $1"
    while ((await query(isOpen, [nameOf(seed)])).length > 0) await sleep(5)
    const [left = {}] = await query(counts, [invoiceOf(seed), member(seed).userId, endDate])
    const text = JSON.stringify(left)
    if (text === all) return "all"
    return text === nothing ? "nothing" : { part: left }
  }
}

export const run: Scenario = async (stage, args) => {
  const { values } = parseArgs({ args, options: { seeds: { type: "string", default: "1-5" } } })
  const pay = await startPayments(stage, (await stage.postgres()).url)
  const figures = { all: 0, nothing: 0, parts: 0 }
  for (const seed of parseSeeds(values.seeds)) {
    const left = await pay(seed)
    if (typeof left === "string") figures[left]++
    else {
      figures.parts++
      console.log(`seed ${seed}:`, left.part)
    }
  }
  console.log(figures)
  return figures.parts === 0
}
