/** The code of `docs/transactions.md`, and the transaction of `docs/hosts/stripe.md`, run with the real libraries. */

import { MikroORM } from "@mikro-orm/postgresql"
import { drizzle } from "drizzle-orm/node-postgres"
import knexOn from "knex"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import postgresJs from "postgres"
import { Stripe } from "stripe"
import { type Tenure, createTenure } from "tenure"
import { postgres } from "tenure/postgres"
import { DataSource } from "typeorm"
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  onTestFinished,
  vi,
} from "vitest"
import { connectPrisma } from "../../packages/postgres/test/within/prisma-client.ts"
import { examplesIn, writeExamples } from "./examples.ts"
import { freshDatabase } from "./programs.ts"

const examples = ["docs/transactions.md", "docs/hosts/stripe.md"].flatMap(examplesIn)
const folder = await writeExamples("transactions", examples)
const projectId = "p1"
const endDate = new Date("2099-01-01")

const closing: Array<() => Promise<unknown>> = []
let url: string
let tenure: Tenure
let database: pg.Pool

beforeAll(async () => {
  url = await freshDatabase(inject("databaseUrl"), "transactions_page")
  tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
  database = new pg.Pool({ connectionString: url })
  closing.push(
    () => tenure.close(),
    () => database.end(),
  )
  await database.query("CREATE TABLE payments (invoice text PRIMARY KEY, user_id text)")
  await tenure.memberships.createProject(projectId)
})

afterAll(async () => {
  for (const close of closing.toReversed()) await close()
})

const kyselyOn = () => {
  const pool = new pg.Pool({ connectionString: url })
  const db = new Kysely<object>({ dialect: new PostgresDialect({ pool }) })
  closing.push(() => db.destroy())
  return db
}

const example = (number: number) => import(`${folder}/docs-transactions.md-${number}.ts`)

/** What is committed of an invoice: payments and events. */
const committed = async (invoice: string) => {
  const { rows } = await database.query(
    `SELECT (SELECT count(*)::integer FROM payments WHERE invoice = $1) AS payments,
            (SELECT count(*)::integer FROM tenure.events WHERE body LIKE '%"' || $1 || '"%') AS events`,
    [invoice],
  )
  return rows[0]
}

/** The libraries, in the order of the page, each with how it is connected. */
const libraries = [
  ["pg", async () => database],
  [
    "postgres.js",
    async () => {
      const sql = postgresJs(url)
      closing.push(() => sql.end())
      return sql
    },
  ],
  ["Drizzle", async () => drizzle(database)],
  ["Kysely", async () => kyselyOn()],
  [
    "Knex",
    async () => {
      const knex = knexOn({ client: "pg", connection: url })
      closing.push(() => knex.destroy())
      return knex
    },
  ],
  [
    "TypeORM",
    async ({ Payments }: { readonly Payments: never }) => {
      const source = await new DataSource({
        type: "postgres",
        url,
        entities: [Payments],
      }).initialize()
      closing.push(() => source.destroy())
      return source
    },
  ],
  [
    "MikroORM",
    async ({ Payments }: { readonly Payments: never }) => {
      const orm = await MikroORM.init({ clientUrl: url, entities: [Payments] })
      closing.push(() => orm.close())
      return orm
    },
  ],
  [
    "Prisma",
    async () => {
      const prisma = connectPrisma(url)
      closing.push(() => prisma.$disconnect())
      return prisma
    },
  ],
] as const

describe.each(libraries.map(([name, connect], index) => ({ name, connect, number: index + 1 })))(
  "a payment with $name",
  ({ connect, name, number }) => {
    it("is recorded, extends the membership and sends the event, or none of it", async () => {
      const code = await example(number)
      const connected = await connect(code)
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
    })
  },
)

