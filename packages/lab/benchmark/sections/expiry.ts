/** Membership ends on PostgreSQL: what it costs others that they are announced, and how fast it goes. */

import { setTimeout as pause } from "node:timers/promises"
import type { Tenure } from "@tenure/core"
import {
  type Database,
  anyOf,
  endDate,
  extending,
  fill,
  inWords,
  startTenure,
  withSchema,
} from "../database.ts"
import { type Row, type Section, type Settings, ratioRows } from "../measurement.ts"
import { inPairs, quantile } from "../rounds.ts"
import { countStatements } from "../statements.ts"

const projectId = "p1"

/** Lends a schema with a project that has this many members, and removes it afterwards. */
const withMembers = <A>(
  database: Database,
  schema: string,
  members: number,
  use: () => Promise<A>,
): Promise<A> =>
  withSchema(database, schema, async () => {
    const tenure = await startTenure(database.url, schema, { expiry: false })
    await fill(database, tenure, projectId, members, schema)
    await tenure.memberships.extendAll({ projectId, endDate })
    await tenure.close()
    return use()
  })

/** Waits until a query finds nothing. */
const untilNone = async ({ sql }: Database, query: string): Promise<void> => {
  while ((await sql(query)).length > 0) await pause(100)
}

/** Waits until all memberships have their next check. */
const untilArmed = (database: Database, schema: string): Promise<void> =>
  untilNone(
    database,
    `SELECT WHERE NOT EXISTS (SELECT FROM ${schema}.expiry_settings)
     UNION ALL SELECT FROM ${schema}.expiry_passes`,
  )

/** Waits until there is no end left to announce. Returns the seconds that it took. */
const untilAnnounced = async (database: Database, schema: string): Promise<number> => {
  const began = performance.now()
  await untilNone(
    database,
    `SELECT FROM ${schema}.projects WHERE next_check_at <= now()
     UNION ALL SELECT FROM ${schema}.expiry_passes
     UNION ALL (SELECT FROM ${schema}.memberships WHERE next_check_at <= now() ORDER BY next_check_at LIMIT 1)`,
  )
  return (performance.now() - began) / 1000
}

/** Throws unless exactly this many ends were announced, and nothing else. */
const verify = async ({ sql }: Database, schema: string, members: number): Promise<void> => {
  const counts = await sql<{ readonly type: string; readonly count: number }>(
    `SELECT type, count(*)::integer AS count FROM ${schema}.events
     WHERE type LIKE 'membership.expir%' GROUP BY type`,
  )
  const [{ count, type } = { type: "nothing", count: 0 }] = counts
  if (counts.length !== 1 || type !== "membership.expired" || count !== members) {
    throw new Error(`of ${members} ends, these were announced: ${JSON.stringify(counts)}`)
  }
}

const numberIn = async ({ sql }: Database, query: string): Promise<number> => {
  const [row] = await sql<{ readonly number: number }>(query)
  return row?.number ?? NaN
}

/** The percentage of updates that leave all indexes as they are. */
const hotShare = (database: Database, schema: string): Promise<number> =>
  numberIn(
    database,
    `SELECT 100 * n_tup_hot_upd / n_tup_upd::float8 AS number FROM pg_stat_user_tables
     WHERE schemaname = '${schema}' AND relname = 'memberships' AND n_tup_upd > 0`,
  )

// Sessions report to the statistics within this time after they have closed.
const toldMillis = 1000

/** The cost of an extension beside one without the option, in many short turns. */
const extensionRows = (database: Database, settings: Settings): Promise<ReadonlyArray<Row>> => {
  const members = settings.pick(100_000, 1000)
  const [on, off] = ["benchmark_expiry", "benchmark_no_expiry"]
  const { sql, url } = database
  const measure = async (): Promise<ReadonlyArray<Row>> => {
    const arming = await startTenure(url, on)
    await untilArmed(database, on)
    await arming.close()
    await pause(toldMillis)
    for (const schema of [on, off]) {
      // Both tables are as dense as new ones.
      await sql(`VACUUM (FULL, ANALYZE) ${schema}.memberships`)
      await sql(`SELECT pg_stat_reset_single_table_counters('${schema}.memberships'::regclass)`)
    }
    const announcing = await startTenure(url, on)
    const silent = await startTenure(url, off, { expiry: false })
    const share = await inPairs(
      extending("expiry on", announcing, projectId, members),
      extending("expiry off", silent, projectId, members),
      { rounds: settings.pick(60, 2), seconds: settings.seconds / 4 },
    )
    for (const { close } of [announcing, silent]) await close()
    await pause(toldMillis)
    const measured = "rate of extensions with expiry on, of that of extensions with expiry off"
    return [
      ...ratioRows(measured, share, { of: "figure", atLeast: 0.95 }),
      {
        measured: "extensions that touch no index (HOT), expiry on",
        unit: "%",
        figure: await hotShare(database, on),
        yardstick: { name: "expiry off", figure: await hotShare(database, off) },
        target: { of: "ratio", atLeast: 0.95 },
      },
    ]
  }
  return withMembers(database, on, members, () => withMembers(database, off, members, measure))
}

/** The blocks that the database has looked at so far, in memory or not. */
const blocksSoFar = (database: Database): Promise<number> =>
  numberIn(
    database,
    `SELECT (blks_hit + blks_read)::float8 AS number
     FROM pg_stat_database WHERE datname = current_database()`,
  )

