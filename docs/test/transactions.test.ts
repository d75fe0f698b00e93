/** The code in `docs/transactions.md`, and the transaction in `docs/hosts/stripe.md`, run with the real libraries. */

import { MikroORM } from "@mikro-orm/postgresql"
import { drizzle } from "drizzle-orm/node-postgres"
import knexOn from "knex"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import postgresJs from "postgres"
import { type Tenure, createTenure } from "tenure"
import { postgres } from "tenure/postgres"
import { externalTables } from "tenure/prisma"
import { DataSource } from "typeorm"
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from "vitest"
import { connectPrisma } from "../../packages/postgres/test/within/prisma-client.ts"
import { secret, startStripeAccount } from "../../packages/stripe/test/stripe-account.ts"
import { blocksIn, examplesIn, read, writeExamples } from "./examples.ts"
import { freshDatabase } from "./programs.ts"

const examples = ["docs/transactions.md", "docs/hosts/stripe.md"].flatMap(examplesIn)
const folder = await writeExamples("transactions", examples)
const page = read("docs/transactions.md")
const projectId = "p1"
const endDate = new Date("2099-01-01")

let url: string
let tenure: Tenure
let database: pg.Pool

beforeAll(async () => {
  url = await freshDatabase(inject("databaseUrl"), "transactions_page")
  tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
  database = new pg.Pool({ connectionString: url })
  await database.query(`
    CREATE TABLE public.payments (invoice text PRIMARY KEY, user_id text);
    CREATE TABLE public.users (id text PRIMARY KEY, name text NOT NULL);
    INSERT INTO public.users VALUES ('1001', 'Ada'), ('1002', 'Grace'), ('1003', 'Edsger')`)
  for (const project of [projectId, "stripe"]) await tenure.memberships.createProject(project)
  for (const userId of ["1001", "1002"]) {
    await tenure.memberships.grant({ projectId, userId, endDate })
  }
})

afterAll(async () => {
  await tenure.close()
  await database.end()
})

const kysely = () => new Kysely<object>({ dialect: new PostgresDialect({ pool: database }) })

const example = (number: number) => import(`${folder}/docs-transactions.md-${number}.ts`)

/** What is committed for an invoice: payments and events. */
const committed = async (invoice: string) => {
  const { rows } = await database.query(
    `SELECT (SELECT count(*)::integer FROM payments WHERE invoice = $1) AS payments,
            (SELECT count(*)::integer FROM tenure.events WHERE body LIKE '%"' || $1 || '"%') AS events`,
    [invoice],
  )
  return rows[0]
}

interface Code {
  readonly Payments: never
}

/** What is connected, and how it is closed unless the other connections are its own. */
type Connected = readonly [connected: unknown, close?: () => Promise<unknown>]

/** The libraries, in the page's order, each with how it is connected. */
const libraries: ReadonlyArray<[string, (code: Code) => Connected | Promise<Connected>]> = [
  ["pg", () => [database]],
  [
    "postgres.js",
    () => {
      const sql = postgresJs(url)
      return [sql, () => sql.end()]
    },
  ],
  ["Drizzle", () => [drizzle(database)]],
  ["Kysely", () => [kysely()]],
  [
    "Knex",
    () => {
      const knex = knexOn({ client: "pg", connection: url })
      return [knex, () => knex.destroy()]
    },
  ],
  [
    "TypeORM",
    async ({ Payments }) => {
      const source = new DataSource({ type: "postgres", url, entities: [Payments] })
      await source.initialize()
      return [source, () => source.destroy()]
    },
  ],
  [
    "MikroORM",
    async ({ Payments }) => {
      const orm = await MikroORM.init({ clientUrl: url, entities: [Payments] })
      return [orm, () => orm.close()]
    },
  ],
  [
    "Prisma",
    () => {
      const prisma = connectPrisma(url)
      return [prisma, () => prisma.$disconnect()]
    },
  ],
]

it.each(libraries.map(([name, connect], index) => ({ name, connect, number: index + 1 })))(
  "a payment with $name is recorded, extends the membership and sends the event, or none of it",
  async ({ connect, name, number }) => {
    const code = await example(number)
    const [connected, close] = await connect(code)
    onTestFinished(async () => void (await close?.()))
    const member = { projectId, userId: String(number) }
    const payment = { invoice: `${name}-1`, userId: member.userId, endDate }
    await expect(code.received(tenure, connected, payment)).rejects.toMatchObject({
      _tag: "MembershipNotFound",
    })
    expect(await committed(payment.invoice)).toEqual({ payments: 0, events: 0 })
    await tenure.memberships.grant({ ...member, endDate: new Date("2027-01-01") })
    await code.received(tenure, connected, payment)
    expect(await committed(payment.invoice)).toEqual({ payments: 1, events: 1 })
    expect((await tenure.memberships.find(member)).endDate).toBe(endDate.getTime())
  },
)

