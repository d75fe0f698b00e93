/** Kills hosts between the statements of a transaction, and compares what is left of it. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import pg from "pg"
import { endDate, invoiceOf, member, nameOf, projectId, startDate } from "./payment.ts"

const payer = fileURLToPath(new URL("payer.ts", import.meta.url))

/** What is left of a payment: all of it, nothing, or a part, which must not be. */
export type Left = "all" | "nothing" | { readonly part: object }

const counts = `
  SELECT (SELECT count(*)::integer FROM payments WHERE invoice = $1) AS payments,
         (SELECT count(*)::integer FROM tenure.audit WHERE reason = $1) AS changes,
         (SELECT count(*)::integer FROM tenure.memberships
          WHERE user_id = $2 AND end_date = to_timestamp($3::float8 / 1000)) AS extended,
         (SELECT count(*)::integer FROM event) AS events,
         (SELECT count(*)::integer FROM tenure.deliveries
          WHERE event_id IN (SELECT id FROM event)) AS deliveries`

const withEvents = `WITH event AS (SELECT id FROM tenure.events WHERE body LIKE '%"' || $1 || '"%')`

const whole = { payments: 1, changes: 1, extended: 1, events: 2, deliveries: 2 }

const isSame = (one: object, other: object): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const none = Object.fromEntries(Object.keys(whole).map((name) => [name, 0]))

/** Prepares an empty database, and returns what runs the payment of a seed, and what ends it. */
export const start = async (url: string) => {
  const tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
  const database = new pg.Pool({ connectionString: url, max: 2 })
  await database.query("CREATE TABLE payments (invoice text PRIMARY KEY)")
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })

  /** Waits until the server has noticed that a payer is gone. */
  const isOver = async (seed: number): Promise<void> => {
    const statement = "SELECT FROM pg_stat_activity WHERE application_name = $1"
    while ((await database.query(statement, [nameOf(seed)])).rows.length > 0) await sleep(5)
  }

  return {
    pay: async (seed: number): Promise<Left> => {
      await tenure.memberships.grant({ ...member(seed), endDate: startDate })
      const host = spawn(process.execPath, ["-C", "@tenure/source", payer, url, String(seed)], {
        stdio: ["ignore", "inherit", "inherit"],
      })
      const [, signal] = await once(host, "exit")
      if (signal !== "SIGKILL") throw new Error(`The host of seed ${seed} ended by itself`)
      await isOver(seed)
      const { rows } = await database.query<object>(`${withEvents} ${counts}`, [
        invoiceOf(seed),
        member(seed).userId,
        endDate,
      ])
      const left = rows[0] ?? {}
      if (isSame(left, whole)) return "all"
      return isSame(left, none) ? "nothing" : { part: left }
    },
    stop: async (): Promise<void> => {
      await database.end()
      await tenure.close()
    },
  }
}
