/** Moving from one server to another, of which only the databases differ. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { migrate, postgres } from "../src/index.ts"
import { execute, urlOf } from "./harness.ts"

const program = fileURLToPath(new URL("../src/bin/migrate.ts", import.meta.url))

const [source, target] = ["tenure_move_source", "tenure_move_target"]

const dropping = [source, target].map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)

const move = (from: string, ...options: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [
    "-C",
    "@tenure/source",
    ...options,
    program,
    "--from",
    from,
    "--to",
    urlOf(target),
  ])

const atTarget = <A, E>(work: Effect.Effect<A, E, PgClient.PgClient>): Promise<A> =>
  work.pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(urlOf(target)), maxConnections: 1 })),
    Effect.runPromise,
  )

const query = (statement: string) =>
  atTarget(PgClient.PgClient.use((sql) => sql.unsafe<object>(statement)))

const open = (database: string) =>
  createTenure({ stores: postgres({ url: urlOf(database) }), webhooks: { dispatch: false } })

let cursor: string
let events: ReadonlyArray<string>

beforeAll(async () => {
  await Effect.runPromise(execute(...dropping, `CREATE DATABASE ${source}`))
  const tenure = await open(source)
  await tenure.memberships.createProject("p1")
  for (const userId of ["1001", "1002", "1003"]) {
    await tenure.memberships.grant({ projectId: "p1", userId, endDate: 4_000_000_000_000 })
    await tenure.memberships.extend({ projectId: "p1", userId, endDate: 4_100_000_000_000 })
  }
  const page = await tenure.events.read({ projectId: "p1", after: "start" })
  cursor = page.cursor
  events = page.events.map(({ id }) => id)
  await tenure.close()
})
beforeEach(() =>
  Effect.runPromise(
    execute(`DROP DATABASE IF EXISTS ${target} WITH (FORCE)`, `CREATE DATABASE ${target}`),
  ),
)
afterAll(() => Effect.runPromise(execute(...dropping)))

describe("tenure-migrate --from --to", () => {
  it.each([
    ["is another", "NEW.end_date := NEW.end_date + interval '1 millisecond'; RETURN NEW;"],
    ["is missing", "RETURN NULL;"],
  ])("leaves nothing at the target if a row there %s", async (_, body) => {
    await atTarget(migrate())
    await query(`
      CREATE FUNCTION break_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$
    `)
    await query(`
      CREATE TRIGGER break_row BEFORE INSERT ON tenure.memberships
      FOR EACH ROW WHEN (NEW.user_id = '1002') EXECUTE FUNCTION break_row()
    `)
    await expect(move(urlOf(source))).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        "The table memberships of the target is not as the one of the source.",
      ),
    })
    for (const table of ["projects", "memberships", "audit", "events"])
      expect(await query(`SELECT FROM tenure.${table}`)).toEqual([])
  })

  it("keeps the events in their order, and cursors", async () => {
    await move(urlOf(source))
    const tenure = await open(target)
    const page = await tenure.events.read({ projectId: "p1", after: "start" })
    expect(page.events.map(({ id }) => id)).toEqual(events)
    expect(events).toHaveLength(6)
    const id = await tenure.events.publish({ projectId: "p1", type: "later", data: {} })
    for (const after of [cursor, page.cursor]) {
      const next = await tenure.events.read({ projectId: "p1", after })
      expect(next.events.map((event) => event.id)).toEqual([id])
    }
    await tenure.close()
  })

  /** Makes the program resolve the package for folders as another module, or from elsewhere. */
  const resolving = (specifier: string, parentURL: string): string =>
    `data:text/javascript,${encodeURIComponent(`
      import { registerHooks } from "node:module"
      registerHooks({
        resolve: (wanted, context, next) =>
          wanted === "@tenure/embedded"
            ? next("${specifier}", { ...context, parentURL: "${parentURL}" })
            : next(wanted, context),
      })
    `)}`

  const here = import.meta.url

  it.each([
    ["is absent", "@tenure/embedded", "file:///", "file:./data needs tenure/embedded"],
    ["is broken", "data:text/javascript,throw Error(`broken`)", here, "broken"],
    ["lacks another", "absent", here, "Cannot find package 'absent'"],
  ])("says why if the package for folders %s", async (_, specifier, parentURL, reason) => {
    await expect(
      move("file:./data", "--import", resolving(specifier, parentURL)),
    ).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(new RegExp(`^${reason}`)),
    })
  })
})
