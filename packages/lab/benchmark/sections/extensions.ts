/** Single extensions beside pgbench, and bulk extensions of two sizes. */

import type { Tenure } from "@tenure/core"
import { type Database, clients, databaseCpu, fill, onDatabase, schema } from "../database.ts"
import { type Findings, type Section, type Settings, rowsOf } from "../measurement.ts"
import { isInstalled, pgbench } from "../pgbench.ts"
import { type Contestant, compare, loops, median } from "../rounds.ts"

const endDate = "2099-01-01T00:00:00.000Z"

const uuid = "b9019cc1-e966-4695-ad2c-6caf64a8431f"
const body = `{"type":"membership.extended","timestamp":"2026-11-21T10:40:09.112Z","data":{"project_id":"demo","user_id":"1001","new_end_date":"2030-03-17T17:46:40.000Z","request_id":"${uuid}"}}`

// Tables as a host would make them that does the same.
const tables = {
  yard_memberships:
    "(id integer PRIMARY KEY, end_date timestamptz NOT NULL) WITH (fillfactor = 60)",
  yard_audit: `(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id integer,
    from_date timestamptz, to_date timestamptz, at timestamptz, request_id text, key_id text)`,
  yard_events: "(id uuid PRIMARY KEY, type text, at timestamptz, body text)",
}

const update = "UPDATE yard_memberships SET end_date = now() WHERE id = $1::integer"
const audit = `INSERT INTO yard_audit (user_id, from_date, to_date, at, request_id, key_id)
  VALUES ($1::integer, now(), now(), now(), '${uuid}', '${uuid}')`
const event = `INSERT INTO yard_events
  SELECT gen_random_uuid(), 'membership.extended', now(), '${body}' WHERE $1::integer > 0`

const anyOf = (members: number): number => 1 + Math.floor(Math.random() * members)

/** The statements as one transaction of pgbench, or in prepared loops where that is not installed. */
const yardstick = (
  { transaction, url }: Database,
  { members, withPgbench }: { readonly members: number; readonly withPgbench: boolean },
  name: string,
  statements: ReadonlyArray<string>,
): Contestant => {
  const script = statements.map((text) => `${text.replaceAll("$1::integer", ":id")};`)
  const lines = script.length > 1 ? ["BEGIN;", ...script, "COMMIT;"] : script
  const file = [`\\set id random(1, ${members})`, ...lines, ""].join("\n")
  return {
    name: `${withPgbench ? "pgbench" : "prepared loops"}: ${name}`,
    run: (seconds) =>
      withPgbench
        ? pgbench(url, file, clients, seconds)
        : loops(clients, seconds, () => transaction(statements, [anyOf(members)])),
  }
}

const createTables = async ({ sql }: Database, members: number): Promise<void> => {
  for (const [name, columns] of Object.entries(tables)) {
    await sql(`DROP TABLE IF EXISTS ${name}`)
    await sql(`CREATE TABLE ${name} ${columns}`)
  }
  await sql(`INSERT INTO yard_memberships SELECT n, now() FROM generate_series(1, ${members}) n`)
  await sql("VACUUM ANALYZE yard_memberships")
}

/** The name of the row with the processor time of an extension. */
export const extensionCpu = `processor time in PostgreSQL of an extension, ${clients} at a time`

/** Compares single extensions with the least that they could cost. */
const measureSingle = async (
  database: Database,
  tenure: Tenure,
  settings: Settings,
): Promise<Findings> => {
  const members = settings.pick(100_000, 1000)
  await fill(database, tenure, "p1", members)
  await createTables(database, members)
  const extendOne = (idempotencyKey?: string) =>
    tenure.memberships.extend({
      projectId: "p1",
      userId: String(anyOf(members)),
      endDate,
      idempotencyKey,
    })
  const extending: Contestant = {
    name: "Tenure",
    run: (seconds) => loops(clients, seconds, () => extendOne()),
  }
  const yard = { members, withPgbench: await isInstalled() }
  const scores = await compare(
    {
      tenure: extending,
      peers: [
        yardstick(database, yard, "the same three writes", [update, audit, event]),
        yardstick(database, yard, "one UPDATE", [update]),
      ],
    },
    settings,
  )
  for (const name of Object.keys(tables)) await database.sql(`DROP TABLE ${name}`)
  const keyed = await compare(
    {
      tenure: {
        name: "with a key",
        run: (seconds) => loops(clients, seconds, () => extendOne(crypto.randomUUID())),
      },
      peers: [{ ...extending, name: "without a key" }],
    },
    settings,
  )
  let extensions = 0
  const before = await databaseCpu(database.sql)
  await loops(clients, settings.seconds, () => {
    extensions++
    return extendOne()
  })
  const cpu = (await databaseCpu(database.sql)) - before
  return {
    rows: [
      ...rowsOf("extension: membership, audit row, event", "rate", scores),
      {
        measured: extensionCpu,
        unit: "µs CPU",
        figure: cpu / extensions,
      },
      ...rowsOf("extension with an idempotency key", "rate", keyed, {
        "without a key": { of: "ratio", atLeast: 0.6 },
      }),
    ],
  }
}