describe("invoice.paid of Stripe", () => {
  const setUp = async (names: { readonly user_id?: string }) => {
    const account = await startStripeAccount()
    onTestFinished(account.close)
    const { sign, stripe } = account
    account.subscribe("sub_1", "cus_1", { project_id: "stripe", ...names })
    const invoice = `in_${crypto.randomUUID()}`
    const start = Date.parse("2027-01-01") / 1000
    const line = { amount: 1900, start, end: endDate.getTime() / 1000 }
    const { body } = account.pay("sub_1", invoice, line)
    const { onStripe } = await import(`${folder}/docs-hosts-stripe.md-4.ts`)
    const receive = (signedBody = body) =>
      onStripe({ db: kysely(), secret, stripe, tenure }, body, sign(signedBody))
    const actionsOf = async (userId: string) =>
      (await tenure.memberships.history({ projectId: "stripe", userId })).map(
        ({ action }) => action,
      )
    return { actionsOf, invoice, receive }
  }

  it("extends once, however often and at the same time it is sent, and only with its signature", async () => {
    const { actionsOf, invoice, receive } = await setUp({ user_id: "1001" })
    const member = { projectId: "stripe", userId: "1001" }
    await tenure.memberships.grant({ ...member, endDate: new Date("2027-01-01") })
    await expect(receive("{}")).rejects.toThrow("signature")
    expect(await actionsOf("1001")).toEqual(["granted"])
    await Promise.all([receive(), receive(), receive()])
    await receive()
    expect((await tenure.memberships.find(member)).endDate).toBe(endDate.getTime())
    expect(await actionsOf("1001")).toEqual(["extended", "granted"])
    expect(await committed(invoice)).toMatchObject({ payments: 1 })
  })

  it("makes a newcomer a member, once", async () => {
    const { actionsOf, receive } = await setUp({ user_id: "newcomer" })
    await Promise.all([receive(), receive()])
    expect(await actionsOf("newcomer")).toEqual(["granted"])
    const found = await tenure.memberships.find({ projectId: "stripe", userId: "newcomer" })
    expect(found).toMatchObject({ endDate: endDate.getTime() })
  })

  it("warns of a payment that names no member", async () => {
    const { invoice, receive } = await setUp({})
    const warn = vi.spyOn(console, "warn").mockReturnValue(undefined)
    await receive()
    expect(warn).toHaveBeenCalledWith(`${invoice} names no member`)
    expect(await committed(invoice)).toMatchObject({ payments: 0 })
  })
})

it("the statements of the page find a user, and a page of a project", async () => {
  const [user = "", members = ""] = blocksIn(page, "sql")
  expect((await database.query(user)).rows).toEqual([
    { name: "Ada", end_date: endDate, is_active: true },
  ])
  expect((await database.query(members)).rows).toEqual([
    { name: "Grace", user_id: "1002", end_date: endDate },
  ])
})

it("the page of PostgreSQL has the columns of the view", async () => {
  const { rows } = await database.query("SELECT * FROM tenure.memberships_current LIMIT 1")
  const text = read("docs/storage.md")
  const [, section = ""] = text.split("\n### Joins\n")
  const columns = [...(section.split("\n## ")[0] ?? "").matchAll(/^\| `(\w+)`/gm)]
  expect(columns.map(([, name]) => name)).toEqual(Object.keys(rows[0]))
})

describe("a user is found with the membership", () => {
  it.each([
    ["Drizzle", 9, () => drizzle(database)],
    ["Kysely", 10, kysely],
  ])("by %s", async (_, number, connect) => {
    const { findUser } = await example(number)
    expect(await findUser(connect(), "p1", "1001")).toEqual([{ name: "Ada", endDate }])
    expect(await findUser(connect(), "p1", "1003")).toEqual([{ name: "Edsger", endDate: null }])
  })

  it("by Prisma, with the file of the package and the relation of the page", async () => {
    const { findUser } = await example(12)
    const [schema = ""] = blocksIn(page, "prisma")
    const relation = /`(user User @relation[^`]*)`/.exec(page)?.[1]
    const view = read("packages/tenure/tenure.prisma")
    const prisma = connectPrisma(url, {
      "schema.prisma": schema,
      "tenure.prisma": view.replace("\n\n", `\n  ${relation}\n\n`),
    })
    onTestFinished(() => prisma.$disconnect())
    expect(await findUser(prisma, "p1", "1001")).toEqual([
      { id: "1001", name: "Ada", memberships: [expect.objectContaining({ endDate })] },
    ])
    expect(await findUser(prisma, "p1", "1003")).toEqual([
      { id: "1003", name: "Edsger", memberships: [] },
    ])
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
