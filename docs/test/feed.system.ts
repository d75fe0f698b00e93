/** The consumer in `docs/feed.md` makes one mail for each event, whatever breaks. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdir, rm, writeFile } from "node:fs/promises"
import fc from "fast-check"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import { type Tenure, createTenure } from "tenure"
import { postgres } from "tenure/postgres"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest"
import { findExamples, root } from "./examples.ts"
import { environment, freshDatabase } from "./programs.ts"

const folder = `${root}/docs/.feed`
const projectId = "p1"

let url: string
let tenure: Tenure
let database: pg.Pool
let page: string

beforeAll(async () => {
  const examples = await findExamples()
  const consumer = examples.find(({ code }) => code.includes("export const makeMails"))
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  page = `${folder}/consumer.ts`
  await writeFile(page, consumer?.code ?? "")
  url = await freshDatabase(inject("databaseUrl"), "feed_page")
  tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
  database = new pg.Pool({ connectionString: url })
  await database.query("CREATE TABLE consumers (name text PRIMARY KEY, cursor text NOT NULL)")
  // Nothing in the table keeps an event from being there twice.
  await database.query("CREATE TABLE mails (event_id uuid, body text)")
  await tenure.memberships.createProject(projectId)
  await tenure.memberships.grant({ projectId, userId: "1001", endDate: new Date("2027-01-01") })
})

afterAll(async () => {
  await tenure.close()
  await database.end()
})

let controller: AbortController

beforeEach(() => begin())

afterEach(() => controller.abort())

/** Has the consumer begin at the events that follow. */
const begin = async () => {
  controller = new AbortController()
  const { cursor } = await tenure.events.read({ projectId })
  await database.query("TRUNCATE mails, consumers")
  await database.query("INSERT INTO consumers VALUES ('mails', $1)", [cursor])
}

const extend = async (times: number) => {
  for (let day = 0; day < times; day++) {
    const endDate = new Date(Date.UTC(2099, 0, 1 + day))
    await tenure.memberships.extend({ projectId, userId: "1001", endDate })
  }
}

const countMails = async (): Promise<number> => {
  const { rows } = await database.query("SELECT count(*)::integer AS mails FROM mails")
  return rows[0].mails
}

/** Waits until there is a mail for each event, and expects that no event has two. */
const expectMails = async (events: number) => {
  await expect.poll(countMails).toBeGreaterThanOrEqual(events)
  const { rows } = await database.query("SELECT DISTINCT event_id FROM mails")
  expect([rows.length, await countMails()]).toEqual([events, events])
}

/** A statement at which the connection breaks: before it is sent, or before its answer arrives. */
interface Break {
  readonly statement: number
  readonly isSent: boolean
}

/** A pool whose connections break at some statements, counted together. */
const breaking = (breaks: ReadonlyArray<Break>) => {
  let statement = 0
  class Breaking extends pg.Client {
    override query = new Proxy(super.query, {
      apply: (query, _, args) => {
        const found = breaks.find((one) => one.statement === statement)
        statement++
        if (found === undefined) return Reflect.apply(query, this, args)
        if (!found.isSent) Reflect.get(this, "connection").stream.destroy()
        const answer = Reflect.apply(query, this, args)
        if (found.isSent) setImmediate(() => Reflect.get(this, "connection").stream.destroy())
        return answer
      },
    })
  }
  const pool = new pg.Pool({ connectionString: url, Client: Breaking })
  return pool.on("connect", (client) => client.on("error", () => {})).on("error", () => {})
}

/** Runs the consumer again and again until the signal aborts. Returns how often it has failed. */
const consume = async (pool: pg.Pool, signal: AbortSignal): Promise<number> => {
  const { makeMails } = await import(page)
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  let failures = 0
  while (!signal.aborted) {
    await makeMails(tenure, db, signal).catch(() => failures++)
  }
  await db.destroy()
  return failures
}

describe("a consumer", () => {
  it("processes each event once, at whatever statement its connection breaks", async () => {
    const broken = fc.record({ statement: fc.nat(40), isSent: fc.boolean() })
    let failures = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(broken, { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
        async (consumers) => {
          await begin()
          const { signal } = controller
          const consuming = consumers.map((breaks) => consume(breaking(breaks), signal))
          try {
            await extend(6)
            await expectMails(6)
          } finally {
            controller.abort()
          }
          for (const failed of await Promise.all(consuming)) failures += failed
        },
      ),
      { numRuns: 20 },
    )
    expect(failures).toBeGreaterThan(2)
  })

  it("does not process events that another has processed", async () => {
    const pools = [1, 2, 3].map(() => breaking([]))
    const consuming = pools.map((pool) => consume(pool, controller.signal))
    await extend(20)
    await expectMails(20)
    controller.abort()
    expect(await Promise.all(consuming)).toEqual([0, 0, 0])
  })

  it("goes on in another process after it was killed", async () => {
    const program = `${folder}/program.ts`
    await writeFile(
      program,
      `import { Kysely, PostgresDialect } from "kysely"
      import pg from "pg"
      import { createTenure } from "tenure"
      import { postgres } from "tenure/postgres"
      import { makeMails } from "./consumer.ts"
      const url = process.env["DATABASE_URL"]
      const pool = new pg.Pool({ connectionString: url })
      const db = new Kysely<never>({ dialect: new PostgresDialect({ pool }) })
      const tenure = await createTenure({ stores: postgres({ url }), webhooks: { dispatch: false } })
      await makeMails(tenure, db, new AbortController().signal)`,
    )
    const start = (): ChildProcess =>
      spawn(process.execPath, ["-C", "@tenure/source", program], {
        env: environment({ DATABASE_URL: url }),
        stdio: ["ignore", "inherit", "inherit"],
      })
    let running = [start(), start()]
    for (const killedAfter of [3, 11]) {
      const extending = extend(10)
      await expect.poll(countMails, { interval: 1 }).toBeGreaterThanOrEqual(killedAfter)
      const [first, second] = running
      first?.kill("SIGKILL")
      running = second === undefined ? [] : [second, start()]
      await extending
    }
    await expectMails(20)
    for (const child of running) {
      child.kill("SIGKILL")
      await once(child, "exit")
    }
  })
})
