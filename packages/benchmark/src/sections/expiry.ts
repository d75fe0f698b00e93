/** The ends of memberships on PostgreSQL: what it costs others that they are announced, and how fast it goes. */

import { setTimeout as pause } from "node:timers/promises"
import * as Tenure from "@tenure/core/Tenure"
import { postgres } from "@tenure/postgres"
import { clients, type Database, fill } from "../database.ts"
import { type Row, rowsOf, type Section, type Settings } from "../measurement.ts"
import { compare, type Contestant, loops, quantile } from "../rounds.ts"
import { countStatements } from "../statements.ts"

const projectId = "p1"
const endDate = "2099-01-01T00:00:00.000Z"

// All reminders, and the pace, are those by default.
const rules = {}

const start = (url: string, schema: string, expiry: Tenure.MakeOptions["expiry"]) =>
  Tenure.make({ stores: postgres({ url, schema }), expiry })

/** Lends an empty schema with a project of this many members to a function, and removes it afterwards. */
const withMembers = async <A>(
  database: Database,
  schema: string,
  members: number,
  use: () => Promise<A>,
): Promise<A> => {
  await database.sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  const tenure = await start(database.url, schema, false)
  await fill(database, tenure, projectId, members, schema)
  await tenure.memberships.extendAll({ projectId, endDate })
  await tenure.close()
  try {
    return await use()
  } finally {
    await database.sql(`DROP SCHEMA ${schema} CASCADE`)
  }
}

/** Waits until a query finds nothing. */
const untilNone = async ({ sql }: Database, query: string): Promise<void> => {
  while ((await sql(query)).length > 0) await pause(100)
}

/** Waits until all memberships have alarms. */
const untilArmed = (database: Database, schema: string): Promise<void> =>
  untilNone(
    database,
    `SELECT WHERE NOT EXISTS (SELECT FROM ${schema}.expiry)
     UNION ALL SELECT FROM ${schema}.expiry_passes`,
  )

/** Waits until there is no end left to announce. */
const untilAnnounced = (database: Database, schema: string): Promise<void> =>
  untilNone(
    database,
    `SELECT FROM ${schema}.projects WHERE alarm_at <= now()
     UNION ALL SELECT FROM ${schema}.expiry_passes
     UNION ALL (SELECT FROM ${schema}.memberships WHERE alarm_at <= now() LIMIT 1)`,
  )

const extendAny = ({ memberships }: Tenure.Tenure, members: number) =>
  memberships.extend({
    projectId,
    userId: String(1 + Math.floor(Math.random() * members)),
    endDate,
  })

