/** Single extensions beside pgbench and with idempotency keys, round trips, and members under bulk extensions. */

import { execFile } from "node:child_process"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Tenure } from "@tenure/core"
import { requestOf } from "../../simulation/http.ts"
import {
  type Database,
  anyOf,
  clients,
  endDate,
  extending,
  fill,
  meterDatabase,
  onDatabase,
  schema,
  startTenure,
} from "../database.ts"
import { type Findings, type Row, type Section, type Settings, rowsOf } from "../measurement.ts"
import { type Contestant, compare, loops } from "../rounds.ts"
import { countStatements } from "../statements.ts"

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

const run = promisify(execFile)

const hasPgbench = (): Promise<boolean> =>
  run("pgbench", ["--version"]).then(
    () => true,
    () => false,
  )

/** The statements as one transaction in pgbench, or in prepared loops where that is not installed. */
const yardstick = async (
  { transaction, url }: Database,
  members: number,
  withPgbench: boolean,
  name: string,
  statements: ReadonlyArray<string>,
): Promise<Contestant> => {
  if (!withPgbench) {
    const perform = () => transaction(statements, [Number(anyOf(members))])
    return { name: `prepared loops: ${name}`, run: (seconds) => loops(clients, seconds, perform) }
  }
  const script = statements.map((text) => `${text.replaceAll("$1::integer", ":id")};`)
  const lines = script.length > 1 ? ["BEGIN;", ...script, "COMMIT;"] : script
  const file = join(await mkdtemp(join(tmpdir(), "pgbench-")), "script.sql")
  await writeFile(file, [`\\set id random(1, ${members})`, ...lines, ""].join("\n"))
  return {
    name: `pgbench: ${name}`,
    run: async (seconds) => {
      const time = Math.max(1, Math.round(seconds))
      const options = `-n -M prepared -j 2 -c ${clients} -T ${time} -f ${file} ${url}`
      const { stdout } = await run("pgbench", options.split(" "))
      return { rate: Number(/tps = ([0-9.]+)/.exec(stdout)?.[1]), cpu: NaN }
    },
  }
}

/** The name of the row with an extension's processor time. */
export const extensionCpu = `processor time in PostgreSQL of an extension, ${clients} at a time`

/** Compares single extensions with the least that they could cost. */
const measureSingle = async (
  database: Database,
  tenure: Tenure,
  settings: Settings,
): Promise<Findings> => {
  const { sql } = database
  const members = settings.pick(100_000, 1000)
  await fill(database, tenure, "p1", members)
  for (const [name, columns] of Object.entries(tables)) {
    await sql(`DROP TABLE IF EXISTS ${name}`)
    await sql(`CREATE TABLE ${name} ${columns}`)
  }
  await sql(`INSERT INTO yard_memberships SELECT n, now() FROM generate_series(1, ${members}) n`)
  await sql("VACUUM ANALYZE yard_memberships")
  const withPgbench = await hasPgbench()
  const yard = (name: string, statements: ReadonlyArray<string>) =>
    yardstick(database, members, withPgbench, name, statements)
  const peers = [
    await yard("the same three writes", [update, audit, event]),
    await yard("one UPDATE", [update]),
  ]
  const contestant = extending("Tenure", tenure, "p1", members)
  const scores = await compare({ tenure: contestant, peers }, settings)
  for (const name of Object.keys(tables)) await sql(`DROP TABLE ${name}`)
  const withKey = extending("with a key", tenure, "p1", members, () => crypto.randomUUID())
  const without = { ...contestant, name: "without a key" }
  const keyed = await compare({ tenure: withKey, peers: [without] }, settings)
  let extensions = 0
  const inDatabase = await meterDatabase(sql)
  await loops(clients, settings.seconds, () => {
    extensions++
    return tenure.memberships.extend({ projectId: "p1", userId: anyOf(members), endDate })
  })
  const cpu = await inDatabase()
  return {
    rows: [
      ...rowsOf("extension: membership, audit row, event", "rate", scores),
      { measured: extensionCpu, unit: "µs CPU", figure: cpu / extensions },
      ...rowsOf("extension with an idempotency key", "rate", keyed, {
        "without a key": { of: "ratio", atLeast: 0.6 },
      }),
    ],
  }
}

export const extensions: Section = { name: "extensions", measure: onDatabase(measureSingle) }

