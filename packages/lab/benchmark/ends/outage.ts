/** A start after a day in which no process ran. */

import type { Database } from "../database.ts"
import type { Row } from "../measurement.ts"
import { inWords, start, untilAnnounced, untilArmed, verify, withMembers } from "./memberships.ts"

/** Starts after a day in which no process ran and memberships ended, one after the other. */
export const afterOutage = (database: Database, ended: number): Promise<Row> => {
  const schema = "benchmark_outage"
  return withMembers(database, schema, ended, async () => {
    const before = await start(database.url, schema, {})
    await untilArmed(database, schema)
    await before.close()
    await database.sql(`UPDATE ${schema}.expiry_settings SET since = now() - interval '2 days'`)
    // With the alarm of the last reminder, as it was when the processes ended.
    await database.sql(
      `UPDATE ${schema}.memberships m
       SET seq = p.seq, next_check_at = now() - interval '1 day',
           end_date = now() - interval '1 day' * (m.user_id::integer / $1::float8)
       FROM ${schema}.projects p WHERE p.number = m.project_number`,
      [ended],
    )
    await database.sql(`VACUUM ANALYZE ${schema}.memberships`)
    const began = performance.now()
    const tenure = await start(database.url, schema, {})
    await untilAnnounced(database, schema)
    const seconds = (performance.now() - began) / 1000
    await tenure.close()
    await verify(database, schema, ended)
    return {
      measured: `start after a day in which ${inWords(ended)} memberships ended, until the last is announced`,
      unit: "s",
      figure: seconds,
      target: { of: "figure", atMost: Math.max(10, (600 * ended) / 1_000_000) },
    }
  })
}
