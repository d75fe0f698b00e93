/** Host queries that join a table with `memberships_current`, through the libraries. */

import { readFile } from "node:fs/promises"
import { type Tenure, createTenure } from "@tenure/core"
import { and, eq } from "drizzle-orm"
import { drizzle } from "drizzle-orm/node-postgres"
import { pgSchema, text } from "drizzle-orm/pg-core"
import * as Effect from "effect/Effect"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { membershipsCurrentIn } from "../../src/drizzle.ts"
import { postgres } from "../../src/index.ts"
import type { Database } from "../../src/kysely.ts"
import { execute } from "../harness.ts"
import { connectPrisma } from "../within/prisma-client.ts"

const schema = "joins"
const projectId = "p1"
const members = 100_000

let tenure: Tenure
let database: pg.Pool

beforeAll(async () => {
  await Effect.runPromise(execute(`DROP SCHEMA IF EXISTS ${schema}, ${schema}_host CASCADE`))
  const stores = postgres({ url: inject("databaseUrl"), schema })
  tenure = await createTenure({ stores, webhooks: { dispatch: false } })
  database = new pg.Pool({ connectionString: inject("databaseUrl") })
  for (const id of ["p0", projectId, "p2"]) await tenure.memberships.createProject(id)
  await database.query(`
    CREATE SCHEMA ${schema}_host;
    CREATE TABLE ${schema}_host.users (id text PRIMARY KEY, name text NOT NULL);
    CREATE TABLE ${schema}_host.accounts (id bigint PRIMARY KEY, name text NOT NULL);
    INSERT INTO ${schema}_host.users SELECT n::text, 'name ' || n FROM generate_series(1, ${members}) n;
    INSERT INTO ${schema}_host.accounts SELECT n, 'name ' || n FROM generate_series(1, ${members}) n;
    -- Every second one has ended, until the bulk extension.
    INSERT INTO ${schema}.memberships (project_number, user_id, end_date, seq)
    SELECT p.number, n::text, now() + (n % 2 - 0.5) * interval '1 day', 0
    FROM ${schema}.projects p, generate_series(1, ${members}) n WHERE p.id IN ('p0', '${projectId}');
    UPDATE ${schema}.projects SET membership_count = ${members} WHERE id IN ('p0', '${projectId}');
  `)
  await tenure.memberships.extendAll({ projectId, endDate: "2099-01-01T00:00:00.000Z" })
  await database.query(`
    ANALYZE ${schema}.memberships, ${schema}.projects, ${schema}.bulk_extensions,
            ${schema}_host.users, ${schema}_host.accounts
  `)
})

afterAll(async () => {
  await tenure.close()
  await database.end()
})

/** A statement with its parameters. */
interface Query {
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
}

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly Plans?: ReadonlyArray<Plan>
}

/** How many rows each node has read from large tables. */
const rowsReadBy = (node: Plan): ReadonlyArray<number> => [
  /^(?:memberships|users|accounts)$/.test(node["Relation Name"] ?? "")
    ? node["Actual Loops"] * (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0))
    : 0,
  ...(node.Plans ?? []).flatMap(rowsReadBy),
]