// No more are kept apart.
const bulkExtensionsAtMost = 64

/** Compares what members cost whose end dates follow from many bulk extensions, or from none. */
const measureLog = async (
  database: Database,
  tenure: Tenure,
  settings: Settings,
): Promise<Findings> => {
  const { memberships } = tenure
  const members = settings.pick(10_000, 100)
  const [many, none] = ["many", "none"]
  const ending = { before: "2100-01-01T00:00:00.000Z", limit: 100 }
  for (const projectId of [many, none]) {
    await fill(database, tenure, projectId, members)
    // Their ends lie ahead, apart from each other, and the ending list has been built.
    await database.sql(
      `UPDATE ${schema}.memberships m
       SET end_date = timestamptz '2090-01-01' + m.user_id::integer * interval '1 minute'
       FROM ${schema}.projects p WHERE p.number = m.project_number AND p.id = $1`,
      [projectId],
    )
    let after: string | undefined
    do after = (await memberships.listEnding({ projectId, ...ending, after })).next
    while (after !== undefined)
  }
  for (let count = 0; count < bulkExtensionsAtMost; count++) {
    await memberships.extendAll({ projectId: many, by: "PT1S", idempotencyKey: String(count) })
  }
  await database.sql(`VACUUM ANALYZE ${schema}.memberships`)
  const operations = {
    "a membership": (projectId: string) => memberships.find({ projectId, userId: anyOf(members) }),
    "100 memberships by user": (projectId: string) => memberships.list({ projectId, limit: 100 }),
    "100 memberships by end": (projectId: string) =>
      memberships.listEnding({ projectId, ...ending }),
    "an extension": (projectId: string) =>
      memberships.extend({ projectId, userId: anyOf(members), endDate }),
  }
  const rows: Array<Row> = []
  for (const [name, perform] of Object.entries(operations)) {
    const on = (projectId: string): Contestant => ({
      name: `under ${projectId}`,
      run: (seconds) => loops(clients, seconds, () => perform(projectId)),
    })
    const scores = await compare({ tenure: on(many), peers: [on(none)] }, settings)
    const atLeast = name === "100 memberships by end" ? 1 / 1.2 : 1 / 1.1
    const target = { of: "ratio", atLeast } as const
    const measured = `${name}, under ${bulkExtensionsAtMost} bulk extensions`
    rows.push(...rowsOf(measured, "rate", scores, { "under none": target }))
  }
  return { rows }
}

/** What bulk extensions cost those who read their members. */
export const bulkLog: Section = { name: "bulk-log", measure: onDatabase(measureLog) }

// Claims and sweeps take place meanwhile, but not beside every request.
const requests = 20

/** Counts an extension's statements over HTTP, in the steady state. */
const countRoundTrips = async (
  database: string,
  headersOf: () => Readonly<Record<string, string>>,
): Promise<number> => {
  const { close, count, url } = await countStatements(database)
  const { apiKeys, handle, memberships, ...tenure } = await startTenure(url)
  await memberships.createProject("trips")
  await memberships.grant({ projectId: "trips", userId: "1", endDate })
  const { token } = await apiKeys.issue({ projects: ["trips"] })
  const extension = JSON.stringify({ extend: endDate })
  let least = Infinity
  for (let sent = 0; sent < requests; sent++) {
    const before = count()
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...headersOf(),
    }
    const { status } = await handle(
      requestOf("PATCH", "/v2/projects/trips/memberships/1/extend", headers, extension),
    )
    if (status !== 200) throw new Error(`an extension was answered with ${status}`)
    least = Math.min(least, count() - before)
  }
  await tenure.close()
  close()
  return least
}

export const roundTrips: Section = {
  name: "round-trips",
  measure: async ({ database }) => {
    const { url } = await database()
    const row = async (measured: string, headersOf: () => Readonly<Record<string, string>>) => ({
      measured,
      unit: "",
      figure: await countRoundTrips(url, headersOf),
      target: { of: "figure", atLeast: 1, atMost: 2, always: true } as const,
    })
    return {
      rows: [
        await row("round trips of one extension over HTTP", () => ({})),
        await row("round trips of one with an idempotency key", () => ({
          "idempotency-key": crypto.randomUUID(),
        })),
      ],
    }
  },
}