// Sessions that have nothing to do tell late what they have read.
const lateMillis = 11_000

/** The statements and blocks a second while nobody uses Tenure. */
const idling = async (
  database: Database,
  schema: string,
  expiry: false | undefined,
  { pick }: Settings,
) => {
  const { close, count, url } = await countStatements(database.url)
  const tenure = await startTenure(url, schema, { expiry })
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
const idleRows = (
  database: Database,
  settings: Settings,
  members: number,
): Promise<ReadonlyArray<Row>> => {
  const schema = "benchmark_idle"
  return withMembers(database, schema, members, async () => {
    const silent = await idling(database, schema, false, settings)
    const announcing = await idling(database, schema, undefined, settings)
    const row = (name: keyof typeof silent, measured: string): Row => ({
      measured: `${measured} a second while none of ${inWords(members)} memberships ends, expiry on`,
      unit: "",
      figure: announcing[name],
      yardstick: { name: "expiry off", figure: silent[name] },
    })
    return [
      // One look-up a second.
      { ...row("statements", "statements"), target: { of: "difference", atMost: 1.2 } },
      row("blocks", "blocks read"),
    ]
  })
}

// As many extensions as a busy project has, but less than the machine can do.
const intervalMillis = 5

/** Extends any members at a steady rate until told to stop. Returns the 99th percentile of the milliseconds. */
const extendSteadily = async (
  { memberships }: Tenure,
  members: number,
  isOver: () => boolean,
): Promise<number> => {
  const delays: Array<number> = []
  const extend = async (due: number) => {
    await memberships.extend({ projectId, userId: anyOf(members), endDate })
    delays.push(performance.now() - due)
  }
  const all: Array<Promise<void>> = []
  for (let due = performance.now(); !isOver(); due += intervalMillis) {
    await pause(Math.max(0, due - performance.now()))
    all.push(extend(due))
  }
  await Promise.all(all)
  return quantile(delays, 0.99)
}

// How far ahead the end is set.
const aheadMillis = 1000

/** Has so many memberships end at once, and extends others meanwhile. */
const endTogether = (
  database: Database,
  { pick }: Settings,
  where: "of the same project" | "of another project",
  count: number,
): Promise<ReadonlyArray<Row>> => {
  const schema = "benchmark_together"
  const others = pick(10_000, 100)
  const { sql, url } = database
  const isOther = where === "of another project"
  return withMembers(database, schema, others, async () => {
    // So that only the ends are announced.
    const tenure = await startTenure(url, schema, {
      expiry: { reminders: [], holdAfterBulk: 0 },
    })
    await untilArmed(database, schema)
    if (isOther) await fill(database, tenure, "ending", count, schema)
    else {
      await sql(
        `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
         SELECT number, n::text, '2098-01-01', seq + 1, '2098-01-01'
         FROM ${schema}.projects, generate_series($2::int + 1, $2::int + $3::int) n WHERE id = $1`,
        [projectId, others, count],
      )
      await sql(`VACUUM ANALYZE ${schema}.memberships`)
    }
    const extendFor = (seconds: number) => {
      const quiet = performance.now() + 1000 * seconds
      return extendSteadily(tenure, others, () => performance.now() > quiet)
    }
    await extendFor(pick(5, 0.1))
    const before = await extendFor(pick(10, 0.5))
    const end = Date.now() + aheadMillis
    // The other project gets a bulk extension, and members in the same one their own date.
    if (isOther) await tenure.memberships.extendAll({ projectId: "ending", endDate: end })
    else {
      await sql(
        `UPDATE ${schema}.memberships
         SET end_date = to_timestamp($2::float8 / 1000), next_check_at = to_timestamp($2::float8 / 1000)
         WHERE user_id::integer > $1`,
        [others, end],
      )
    }
    await pause(Math.max(0, end - Date.now()))
    let isOver = false
    const extensions = extendSteadily(tenure, others, () => isOver)
    const seconds = await untilAnnounced(database, schema)
    isOver = true
    const meanwhile = await extensions
    await tenure.close()
    await verify(database, schema, count)
    return [
      {
        measured: `ends of ${inWords(count)} memberships ${where} in the same second, until the last is announced`,
        unit: "s",
        figure: seconds,
        // A million in ten minutes.
        target: { of: "figure", atMost: Math.max(10, (600 * count) / 1_000_000) },
      },
      {
        measured: `an extension while ${inWords(count)} memberships ${where} end, at 200 a second, 99th percentile`,
        unit: "ms",
        figure: meanwhile,
        yardstick: { name: "before", figure: before },
        target: { of: "ratio", atMost: isOther ? 1.3 : 2 },
      },
    ]
  })
}

const million = 1_000_000

export const expiry: Section = {
  name: "expiry",
  measure: async (settings) => {
    const { isLarge, pick } = settings
    const database = await settings.database()
    const rows: Array<Row> = [
      ...(await extensionRows(database, settings)),
      ...(await idleRows(database, settings, pick(100_000, 100))),
      ...(await endTogether(database, settings, "of the same project", pick(30_000, 200))),
      ...(await endTogether(database, settings, "of another project", pick(100_000, 200))),
    ]
    if (isLarge) {
      rows.push(
        ...(await idleRows(database, settings, 10 * million)),
        ...(await endTogether(database, settings, "of another project", million)),
      )
    }
    return { rows }
  },
}
