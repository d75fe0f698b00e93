/** Memberships that end in the same second, and extensions of others meanwhile. */

import { setTimeout as pause } from "node:timers/promises"
import type { Tenure } from "@tenure/core"
import { type Database, fill } from "../database.ts"
import type { Row, Settings } from "../measurement.ts"
import { quantile } from "../rounds.ts"
import {
  extendAny,
  inWords,
  projectId,
  start,
  untilAnnounced,
  untilArmed,
  verify,
  withMembers,
} from "./memberships.ts"

// As many extensions as a busy project has, but less than the machine can do.
const intervalMillis = 5

/** Extends any members at a steady rate until told to stop. Returns how long each has taken, in milliseconds. */
const extendSteadily = async (
  tenure: Tenure,
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

// How far ahead the end is set.
const aheadMillis = 1000

/** Where memberships end, and how that is set. */
interface Ending {
  readonly where: string
  /** Adds this many memberships. */
  readonly add: (on: On, count: number) => Promise<void>
  /** Has these end at a time. */
  readonly endAt: (on: On, end: number) => Promise<unknown>
  /** How many times as long an extension may take meanwhile. */
  readonly atMost: number
}

/** A schema with a project whose members are extended. */
interface On {
  readonly database: Database
  readonly schema: string
  readonly tenure: Tenure
  readonly others: number
}

/** All members of another project get the date of a bulk extension. */
export const ofAnotherProject: Ending = {
  where: "of another project",
  add: ({ database, schema, tenure }, count) => fill(database, tenure, "ending", count, schema),
  endAt: ({ tenure }, end) => tenure.memberships.extendAll({ projectId: "ending", endDate: end }),
  atMost: 1.3,
}

/** Further members of the same project have that date of their own. */
export const ofTheSameProject: Ending = {
  where: "of the same project",
  add: async ({ database: { sql }, others, schema }, count) => {
    await sql(
      `INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq, next_check_at)
       SELECT number, n::text, '2098-01-01', seq + 1, '2098-01-01'
       FROM ${schema}.projects, generate_series($2::int + 1, $2::int + $3::int) n WHERE id = $1`,
      [projectId, others, count],
    )
    await sql(`VACUUM ANALYZE ${schema}.memberships`)
  },
  endAt: ({ database, others, schema }, end) =>
    database.sql(
      `UPDATE ${schema}.memberships SET end_date = to_timestamp($2::float8 / 1000), next_check_at = to_timestamp($2::float8 / 1000)
       WHERE user_id::integer > $1`,
      [others, end],
    ),
  atMost: 2,
}

/** Has so many memberships end at once, and extends those of a project meanwhile. */
export const endTogether = (
  database: Database,
  { pick }: Settings,
  { add, atMost, endAt, where }: Ending,
  count: number,
): Promise<ReadonlyArray<Row>> => {
  const schema = "benchmark_together"
  const others = pick(10_000, 100)
  return withMembers(database, schema, others, async () => {
    // So that only the ends are announced.
    const tenure = await start(database.url, schema, { reminders: [] })
    await untilArmed(database, schema)
    const on: On = { database, schema, tenure, others }
    await add(on, count)
    const extendFor = (seconds: number) => {
      const quiet = performance.now() + 1000 * seconds
      return extendSteadily(tenure, others, () => performance.now() > quiet)
    }
    await extendFor(pick(5, 0.1))
    const before = await extendFor(pick(10, 0.5))
    const end = Date.now() + aheadMillis
    await endAt(on, end)
    await pause(Math.max(0, end - Date.now()))
    let isOver = false
    const extensions = extendSteadily(tenure, others, () => isOver)
    const began = performance.now()
    await untilAnnounced(database, schema)
    const seconds = (performance.now() - began) / 1000
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
        figure: quantile(meanwhile, 0.99),
        yardstick: { name: "before", figure: quantile(before, 0.99) },
        target: { of: "ratio", atMost },
      },
    ]
  })
}
