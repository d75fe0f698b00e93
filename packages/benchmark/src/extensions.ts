/** Single extensions beside pgbench, and bulk extensions of two sizes. */

import type { Tenure } from "@tenure/core/Tenure"
import { clients, type Database, fill } from "./database.ts"
import { isInstalled, pgbench } from "./pgbench.ts"
import { compare, type Contestant, loops, median, print } from "./rounds.ts"

const members = 100_000
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

const anyMember = (): number => 1 + Math.floor(Math.random() * members)

/** The statements as one transaction of pgbench, or in prepared loops where that is not installed. */
const yardstick = (
  { transaction, url }: Database,
  withPgbench: boolean,
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
        : loops(clients, seconds, () => transaction(statements, [anyMember()])),
  }
}

/** Compares single extensions with what they could cost at least. */
export const measureExtensions = async (
  database: Database,
  tenure: Tenure,
  rounds: { readonly rounds: number; readonly seconds: number },
): Promise<void> => {
  await fill(database, tenure, "p1", members)
  for (const [name, columns] of Object.entries(tables)) {
    await database.sql(`DROP TABLE IF EXISTS ${name}`)
    await database.sql(`CREATE TABLE ${name} ${columns}`)
  }
  await database.sql(
    `INSERT INTO yard_memberships SELECT n, now() FROM generate_series(1, ${members}) n`,
  )
  await database.sql("VACUUM ANALYZE yard_memberships")
  const extendOne = () =>
    tenure.memberships.extend({ projectId: "p1", userId: String(anyMember()), endDate })
  const withPgbench = await isInstalled()
  print(
    `Single extensions, ${clients} in flight, ${members.toLocaleString("en")} members`,
    await compare(
      [
        {
          name: "Tenure: membership, audit row, event",
          run: (seconds) => loops(clients, seconds, extendOne),
        },
        yardstick(database, withPgbench, "the same three writes", [update, audit, event]),
        yardstick(database, withPgbench, "one UPDATE", [update]),
      ],
      rounds,
    ),
  )
  for (const name of Object.keys(tables)) await database.sql(`DROP TABLE ${name}`)
}

/** Compares bulk extensions of a small project and of a large one. */
export const measureBulk = async (database: Database, tenure: Tenure): Promise<void> => {
  const millis = async (projectId: string): Promise<number> => {
    const start = performance.now()
    await tenure.memberships.extendAll({ projectId, endDate })
    return performance.now() - start
  }
  await fill(database, tenure, "small", 1000)
  await fill(database, tenure, "large", 1_000_000)
  const small: Array<number> = []
  const large: Array<number> = []
  for (let round = 0; round < 50; round++) {
    small.push(await millis("small"))
    large.push(await millis("large"))
  }
  const ratio = median(large) / median(small)
  console.log(
    `\nBulk extensions: 1,000 members ${median(small).toFixed(2)} ms, 1,000,000 members ${median(large).toFixed(2)} ms, ratio ${ratio.toFixed(2)}`,
  )
}
