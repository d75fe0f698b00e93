/** The queries of `docs/transactions.md` run, with the real libraries. */

import { readFileSync } from "node:fs"
import { drizzle } from "drizzle-orm/node-postgres"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import { type Tenure, createTenure } from "tenure"
import { postgres } from "tenure/postgres"
import { externalTables } from "tenure/prisma"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { connectPrisma } from "../../packages/postgres/test/within/prisma-client.ts"
import { examplesIn, root, writeExamples } from "./examples.ts"
import { freshDatabase } from "./programs.ts"

const folder = await writeExamples("joins", examplesIn("docs/transactions.md"))
const page = readFileSync(`${root}/docs/transactions.md`, "utf8")
const endDate = new Date("2099-01-01")

let url: string
let tenure: Tenure
let database: pg.Pool

beforeAll(async () => {
  url = await freshDatabase(inject("databaseUrl"), "joins_page")
  tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
  database = new pg.Pool({ connectionString: url })
  await database.query(`
    CREATE TABLE public.users (id text PRIMARY KEY, name text NOT NULL);
    INSERT INTO public.users VALUES ('1001', 'Ada'), ('1002', 'Grace'), ('1003', 'Edsger')`)
  await tenure.memberships.createProject("p1")
  for (const userId of ["1001", "1002"]) {
    await tenure.memberships.grant({ projectId: "p1", userId, endDate })
  }
})

afterAll(async () => {
  await tenure.close()
  await database.end()
})

/** The blocks of code in a language. */
const blocks = (language: string): ReadonlyArray<string> =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, code = ""]) => code,
  )

const example = (number: number) => import(`${folder}/docs-transactions.md-${number}.ts`)

it("the statements of the page find a user, and a page of a project", async () => {
  const [user = "", members = ""] = blocks("sql")
  expect((await database.query(user)).rows).toEqual([
    { name: "Ada", end_date: endDate, is_active: true },
  ])
  expect((await database.query(members)).rows).toEqual([
    { name: "Grace", user_id: "1002", end_date: endDate },
  ])
})

it("the page of PostgreSQL has the columns of the view", async () => {
  const { rows } = await database.query("SELECT * FROM tenure.memberships_current LIMIT 1")
  const text = readFileSync(`${root}/docs/storage.md`, "utf8")
  const [, section = ""] = text.split("\n### Joins\n")
  const columns = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)`/gm)]
  expect(columns.map(([, name]) => name)).toEqual(Object.keys(rows[0]))
})

describe("a user is found with the membership", () => {
  it("by Drizzle", async () => {
    const { findUser } = await example(9)
    const db = drizzle(database)
    expect(await findUser(db, "p1", "1001")).toEqual([{ name: "Ada", endDate }])
    expect(await findUser(db, "p1", "1003")).toEqual([{ name: "Edsger", endDate: null }])
  })

  it("by Kysely", async () => {
    const { findUser } = await example(10)
    const db = new Kysely<object>({ dialect: new PostgresDialect({ pool: database }) })
    expect(await findUser(db, "p1", "1001")).toEqual([{ name: "Ada", endDate }])
    expect(await findUser(db, "p1", "1003")).toEqual([{ name: "Edsger", endDate: null }])
  })

  it("by Prisma, with the file of the package and the relation of the page", async () => {
    const { findUser } = await example(12)
    const [schema = ""] = blocks("prisma")
    const relation = /`(user User @relation[^`]*)`/.exec(page)?.[1]
    const view = readFileSync(`${root}/packages/tenure/tenure.prisma`, "utf8")
    const prisma = connectPrisma(url, {
      "schema.prisma": schema,
      "tenure.prisma": view.replace("\n\n", `\n  ${relation}\n\n`),
    })
    try {
      expect(await findUser(prisma, "p1", "1001")).toEqual([
        { id: "1001", name: "Ada", memberships: [expect.objectContaining({ endDate })] },
      ])
      expect(await findUser(prisma, "p1", "1003")).toEqual([
        { id: "1003", name: "Edsger", memberships: [] },
      ])
    } finally {
      await prisma.$disconnect()
    }
  })
})

it("Prisma Migrate is told of every table that is not a partition", async () => {
  const { default: config } = await example(11)
  expect(config.tables.external).toEqual(externalTables("tenure"))
  const { rows } = await database.query(
    `SELECT 'tenure.' || relname AS name FROM pg_class
     WHERE relnamespace = 'tenure'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`,
  )
  expect(new Set(config.tables.external)).toEqual(new Set(rows.map(({ name }) => name)))
})
