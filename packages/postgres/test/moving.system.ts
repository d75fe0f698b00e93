/** Moving from one server to another. Here, only the databases differ. */

import { createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { postgres } from "../src/index.ts"
import { execute, urlOf } from "./harness.ts"
import { queryAt, runMigrate } from "./servers.ts"

const [source, target] = ["tenure_move_source", "tenure_move_target"]
const projectId = "p1"

const run = (...statements: ReadonlyArray<string>) => Effect.runPromise(execute(...statements))
const drop = (name: string) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`

const move = (from: string, ...options: ReadonlyArray<string>) =>
  runMigrate(["--from", from, "--to", urlOf(target)], {}, options)

const open = (database: string) =>
  createTenure({ stores: postgres({ url: urlOf(database) }), webhooks: { dispatch: false } })

let cursor: string
let events: ReadonlyArray<string>

beforeAll(async () => {
  await run(drop(source), `CREATE DATABASE ${source}`)
  const tenure = await open(source)
  await tenure.memberships.createProject(projectId)
  for (const userId of ["1001", "1002", "1003"]) {
    await tenure.memberships.grant({ projectId, userId, endDate: 4_000_000_000_000 })
    await tenure.memberships.extend({ projectId, userId, endDate: 4_100_000_000_000 })
  }
  const page = await tenure.events.read({ projectId, after: "start" })
  cursor = page.cursor
  events = page.events.map(({ id }) => id)
  await tenure.close()
})
beforeEach(() => run(drop(target), `CREATE DATABASE ${target}`))
afterAll(() => run(drop(source), drop(target)))

describe("tenure-migrate --from --to", () => {
  it.each([
    ["is another", "NEW.end_date := NEW.end_date + interval '1 millisecond'; RETURN NEW;"],
    ["is missing", "RETURN NULL;"],
  ])("leaves nothing at the target if a row there %s", async (_, body) => {
    await runMigrate([], { DATABASE_URL: urlOf(target) })
    await queryAt(
      urlOf(target),
      `CREATE FUNCTION break_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`,
      `CREATE TRIGGER break_row BEFORE INSERT ON tenure.memberships
       FOR EACH ROW WHEN (NEW.user_id = '1002') EXECUTE FUNCTION break_row()`,
    )
    await expect(move(urlOf(source))).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        "The table memberships of the target is not as the one of the source.",
      ),
    })
    for (const table of ["projects", "memberships", "audit", "events"])
      expect(await queryAt(urlOf(target), `SELECT FROM tenure.${table}`)).toEqual([])
  })

  it("keeps the events in their order, and cursors", async () => {
    await move(urlOf(source))
    const tenure = await open(target)
    const idsAfter = async (after: string) => {
      const page = await tenure.events.read({ projectId, after })
      return { ids: page.events.map(({ id }) => id), end: page.cursor }
    }
    const { end, ids } = await idsAfter("start")
    expect(ids).toEqual(events)
    expect(events).toHaveLength(6)
    const id = await tenure.events.publish({ projectId, type: "later", data: {} })
    for (const after of [cursor, end]) expect(await idsAfter(after)).toMatchObject({ ids: [id] })
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
    const moving = move("file:./data", "--import", resolving(specifier, parentURL))
    await expect(moving).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(new RegExp(`^${reason}`)),
    })
  })
})
