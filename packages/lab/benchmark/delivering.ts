/** Backlogs, and the processes that deliver them: how fast, and at what cost. */

import { fillBacklog } from "./backlog.ts"
import { type Database, databaseCpu, startTenure } from "./database.ts"
import { start } from "./processes.ts"
import { startReceiver } from "./receiving.ts"
import type { Toggled } from "./servers/sender.ts"

const schema = "benchmark_rates"

/** A backlog, and who delivers it. */
export interface Case {
  /** Of as many projects. */
  readonly webhooks: number
  /** How long the receiver takes to answer. */
  readonly delayMillis: number
  readonly processes: number
  /** About as many as are delivered in a second. */
  readonly rate: number
}

/** How a backlog was delivered. Costs are those of one delivery. */
export interface Delivered {
  /** Deliveries a second. */
  readonly rate: number
  /** Microseconds of processor time, of all processes that send. */
  readonly sending: number
  /** Microseconds of processor time, in the receiver. */
  readonly receiving: number
  /** Microseconds of processor time, in PostgreSQL. It is 0 where the system does not tell. */
  readonly database: number
  /** How many were claimed at a time. */
  readonly atATime: number
  /** How many were settled at a time. */
  readonly settledAtATime: number
  /** How long a claim took, in microseconds. */
  readonly claim: number
  /** Bytes of the write-ahead log. */
  readonly logBytes: number
}

const cpuSoFar = ({ system, user }: Toggled): number => system + user

const sum = (numbers: ReadonlyArray<number>): number =>
  numbers.reduce((total, one) => total + one, 0)

/** What PostgreSQL has used so far, and done. */
interface Used {
  readonly bytes: number
  readonly calls: number
  readonly commits: number
  readonly cpu: number
  readonly micros: number
}

const nothingUsed: Used = { bytes: 0, calls: 0, commits: 0, cpu: 0, micros: 0 }

const usedBy = async ({ sql }: Database): Promise<Used> => {
  const [counted = nothingUsed] = await sql<Omit<Used, "cpu">>(
    `SELECT coalesce(sum(calls), 0)::float8 AS calls,
            coalesce(sum(total_time), 0)::float8 * 1000 AS micros,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS bytes,
            (SELECT xact_commit FROM pg_stat_database
             WHERE datname = current_database())::float8 AS commits
     FROM pg_stat_user_functions WHERE schemaname = $1 AND funcname = 'claim'`,
    [schema],
  )
  return { ...counted, cpu: await databaseCpu(sql) }
}

// It counts calls of functions and their time.
const counting = (url: string): string => {
  const counted = new URL(url)
  counted.searchParams.set("options", "-c track_functions=pl")
  return counted.href
}

/** Delivers backlogs. */
export interface Deliveries<Name> {
  /** Delivers one for about twice as many seconds, so that its beginning matters little. */
  readonly deliver: (name: Name, seconds: number) => Promise<Delivered>
  readonly stop: () => Promise<void>
}

// Their ids are in URLs.
const projectsOf = (name: string, { webhooks }: Case): ReadonlyArray<string> =>
  Array.from({ length: webhooks }, (_, index) => `${name.replaceAll(/\W+/g, "-")}-${index}`)

/** Registers the webhooks of all cases, and starts the processes. */
export const prepare = async <Name extends string>(
  database: Database,
  cases: Readonly<Record<Name, Case>>,
): Promise<Deliveries<Name>> => {
  const { sql, url } = database
  const all: ReadonlyArray<readonly [string, Case]> = Object.entries(cases)
  await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  const receiver = await startReceiver()
  const tenure = await startTenure(url, schema)
  for (const [name, one] of all) {
    await receiver.register(tenure, projectsOf(name, one), one.delayMillis)
  }
  await tenure.close()
  const most = Math.max(...all.map(([, { processes }]) => processes))
  const senders = await Promise.all(
    Array.from({ length: most }, () =>
      start("./servers/sender.ts", { args: [schema, counting(url)] }),
    ),
  )
  return {
    deliver: async (name, seconds) => {
      const { processes, rate } = cases[name]
      const count = Math.ceil(2 * rate * seconds)
      await fillBacklog({ url, schema }, projectsOf(name, cases[name]), count)
      const toggle = () =>
        Promise.all(senders.slice(0, processes).map(({ ask }) => ask<Toggled>({})))
      const before = { used: await usedBy(database), report: await receiver.report() }
      const began = await toggle()
      const received = await receiver.until(before.report.distinct + count)
      // The processes that serve connections end with these.
      const { cpu } = await usedBy(database)
      const ended = await toggle()
      const { bytes, calls, commits, micros } = await usedBy(database)
      const claims = calls - before.used.calls
      return {
        rate: received.rate,
        sending: (sum(ended.map(cpuSoFar)) - sum(began.map(cpuSoFar))) / count,
        receiving: (received.cpu - before.report.cpu) / count,
        database: (cpu - before.used.cpu) / count,
        atATime: count / claims,
        // Hardly anything else is committed meanwhile.
        settledAtATime: count / (commits - before.used.commits - claims),
        claim: (micros - before.used.micros) / claims,
        logBytes: (bytes - before.used.bytes) / count,
      }
    },
    stop: async () => {
      for (const { stop } of [receiver, ...senders]) stop()
      await sql(`DROP SCHEMA ${schema} CASCADE`)
    },
  }
}
