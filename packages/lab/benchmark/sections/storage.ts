/** Bytes on PostgreSQL: what rows take with their indexes, and what changes write to its log. */

import { data } from "../backlog.ts"
import { type Database, endDate, onDatabase, schema } from "../database.ts"
import type { Row, Section } from "../measurement.ts"

const projectId = "storage"
// As over HTTP, where each change names its request and key.
const keyId = crypto.randomUUID()

/** What the rows are called. */
export const measured = {
  membership: "a membership, with its indexes",
  auditRow: "an audit row, with its indexes",
  event: "an event, with its indexes",
  delivery: "a delivery, with its indexes",
  extension: "write-ahead log of an extension",
  publication: "write-ahead log of an event with one delivery",
} as const

const sizeOf = (table: string): string => `pg_total_relation_size('${schema}.${table}')::float8`

// Partitioned tables are measured with their partitions.
const partsOf = (table: string): string => `
  (SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::float8
   FROM pg_partition_tree('${schema}.${table}'))`

/** What is measured, in bytes. The log is what has been written so far. */
const sizes = {
  membership: sizeOf("memberships"),
  auditRow: `${partsOf("audit")} + ${sizeOf("audit")}`,
  event: partsOf("events"),
  delivery: sizeOf("deliveries"),
  log: "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8",
} as const

type Sizes = Readonly<Record<keyof typeof sizes, number>>

const sizesOf = async ({ sql }: Database): Promise<Sizes> => {
  const columns = Object.entries(sizes).map(([name, size]) => `${size} AS "${name}"`)
  const [found] = await sql<Sizes>(`SELECT ${columns.join(", ")}`)
  if (found === undefined) throw new Error("PostgreSQL does not tell the sizes")
  return found
}

const inFlight = 256

/** Does something for each user. Returns the bytes that each has added. */
const bytesOf = async (
  database: Database,
  users: ReadonlyArray<string>,
  change: (userId: string) => Promise<unknown>,
): Promise<(name: keyof Sizes) => number> => {
  const before = await sizesOf(database)
  const turns = users.values()
  const loop = async () => {
    for (const userId of turns) await change(userId)
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  const after = await sizesOf(database)
  return (name) => (after[name] - before[name]) / users.length
}

const row = (what: keyof typeof measured, figure: number): Row => ({
  measured: measured[what],
  unit: "bytes",
  figure,
})

export const storage: Section = {
  name: "storage",
  measure: onDatabase(async (database, { events, memberships, webhooks }, { pick }) => {
    const users = Array.from({ length: pick(50_000, 100) }, (_, index) => String(index))
    await memberships.createProject(projectId)
    const grants = await bytesOf(database, users, (userId) =>
      memberships.grant({ projectId, userId, endDate }),
    )
    const extensions = await bytesOf(database, users, (userId) =>
      memberships.extend({ projectId, userId, endDate }, { requestId: crypto.randomUUID(), keyId }),
    )
    await webhooks.create({ projectId, url: "https://receiver.invalid/" })
    const publications = await bytesOf(database, users, () =>
      events.publish({ projectId, type: "benchmark", data: data() }),
    )
    return {
      rows: [
        row("membership", grants("membership")),
        row("auditRow", extensions("auditRow")),
        row("event", extensions("event")),
        row("delivery", publications("delivery")),
        row("extension", extensions("log")),
        row("publication", publications("log")),
      ],
    }
  }),
}
