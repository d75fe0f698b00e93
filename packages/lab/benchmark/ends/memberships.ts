/** Schemas with memberships that end. */

import { setTimeout as pause } from "node:timers/promises"
import { type CreateTenureOptions, type Tenure, createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { type Database, fill } from "../database.ts"

export const projectId = "p1"
const endDate = "2099-01-01T00:00:00.000Z"

export const start = (url: string, schema: string, expiry: CreateTenureOptions["expiry"]) =>
  createTenure({ stores: postgres({ url, schema }), expiry })

/** Lends an empty schema with a project of this many members to a function, and removes it afterwards. */
export const withMembers = async <A>(
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
export const untilArmed = (database: Database, schema: string): Promise<void> =>
  untilNone(
    database,
    `SELECT WHERE NOT EXISTS (SELECT FROM ${schema}.expiry_settings)
     UNION ALL SELECT FROM ${schema}.expiry_passes`,
  )

/** Waits until there is no end left to announce. */
export const untilAnnounced = (database: Database, schema: string): Promise<void> =>
  untilNone(
    database,
    `SELECT FROM ${schema}.projects WHERE next_check_at <= now()
     UNION ALL SELECT FROM ${schema}.expiry_passes
     UNION ALL (SELECT FROM ${schema}.memberships WHERE next_check_at <= now() ORDER BY next_check_at LIMIT 1)`,
  )

/** Extends one of the members, whose ids are 1 and so on. */
export const extendAny = ({ memberships }: Tenure, members: number) =>
  memberships.extend({
    projectId,
    userId: String(1 + Math.floor(Math.random() * members)),
    endDate,
  })

/** Throws an error unless the end of each of so many memberships was announced, and nothing else. */
export const verify = async ({ sql }: Database, schema: string, members: number): Promise<void> => {
  const counts = await sql<{ readonly type: string; readonly count: number }>(
    `SELECT type, count(*)::integer AS count FROM ${schema}.events
     WHERE type LIKE 'membership.expir%' GROUP BY type`,
  )
  const [{ count, type } = { type: "nothing", count: 0 }] = counts
  if (counts.length !== 1 || type !== "membership.expired" || count !== members) {
    throw new Error(`of ${members} ends, these were announced: ${JSON.stringify(counts)}`)
  }
}

/** A number of memberships, in words. */
export const inWords = (memberships: number): string => memberships.toLocaleString("en")
