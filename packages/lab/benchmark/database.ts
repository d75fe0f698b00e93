/** The database that everything is measured on. */

import { readFile } from "node:fs/promises"
import { PgClient } from "@effect/sql-pg"
import { type CreateTenureOptions, type Tenure, createTenure } from "@tenure/core"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import type { Findings, Section, Settings } from "./measurement.ts"
import { type Contestant, loops } from "./rounds.ts"

/** Where Tenure keeps everything meanwhile. */
export const schema = "benchmark"

/** Clients at the same time. */
export const clients = 64

export const endDate = "2099-01-01T00:00:00.000Z"

/** Connections to the database. */
export interface Database {
  readonly url: string
  readonly sql: <Row extends object>(
    text: string,
    params?: ReadonlyArray<unknown>,
  ) => Promise<ReadonlyArray<Row>>
  /** Runs statements as one transaction. */
  readonly transaction: (
    texts: ReadonlyArray<string>,
    params: ReadonlyArray<unknown>,
  ) => Promise<unknown>
  readonly close: () => Promise<void>
}

/** Connects, and makes room for the schema. */
export const connect = async (url: string): Promise<Database> => {
  const runtime = ManagedRuntime.make(
    PgClient.layer({ url: Redacted.make(url), maxConnections: clients }),
  )
  const sql: Database["sql"] = <Row extends object>(
    text: string,
    params: ReadonlyArray<unknown> = [],
  ) =>
    runtime.runPromise(
      Effect.flatMap(PgClient.PgClient, (client) => client.unsafe<Row>(text, params)),
    )
  await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  return {
    url,
    sql,
    transaction: (texts, params) =>
      runtime.runPromise(
        Effect.flatMap(PgClient.PgClient, (client) =>
          client.withTransaction(Effect.forEach(texts, (text) => client.unsafe(text, params))),
        ),
      ),
    close: async () => {
      await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await runtime.dispose()
    },
  }
}

/** A process's processor time in microseconds, or 0 where the system does not tell. */
export const cpuOf = async (pid: number): Promise<number> => {
  const [nanos] = (await readFile(`/proc/${pid}/schedstat`, "utf8").catch(() => "0")).split(" ")
  return Number(nanos) / 1000
}

const cpuByPid = async (
  sql: Database["sql"],
): Promise<ReadonlyArray<readonly [number, number]>> => {
  const processes = await sql<{ pid: number }>("SELECT pid FROM pg_stat_activity")
  return Promise.all(processes.map(async ({ pid }) => [pid, await cpuOf(pid)] as const))
}

/**
 * Starts to measure the processor time of connections to PostgreSQL. The result returns the microseconds
 * since. Connections that were closed meanwhile count nothing, so pools that shrink do no harm.
 */
export const meterDatabase = async (sql: Database["sql"]): Promise<() => Promise<number>> => {
  const before = new Map(await cpuByPid(sql))
  return async () =>
    (await cpuByPid(sql)).reduce((total, [pid, cpu]) => total + cpu - (before.get(pid) ?? 0), 0)
}

/** Starts a Tenure, which also delivers to this machine. */
export const startTenure = (
  url: string,
  into = schema,
  options: Omit<CreateTenureOptions, "stores"> = {},
): Promise<Tenure> =>
  createTenure({
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
    ...options,
    stores: postgres({ url, schema: into }),
  })

/** Lends a database and a Tenure on it to a function that measures. */
export const onDatabase =
  (
    measure: (database: Database, tenure: Tenure, settings: Settings) => Promise<Findings>,
  ): Section["measure"] =>
  async (settings) => {
    const database = await settings.database()
    const tenure = await startTenure(database.url)
    try {
      return await measure(database, tenure, settings)
    } finally {
      await tenure.close()
    }
  }

/** Makes a project with this many members, written directly to its table. */
export const fill = async (
  { sql }: Database,
  tenure: Tenure,
  projectId: string,
  size: number,
  into = schema,
): Promise<void> => {
  await tenure.memberships.createProject(projectId)
  await sql(
    `INSERT INTO ${into}.memberships (project_number, user_id, end_date, seq)
     SELECT number, n::text, now(), 0
     FROM ${into}.projects, generate_series(1, $2::int) n WHERE id = $1`,
    [projectId, size],
  )
  await sql(`UPDATE ${into}.projects SET membership_count = $2::bigint WHERE id = $1`, [
    projectId,
    BigInt(size),
  ])
  await sql(`VACUUM ANALYZE ${into}.memberships`)
}

/** Any of so many members, whose ids are 1 and so on. */
export const anyOf = (members: number): string => String(1 + Math.floor(Math.random() * members))

/** A contestant that extends a project's members. */
export const extending = (
  name: string,
  { memberships }: Tenure,
  projectId: string,
  members: number,
  idempotencyKey: () => string | undefined = () => undefined,
): Contestant => ({
  name,
  run: (seconds) =>
    loops(clients, seconds, () =>
      memberships.extend({
        projectId,
        userId: anyOf(members),
        endDate,
        idempotencyKey: idempotencyKey(),
      }),
    ),
})

/** Starts over with an empty schema, and removes it after a function has used it. */
export const withSchema = async <A>(
  { sql }: Database,
  name: string,
  use: () => Promise<A>,
): Promise<A> => {
  await sql(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
  try {
    return await use()
  } finally {
    await sql(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
  }
}

/** A number in words. */
export const inWords = (count: number): string => count.toLocaleString("en")