const extending = (name: string, tenure: Tenure.Tenure, members: number): Contestant => ({
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

/** What an extension costs while ends are announced, none of which comes. */
const extensionRows = async (
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
      const scores = await compare(
        {
          tenure: extending("Tenure", announcing, members),
          peers: [extending("expiry off", silent, members)],
        },
        settings,
      )
      await announcing.close()
      await silent.close()
      await pause(toldMillis)
      return [
        ...rowsOf("extension, expiry on", "rate", scores, {
          "expiry off": { of: "ratio", atLeast: 0.95 },
        }),
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

/** The statements a second of a Tenure that nobody uses. */
const idleStatements = async (
  database: Database,
  schema: string,
  expiry: Tenure.MakeOptions["expiry"],
  seconds: number,
): Promise<number> => {
  const { close, count, url } = await countStatements(database.url)
  const tenure = await start(url, schema, expiry)
  await untilArmed(database, schema)
  await pause(toldMillis)
  const before = count()
  await pause(1000 * seconds)
  const statements = count() - before
  await tenure.close()
  close()
  return statements / seconds
}

const idleRow = (database: Database, { pick }: Settings): Promise<Row> => {
  const schema = "benchmark_idle"
  const seconds = pick(20, 1)
  return withMembers(database, schema, pick(100_000, 100), async () => ({
    measured: "statements a second while nothing ends, expiry on",
    unit: "",
    figure: await idleStatements(database, schema, rules, seconds),
    yardstick: {
      name: "expiry off",
      figure: await idleStatements(database, schema, false, seconds),
    },
    // Three look-ups, twice a second.
    target: { of: "difference", atMost: 6.5 },
  }))
}

// As many extensions as a busy project has, but less than the machine can do.
const intervalMillis = 5

/** Extends any members at a steady rate until told to stop. Returns how long each has taken, in milliseconds. */
const extendSteadily = async (
  tenure: Tenure.Tenure,
  members: number,
  isOver: () => boolean,
): Promise<ReadonlyArray<number>> => {
  const delays: Array<number> = []
  const extend = async (due: number) => {
    await extendAny(tenure, members)
    delays.push(performance.now() - due)
  }
  const all: Array<Promise<void>> = []
  for (let due = performance.now(); !isOver(); due += intervalMillis) {
    await pause(Math.max(0, due - performance.now()))
    all.push(extend(due))
  }
  await Promise.all(all)
  return delays
}

/** Throws an error unless the end of each of so many memberships was announced, and nothing else. */
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

// How far ahead the end is set.
const aheadMillis = 1000

/** Has so many memberships end at once, and extends those of another project meanwhile. */
const endTogether = (database: Database, { pick }: Settings): Promise<ReadonlyArray<Row>> => {
  const schema = "benchmark_together"
  const ending = pick(100_000, 200)
  const others = pick(10_000, 100)
  return withMembers(database, schema, others, async () => {
    // So that only the ends are announced.
    const tenure = await start(database.url, schema, { reminders: [] })
    await untilArmed(database, schema)
    await fill(database, tenure, "ending", ending, schema)
    const quiet = performance.now() + 1000 * pick(10, 0.5)
    const before = await extendSteadily(tenure, others, () => performance.now() > quiet)
    let isOver = false
    const extensions = extendSteadily(tenure, others, () => isOver)
    const end = Date.now() + aheadMillis
    await tenure.memberships.extendAll({ projectId: "ending", endDate: end })
    await pause(end - Date.now())
    const began = performance.now()
    await untilAnnounced(database, schema)
    const seconds = (performance.now() - began) / 1000
    isOver = true
    const meanwhile = await extensions
    await tenure.close()
    await verify(database, schema, ending)
    const count = ending.toLocaleString("en")
    return [
      {
        measured: `ends of ${count} memberships in the same second, until the last is announced`,
        unit: "s",
        figure: seconds,
        // A million in ten minutes.
        target: { of: "figure", atMost: 60 },
      },
      {
        measured: `an extension meanwhile, at 200 a second, 99th percentile`,
        unit: "ms",
        figure: quantile(meanwhile, 0.99),
        yardstick: { name: "before", figure: quantile(before, 0.99) },
        target: { of: "ratio", atMost: 2 },
      },
    ]
  })
}

/** Starts after a day in which no process ran and memberships ended, one after the other. */
const afterOutage = (database: Database, { pick }: Settings): Promise<Row> => {
  const schema = "benchmark_outage"
  const ended = pick(100_000, 200)
  return withMembers(database, schema, ended, async () => {
    const before = await start(database.url, schema, rules)
    await untilArmed(database, schema)
    await before.close()
    await database.sql(`UPDATE ${schema}.expiry SET since = now() - interval '2 days'`)
    // With the alarm of the last reminder, as it was when the processes ended.
    await database.sql(
      `UPDATE ${schema}.memberships m
       SET seq = p.seq, alarm_at = now() - interval '1 day',
           end_date = now() - interval '1 day' * (m.user_id::integer / $1::float8)
       FROM ${schema}.projects p WHERE p.number = m.project_number`,
      [ended],
    )
    await database.sql(`VACUUM ANALYZE ${schema}.memberships`)
    const began = performance.now()
    const tenure = await start(database.url, schema, rules)
    await untilAnnounced(database, schema)
    const seconds = (performance.now() - began) / 1000
    await tenure.close()
    await verify(database, schema, ended)
    return {
      measured: `start after a day in which ${ended.toLocaleString("en")} memberships ended, until the last is announced`,
      unit: "s",
      figure: seconds,
      target: { of: "figure", atMost: 60 },
    }
  })
}

/** The ends of memberships. */
export const expiry: Section = {
  name: "expiry",
  measure: async (settings) => {
    const database = await settings.database()
    return {
      rows: [
        ...(await extensionRows(database, settings)),
        await idleRow(database, settings),
        ...(await endTogether(database, settings)),
        await afterOutage(database, settings),
      ],
    }
  },
}