describe("invoice.paid of Stripe", () => {
  const secret = "whsec_test_secret"
  const stripe = new Stripe("sk_test_123")
  let db: Kysely<object>
  const member = { projectId, userId: "1001" }
  let id = ""

  beforeAll(() => {
    db = kyselyOn()
  })

  beforeEach(async () => {
    id = `evt_${crypto.randomUUID()}`
    await tenure.memberships.grant({ ...member, endDate: new Date("2027-01-01") })
  })

  /** An event as Stripe sends it, without the fields that nobody reads. */
  const paid = (
    names: { readonly user_id?: string } = { user_id: "1001" },
    ...lines: ReadonlyArray<{ readonly amount: number; readonly end: string }>
  ) =>
    JSON.stringify({
      id,
      object: "event",
      api_version: "2026-10-28.clover",
      created: 1_795_000_000,
      livemode: false,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type: "invoice.paid",
      data: {
        object: {
          id: `in_${id}`,
          object: "invoice",
          currency: "eur",
          amount_paid: 1900,
          billing_reason: "subscription_cycle",
          customer: "cus_123",
          parent: {
            type: "subscription_details",
            quote_details: null,
            subscription_details: {
              subscription: "sub_123",
              metadata: { project_id: projectId, ...names },
            },
          },
          lines: {
            object: "list",
            has_more: false,
            data: [...lines, { amount: 1900, end: "2099-01-01" }].map(({ amount, end }) => ({
              id: "il_123",
              object: "line_item",
              amount,
              parent: {
                type: "subscription_item_details",
                subscription_item_details: { subscription: "sub_123" },
              },
              period: { start: 1_798_761_600, end: Date.parse(end) / 1000 },
            })),
          },
          status: "paid",
        },
      },
    })

  const receive = async (body: string, signedBody = body) => {
    const { onStripe } = await import(`${folder}/docs-hosts-stripe.md-4.ts`)
    const signature = stripe.webhooks.generateTestHeaderString({ payload: signedBody, secret })
    await onStripe({ db, secret, stripe, tenure }, body, signature)
  }

  const extensions = async () =>
    (await tenure.memberships.history(member)).filter(({ origin }) => origin.requestId === id)
      .length

  it("extends once, however often and at the same time it is sent", async () => {
    await Promise.all([receive(paid()), receive(paid()), receive(paid())])
    await receive(paid())
    expect((await tenure.memberships.find(member)).endDate).toBe(endDate.getTime())
    expect(await extensions()).toBe(1)
    expect(await committed(`in_${id}`)).toMatchObject({ payments: 1 })
  })

  it("changes nothing if the signature is of another body", async () => {
    await expect(receive(paid(), "{}")).rejects.toThrow("signature")
    expect(await extensions()).toBe(0)
  })

  it("makes a newcomer a member, once", async () => {
    const newcomer = { projectId, userId: "newcomer" }
    const body = paid({ user_id: "newcomer" })
    await Promise.all([receive(body), receive(body)])
    expect(await tenure.memberships.history(newcomer)).toMatchObject([{ action: "granted" }])
    expect(await tenure.memberships.find(newcomer)).toMatchObject({ endDate: endDate.getTime() })
  })

  it("counts the longest line, and no credit", async () => {
    await receive(paid({ user_id: "1001" }, { amount: -900, end: "2099-06-01" }))
    expect((await tenure.memberships.find(member)).endDate).toBe(endDate.getTime())
  })

  it("leaves a later end date", async () => {
    const later = new Date("2100-01-01")
    await tenure.memberships.grant({ ...member, endDate: later })
    await receive(paid())
    expect((await tenure.memberships.find(member)).endDate).toBe(later.getTime())
  })

  it("warns of a payment that names no member", async () => {
    const warn = vi.spyOn(console, "warn").mockReturnValue(undefined)
    onTestFinished(() => warn.mockRestore())
    await receive(paid({}))
    expect(warn).toHaveBeenCalledWith(`in_${id} names no member`)
    expect(await committed(`in_${id}`)).toMatchObject({ payments: 0 })
  })
})