/** Expects that a query reads about as many rows from large tables as it returns. */
const expectLittle = async ({ params, sql: statement }: Query, rows: number) => {
  const explained = await database.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`, [...params])
  const plan: Plan = explained.rows[0]["QUERY PLAN"][0].Plan
  expect(Math.max(...rowsReadBy(plan)), JSON.stringify(plan)).toBeLessThan(2 * rows + 10)
}

const run = async (query: Query) => {
  const { rows } = await database.query(query.sql, [...query.params])
  await expectLittle(query, rows.length)
  return rows
}

const view = `${schema}.memberships_current`
const farEnd = new Date("2099-01-01")

describe("a query of a host", () => {
  it.each([
    ["users u", "u.id"],
    ["accounts u", "u.id::text"],
  ])("finds one user by the index: %s", async (table, id) => {
    const rows = await run({
      sql: `SELECT u.name, m.end_date, m.is_active FROM ${schema}_host.${table}
            LEFT JOIN ${view} m ON m.project_id = $1 AND m.user_id = ${id} WHERE u.id = $2`,
      params: [projectId, "500"],
    })
    expect(rows).toEqual([{ name: "name 500", end_date: farEnd, is_active: true }])
  })

  it("finds a page of users by the index", async () => {
    const rows = await run({
      sql: `SELECT u.name, m.is_active FROM ${schema}_host.users u
            LEFT JOIN ${view} m ON m.project_id = $1 AND m.user_id = u.id ORDER BY u.id LIMIT 100`,
      params: ["p0"],
    })
    expect(rows).toHaveLength(100)
    expect(rows).toContainEqual({ name: "name 1000", is_active: false })
  })

  it("finds the users of some projects by the index", async () => {
    const rows = await run({
      sql: `SELECT m.project_id, m.is_active FROM ${view} m
            WHERE m.project_id = ANY ($1) AND m.user_id = $2 ORDER BY m.project_id`,
      params: [["p0", projectId, "p2", "p3"], "500"],
    })
    expect(rows).toEqual([
      { project_id: "p0", is_active: false },
      { project_id: "p1", is_active: true },
    ])
  })

  it.each([
    ["users u", `u.id = m.user_id COLLATE "default"`],
    ["accounts u", "u.id = m.user_id::bigint"],
  ])("finds a page of a project by the index: %s", async (table, condition) => {
    const page = (after: string) => ({
      sql: `SELECT u.name, m.user_id FROM ${view} m JOIN ${schema}_host.${table} ON ${condition}
            WHERE m.project_number = ${schema}.project_number($1) AND m.is_active AND m.user_id > $2
            ORDER BY m.user_id LIMIT 100`,
      params: [projectId, after],
    })
    const first = await run(page(""))
    expect(first).toHaveLength(100)
    expect(first[0]).toEqual({ name: "name 1", user_id: "1" })
    const [next] = await run(page(first.at(-1).user_id))
    expect(next).toEqual({ name: "name 10087", user_id: "10087" })
  })
})

it("a role that may read only the view joins it, and finds the number of a project", async () => {
  await database.query(`
    DROP ROLE IF EXISTS joins_reader; CREATE ROLE joins_reader;
    GRANT USAGE ON SCHEMA ${schema} TO joins_reader; GRANT SELECT ON ${view} TO joins_reader`)
  const client = await database.connect()
  try {
    await client.query("BEGIN; SET LOCAL ROLE joins_reader")
    const { rows } = await client.query(
      `SELECT user_id, end_date, is_active FROM ${view}
       WHERE project_number = ${schema}.project_number($1) ORDER BY user_id LIMIT 1`,
      [projectId],
    )
    expect(rows).toEqual([{ user_id: "1", end_date: farEnd, is_active: true }])
    await expect(client.query(`SELECT FROM ${schema}.memberships`)).rejects.toThrow("denied")
  } finally {
    await client.query("ROLLBACK")
    client.release()
    await database.query("DROP OWNED BY joins_reader; DROP ROLE joins_reader")
  }
})

it("the view has memberships in grace as active, and its length", async () => {
  const { memberships } = tenure
  const member = { projectId: "p3", userId: "1" }
  await memberships.createProject("p3")
  const endDate = new Date(Date.now() - 3_600_000)
  await memberships.grant({ ...member, endDate })
  const found = async () => {
    const { rows } = await database.query(
      `SELECT end_date, is_active, grace_seconds FROM ${view} WHERE project_id = 'p3'`,
    )
    return rows
  }
  expect(await found()).toEqual([{ end_date: endDate, is_active: false, grace_seconds: 0 }])
  await memberships.updateProject({ projectId: "p3", grace: "P7D" })
  expect(await found()).toEqual([{ end_date: endDate, is_active: true, grace_seconds: 604_800 }])
  await memberships.updateProject({ projectId: "p3", grace: "PT59M" })
  expect(await found()).toEqual([{ end_date: endDate, is_active: false, grace_seconds: 3540 }])
})

it("the view has the end dates that hold, whatever bulk extensions were made and undone", async () => {
  const { memberships } = tenure
  const project = { projectId: "p2" }
  const held = async () => {
    const listed = await memberships.list({ ...project, limit: 1000 })
    const { rows } = await database.query(
      `SELECT user_id, end_date, is_active FROM ${view} WHERE project_id = 'p2' ORDER BY user_id`,
    )
    expect(rows).toEqual(
      listed.map(({ endDate, state, userId }) => ({
        user_id: userId,
        end_date: new Date(endDate),
        is_active: state === "active",
      })),
    )
    return rows.map(({ end_date }) => end_date.toISOString().slice(0, 10))
  }
  const at = (date: string) => ({ ...project, endDate: `${date}T00:00:00.000Z` })
  await memberships.grant({ ...at("2020-01-01"), userId: "1" })
  await memberships.grant({ ...at("2091-01-01"), userId: "2" })
  expect(await held()).toEqual(["2020-01-01", "2091-01-01"])
  await memberships.extendAll({ ...at("2090-01-01"), mode: "neverShorten" })
  expect(await held()).toEqual(["2090-01-01", "2091-01-01"])
  await memberships.extendAll({ ...project, by: "P10D", idempotencyKey: "a" })
  expect(await held()).toEqual(["2090-01-11", "2091-01-11"])
  await memberships.extend({ ...at("2095-01-01"), userId: "1" })
  expect(await held()).toEqual(["2095-01-01", "2091-01-11"])
  await memberships.extendAll(at("2093-01-01"))
  expect(await held()).toEqual(["2093-01-01", "2093-01-01"])
  const [set, longer, raised] = await memberships.bulkExtensions(project)
  for (const [made, ...dates] of [
    [raised, "2093-01-01", "2093-01-01"],
    [set, "2095-01-01", "2091-01-11"],
    [longer, "2095-01-01", "2091-01-01"],
  ] as const) {
    await memberships.undoBulkExtension({ ...project, id: made?.id ?? "" })
    expect(await held()).toEqual(dates)
  }
})

/** What the tests use from Prisma's models. */
interface Users {
  findMany(query: object): Promise<ReadonlyArray<object>>
}
interface View {
  findUnique(query: object): Promise<object>
}

describe("the declarations", () => {
  it("of Drizzle join a table of the host", async () => {
    const users = pgSchema(`${schema}_host`).table("users", {
      id: text().primaryKey(),
      name: text().notNull(),
    })
    const m = membershipsCurrentIn(schema)
    const findUser = drizzle(database)
      .select({ name: users.name, number: m.projectNumber, end: m.endDate, isActive: m.isActive })
      .from(users)
      .leftJoin(m, and(eq(m.projectId, projectId), eq(m.userId, users.id)))
      .where(eq(users.id, "500"))
    await expectLittle(findUser.toSQL(), 1)
    const user = { name: "name 500", number: 2n, end: farEnd, isActive: true }
    expect(await findUser).toEqual([user])
  })

  it("of Kysely join a table of the host", async () => {
    interface Tables extends Database<typeof schema> {
      readonly "joins_host.users": { readonly id: string; readonly name: string }
    }
    const findUser = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: database }) })
      .selectFrom("joins_host.users as u")
      .leftJoin("joins.memberships_current as m", (join) =>
        join.onRef("m.user_id", "=", "u.id").on("m.project_id", "=", projectId),
      )
      .select(["u.name", "m.project_number", "m.end_date", "m.is_active"])
      .where("u.id", "=", "500")
    const { parameters, sql } = findUser.compile()
    await expectLittle({ sql, params: parameters }, 1)
    const user = { name: "name 500", project_number: "2", end_date: farEnd, is_active: true }
    expect(await findUser.execute()).toEqual([user])
  })

  it("of Prisma join a table of the host", async () => {
    const queries: Array<Query> = []
    const prisma = connectPrisma(inject("databaseUrl"), await hostFiles())
    prisma.$on("query", ({ params, query }) =>
      queries.push({ sql: query, params: JSON.parse(params) }),
    )
    const user: Users = Reflect.get(prisma, "user")
    const membershipsCurrent: View = Reflect.get(prisma, "membershipsCurrent")
    const inProject = { projectId, isActive: true }
    try {
      const withMemberships = await user.findMany({
        where: { id: { in: ["500", "501"] } },
        include: { memberships: { where: inProject } },
        orderBy: { id: "asc" },
      })
      expect(withMemberships).toEqual([
        expect.objectContaining({ id: "500", memberships: [expect.objectContaining(inProject)] }),
        expect.objectContaining({ id: "501", memberships: [expect.objectContaining(inProject)] }),
      ])
      const some = await user.findMany({
        where: { id: { in: ["500", "0"] }, memberships: { some: { projectId: "p0" } } },
      })
      expect(some).toEqual([{ id: "500", name: "name 500" }])
      const projectId_userId = { projectId, userId: "500" }
      expect(await membershipsCurrent.findUnique({ where: { projectId_userId } })).toEqual({
        ...projectId_userId,
        projectNumber: 2n,
        endDate: farEnd,
        isActive: true,
        metadata: {},
        inDays: false,
        keptDay: null,
        timeZone: "UTC",
        graceSeconds: 0,
        pausedAt: null,
        resumesAt: null,
      })
      for (const query of queries) await expectLittle(query, 2)
      expect(queries.length).toBeGreaterThanOrEqual(4)
    } finally {
      await prisma.$disconnect()
    }
  })
})

const hostPrisma = `
generator client {
  provider        = "prisma-client"
  previewFeatures = ["views"]
}

datasource db {
  provider = "postgresql"
  schemas  = ["${schema}_host", "${schema}"]
}

model User {
  id          String              @id
  name        String
  memberships MembershipsCurrent[]

  @@map("users")
  @@schema("${schema}_host")
}
`

const hostFiles = async () => {
  const file = new URL("../../../tenure/tenure.prisma", import.meta.url)
  const relation = "user User @relation(fields: [userId], references: [id])"
  const fragment = (await readFile(file, "utf8"))
    .replace('@@schema("tenure")', `@@schema("${schema}")`)
    .replace("\n\n  @@unique", `\n\n  ${relation}\n\n  @@unique`)
  return { "schema.prisma": hostPrisma, "tenure.prisma": fragment }
}
