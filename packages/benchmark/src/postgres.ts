/** Extensions on PostgreSQL beside pgbench; bulk extensions at several sizes; round trips. */

import { PgClient } from "@effect/sql-pg"
import * as Tenure from "@tenure/core/Tenure"
import { postgres } from "@tenure/postgres"
import { startPostgres } from "@tenure/testing/PostgresServer"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { isInstalled, pgbench } from "./pgbench.ts"
import { compare, type Contestant, loops, median, print } from "./rounds.ts"
import { countRoundTrips } from "./roundTrips.ts"

const members = 100_000
const clients = 64

const given = process.env["DATABASE_URL"]
const server = given === undefined ? await startPostgres() : undefined
const url = given ?? server?.url ?? ""

const sqlRuntime = ManagedRuntime.make(
  PgClient.layer({ url: Redacted.make(url), maxConnections: clients }),
)
const sql = (text: string, params: ReadonlyArray<unknown> = []) =>
  sqlRuntime.runPromise(Effect.flatMap(PgClient.PgClient, (client) => client.unsafe(text, params)))

await sql("DROP SCHEMA IF EXISTS benchmark CASCADE")
const tenure = await Tenure.make({ stores: postgres({ url, schema: "benchmark" }) })

/** A project with so many members, put there at once. */
const fill = async (projectId: string, size: number): Promise<void> => {
  await tenure.memberships.createProject(projectId)
  await sql(
    `INSERT INTO benchmark.memberships (project_id, user_id, end_date, seq)
     SELECT $1, n::text, now(), 0 FROM generate_series(1, $2::int) n`,
    [projectId, size],
  )
  await sql("UPDATE benchmark.projects SET members = $2::bigint WHERE id = $1", [
    projectId,
    BigInt(size),
  ])
}

await fill("p1", members)
for (const table of ["yard_memberships", "yard_audit", "yard_events"])
  await sql(`DROP TABLE IF EXISTS ${table}`)
await sql(
  "CREATE TABLE yard_memberships (id integer PRIMARY KEY, end_date timestamptz NOT NULL) WITH (fillfactor = 60)",
)
await sql(`INSERT INTO yard_memberships SELECT n, now() FROM generate_series(1, ${members}) n`)
await sql(
  "CREATE TABLE yard_audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id integer, from_date timestamptz, to_date timestamptz, at timestamptz, request_id text, key_id text)",
)
await sql("CREATE TABLE yard_events (id uuid PRIMARY KEY, type text, at timestamptz, body text)")
await sql("VACUUM ANALYZE")

const uuid = "b9019cc1-e966-4695-ad2c-6caf64a8431f"
const body =
  '{"type":"membership.extended","timestamp":"2026-11-21T10:40:09.112Z","data":{"project_id":"demo","user_id":"1001","new_end_date":"2030-03-17T17:46:40.000Z","request_id":"b9019cc1-e966-4695-ad2c-6caf64a8431f"}}'

const endDate = "2099-01-01T00:00:00.000Z"
const extendOne = () =>
  tenure.memberships.extend({
    projectId: "p1",
    userId: String(1 + Math.floor(Math.random() * members)),
    endDate,
  })

/** The same statements in prepared loops, for machines without pgbench. */
const loopOf = (statements: ReadonlyArray<string>) => (seconds: number) =>
  loops(clients, seconds, () => {
    const id = 1 + Math.floor(Math.random() * members)
    const work = Effect.flatMap(PgClient.PgClient, (client) => {
      const all = Effect.forEach(statements, (text) => client.unsafe(text, [id]))
      return statements.length > 1 ? client.withTransaction(all) : all
    })
    return sqlRuntime.runPromise(work)
  })

const withPgbench = await isInstalled()

const yardstick = (name: string, statements: ReadonlyArray<string>): Contestant => {
  const script = statements.map((text) => `${text.replaceAll("$1::integer", ":id")};`)
  const lines = script.length > 1 ? ["BEGIN;", ...script, "COMMIT;"] : script
  const file = [`\\set id random(1, ${members})`, ...lines, ""].join("\n")
  return withPgbench
    ? { name: `pgbench: ${name}`, run: (seconds) => pgbench(url, file, clients, seconds) }
    : { name: `prepared loops: ${name}`, run: loopOf(statements) }
}

const update = "UPDATE yard_memberships SET end_date = now() WHERE id = $1::integer"
const audit = `INSERT INTO yard_audit (user_id, from_date, to_date, at, request_id, key_id)
  VALUES ($1::integer, now(), now(), now(), '${uuid}', '${uuid}')`
const event = `INSERT INTO yard_events
  SELECT gen_random_uuid(), 'membership.extended', now(), '${body}' WHERE $1::integer > 0`

print(
  `Single extensions, ${clients} in flight, ${members.toLocaleString("en")} members`,
  await compare(
    [
      {
        name: "Tenure: membership, audit row, event",
        run: (seconds) => loops(clients, seconds, extendOne),
      },
      yardstick("the same three writes", [update, audit, event]),
      yardstick("one UPDATE", [update]),
    ],
    {
      rounds: Number(process.env["ROUNDS"] ?? 3),
      seconds: Number(process.env["ROUND_SECONDS"] ?? 4),
    },
  ),
)

const bulkMillis = async (projectId: string): Promise<number> => {
  const start = performance.now()
  await tenure.memberships.extendAll({ projectId, endDate })
  return performance.now() - start
}

await fill("small", 1000)
await fill("large", 1_000_000)
await sql("VACUUM ANALYZE benchmark.memberships")
const bulks: Record<string, Array<number>> = { small: [], large: [] }
for (let round = 0; round < 50; round++) {
  for (const projectId of ["small", "large"]) bulks[projectId]?.push(await bulkMillis(projectId))
}
const [small, large] = [median(bulks["small"] ?? []), median(bulks["large"] ?? [])]
console.log(
  `\nBulk extension: 1,000 members ${small.toFixed(2)} ms, 1,000,000 members ${large.toFixed(2)} ms, ratio ${(large / small).toFixed(2)}`,
)

console.log(`\nRound trips of one extension over HTTP: ${await countRoundTrips(url, "benchmark")}`)

await tenure.close()
await sql("DROP SCHEMA benchmark CASCADE")
await sql("DROP TABLE yard_memberships, yard_audit, yard_events")
await sqlRuntime.dispose()
await server?.stop()
