/** A bulk extension for a million members, beside the UPDATE that a team would write. */

import { type Database, endDate, fill, onDatabase } from "../database.ts"
import type { Section } from "../measurement.ts"
import { median } from "../rounds.ts"

const table = "benchmark_members"

export const bulkRow = "bulk extension beside an UPDATE of every member"

const createTable = async ({ sql }: Database, members: number): Promise<void> => {
  await sql(`DROP TABLE IF EXISTS ${table}, ${table}_audit`)
  await sql(`CREATE TABLE ${table} (project_id text, user_id text, end_date timestamptz NOT NULL,
    PRIMARY KEY (project_id, user_id)) WITH (fillfactor = 50)`)
  await sql(`CREATE TABLE ${table}_audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(), project_id text, to_date timestamptz)`)
  await sql(`INSERT INTO ${table} SELECT 'p1', n, now() FROM generate_series(1, ${members}) n`)
  await sql(`VACUUM ANALYZE ${table}`)
}

const millisOf = async (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/**
 * The time of both. Half of each page is free for new versions of rows, and no index has the end date, so
 * the UPDATE writes to no index. Removing old versions is not measured. Tenure's readers compute the date of a member
 * from its bulk extensions; the section `bulk-log` measures that.
 */
export const bulkUpdate: Section = {
  name: "bulk-update",
  measure: onDatabase(async (database, tenure, { pick, rounds }) => {
    const members = pick(1_000_000, 1000)
    const projectId = "updated"
    await fill(database, tenure, projectId, members)
    await createTable(database, members)
    const statements = [
      `UPDATE ${table} SET end_date = $1::timestamptz WHERE project_id = 'p1'`,
      `INSERT INTO ${table}_audit (project_id, to_date) VALUES ('p1', $1::timestamptz)`,
    ]
    const bulk: Array<number> = []
    const update: Array<number> = []
    for (let round = 0; round < rounds; round++) {
      for (let count = 0; count < 5; count++) {
        bulk.push(await millisOf(() => tenure.memberships.extendAll({ projectId, endDate })))
      }
      update.push(await millisOf(() => database.transaction(statements, [endDate])))
      await database.sql(`VACUUM ${table}`)
    }
    await database.sql(`DROP TABLE ${table}, ${table}_audit`)
    return {
      rows: [
        {
          measured: bulkRow,
          unit: "ms",
          figure: median(bulk),
          yardstick: { name: "one UPDATE and an audit row", figure: median(update) },
          target: { of: "ratio", atMost: 0.1 },
        },
      ],
    }
  }),
}
