/** What it costs others that ends are announced, none of which comes. */

import { setTimeout as pause } from "node:timers/promises"
import type { CreateTenureOptions, Tenure } from "@tenure/core"
import { type Database, clients } from "../database.ts"
import { type Row, type Settings, ratioRows } from "../measurement.ts"
import { type Contestant, inPairs, loops } from "../rounds.ts"
import { countStatements } from "../statements.ts"
import { extendAny, inWords, start, untilArmed, withMembers } from "./memberships.ts"

// All reminders, and the rate, are those by default.
const rules = {}

const extending = (name: string, tenure: Tenure, members: number): Contestant => ({
  name,
  run: (seconds) => loops(clients, seconds, () => extendAny(tenure, members)),
})

/** Which share of the updates of memberships leaves the indexes as they are. */
const hotShare = async ({ sql }: Database, schema: string): Promise<number> => {
  const [row] = await sql<{ readonly share: number }>(
    `SELECT n_tup_hot_upd / n_tup_upd::float8 AS share FROM pg_stat_user_tables
     WHERE schemaname = '${schema}' AND relname = 'memberships' AND n_tup_upd > 0`,
  )
  return row?.share ?? NaN
}

// The sessions of a Tenure that closes tell what they have done.
const toldMillis = 1000

/** What an extension costs beside one without the option, in many short turns of each. */
export const extensionRows = async (
  database: Database,
  settings: Settings,
): Promise<ReadonlyArray<Row>> => {
  const members = settings.pick(100_000, 1000)
  const [on, off] = ["benchmark_expiry", "benchmark_no_expiry"]
  return withMembers(database, on, members, () =>
    withMembers(database, off, members, async () => {
      const arming = await start(database.url, on, rules)
      await untilArmed(database, on)
      await arming.close()
      await pause(toldMillis)
      for (const schema of [on, off]) {
        // Both tables are as dense as new ones.
        await database.sql(`VACUUM (FULL, ANALYZE) ${schema}.memberships`)
        await database.sql(
          `SELECT pg_stat_reset_single_table_counters('${schema}.memberships'::regclass)`,
        )
      }
      const announcing = await start(database.url, on, rules)
      const silent = await start(database.url, off, false)
      const share = await inPairs(
        extending("expiry on", announcing, members),
        extending("expiry off", silent, members),
        { rounds: settings.pick(60, 2), seconds: settings.seconds / 4 },
      )
      await announcing.close()
      await silent.close()
      await pause(toldMillis)
      const measured = "rate of extensions with expiry on, of that of extensions with expiry off"
      return [
        ...ratioRows(measured, share, { of: "figure", atLeast: 0.95 }),
        {
          measured: "extensions that touch no index (HOT), expiry on",
          unit: "%",
          figure: 100 * (await hotShare(database, on)),
          yardstick: { name: "expiry off", figure: 100 * (await hotShare(database, off)) },
          target: { of: "ratio", atLeast: 0.95 },
        },
      ]
    }),
  )
}

/** What a Tenure does that nobody uses, in a second. */
interface Idling {
  readonly statements: number
  /** The blocks that the database has looked at for it, in memory or not. */
  readonly blocks: number
}

const blocksSoFar = async ({ sql }: Database): Promise<number> => {
  const [row] = await sql<{ readonly blocks: number }>(
    `SELECT (blks_hit + blks_read)::float8 AS blocks
     FROM pg_stat_database WHERE datname = current_database()`,
  )
  return row?.blocks ?? NaN
}

// Sessions that have nothing to do tell late what they have read.
const lateMillis = 11_000

const idling = async (
  database: Database,
  schema: string,
  expiry: CreateTenureOptions["expiry"],
  { pick }: Settings,
): Promise<Idling> => {
  const { close, count, url } = await countStatements(database.url)
  const tenure = await start(url, schema, expiry)
  if (expiry !== false) await untilArmed(database, schema)
  await pause(pick(lateMillis, toldMillis))
  const seconds = pick(20, 1)
  const before = { statements: count(), blocks: await blocksSoFar(database) }
  await pause(1000 * seconds)
  const after = { statements: count(), blocks: await blocksSoFar(database) }
  await tenure.close()
  close()
  return {
    statements: (after.statements - before.statements) / seconds,
    blocks: (after.blocks - before.blocks) / seconds,
  }
}

/** What a process does while so many memberships have long to go. */
export const idleRows = (
  database: Database,
  settings: Settings,
  members: number,
): Promise<ReadonlyArray<Row>> => {
  const schema = "benchmark_idle"
  return withMembers(database, schema, members, async () => {
    const silent = await idling(database, schema, false, settings)
    const announcing = await idling(database, schema, rules, settings)
    const measured = `a second while none of ${inWords(members)} memberships ends, expiry on`
    return [
      {
        measured: `statements ${measured}`,
        unit: "",
        figure: announcing.statements,
        yardstick: { name: "expiry off", figure: silent.statements },
        // One look-up a second.
        target: { of: "difference", atMost: 1.2 },
      },
      {
        measured: `blocks read ${measured}`,
        unit: "",
        figure: announcing.blocks,
        yardstick: { name: "expiry off", figure: silent.blocks },
      },
    ]
  })
}