/** Compares bulk extensions of a small project and of a large one. */
const measureBulk = async (
  database: Database,
  tenure: Tenure,
  { pick }: Settings,
): Promise<Findings> => {
  const millis = async (projectId: string): Promise<number> => {
    const start = performance.now()
    await tenure.memberships.extendAll({ projectId, endDate })
    return performance.now() - start
  }
  const [few, many] = [pick(1000, 10), pick(1_000_000, 1000)]
  await fill(database, tenure, "small", few)
  await fill(database, tenure, "large", many)
  const small: Array<number> = []
  const large: Array<number> = []
  for (let round = 0; round < pick(50, 3); round++) {
    small.push(await millis("small"))
    large.push(await millis("large"))
  }
  return {
    rows: [
      {
        measured: `bulk extension of ${many.toLocaleString("en")} members`,
        unit: "ms",
        figure: median(large),
        yardstick: { name: `of ${few.toLocaleString("en")}`, figure: median(small) },
        target: { of: "ratio", atMost: 1.5 },
      },
    ],
  }
}

// No more are kept apart.
const bulkExtensionsAtMost = 64

/** Compares what members cost whose end dates follow from many bulk extensions with those of none. */
const measureLog = async (
  database: Database,
  tenure: Tenure,
  settings: Settings,
): Promise<Findings> => {
  const { memberships } = tenure
  const members = settings.pick(10_000, 100)
  const [many, none] = ["many", "none"]
  for (const projectId of [many, none]) {
    await fill(database, tenure, projectId, members)
    // Their ends lie ahead, apart from each other, and the list by ends has been built.
    await database.sql(
      `UPDATE ${schema}.memberships m
       SET end_date = timestamptz '2090-01-01' + m.user_id::integer * interval '1 minute'
       FROM ${schema}.projects p WHERE p.number = m.project_number AND p.id = $1`,
      [projectId],
    )
    const page = { projectId, before: "2100-01-01T00:00:00.000Z", limit: 100 }
    for (let after; ;) {
      const { next } = await memberships.listEnding({ ...page, after })
      if (next === undefined) break
      after = next
    }
  }
  for (let count = 0; count < bulkExtensionsAtMost; count++) {
    await memberships.extendAll({ projectId: many, by: "PT1S", idempotencyKey: String(count) })
  }
  await database.sql(`VACUUM ANALYZE ${schema}.memberships`)
  const reads = {
    "a membership": (projectId: string) =>
      memberships.find({ projectId, userId: String(anyOf(members)) }),
    "100 memberships by user": (projectId: string) => memberships.list({ projectId, limit: 100 }),
    "100 memberships by end": (projectId: string) =>
      memberships.listEnding({ projectId, before: "2100-01-01T00:00:00.000Z", limit: 100 }),
    "an extension": (projectId: string) =>
      memberships.extend({ projectId, userId: String(anyOf(members)), endDate }),
  }
  const rows = []
  for (const [name, read] of Object.entries(reads)) {
    const on = (projectId: string): Contestant => ({
      name: `under ${projectId}`,
      run: (seconds) => loops(clients, seconds, () => read(projectId)),
    })
    const scores = await compare({ tenure: on(many), peers: [on(none)] }, settings)
    const atLeast = name === "100 memberships by end" ? 1 / 1.2 : 1 / 1.1
    rows.push(
      ...rowsOf(`${name}, under ${bulkExtensionsAtMost} bulk extensions`, "rate", scores, {
        "under none": { of: "ratio", atLeast },
      }),
    )
  }
  return { rows }
}

/** Throughput of single extensions. */
export const extensions: Section = { name: "extensions", measure: onDatabase(measureSingle) }

/** The time of bulk extensions. */
export const bulk: Section = { name: "bulk", measure: onDatabase(measureBulk) }

/** What bulk extensions cost those who read their members. */
export const bulkLog: Section = { name: "bulk-log", measure: onDatabase(measureLog) }
