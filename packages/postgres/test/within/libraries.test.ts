/** `tenure.within`, with each library that hosts use. */

import { type PromisedServices, type Tenure, createTenure } from "@tenure/core"
import type { Event } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import pg from "pg"
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from "vitest"
import { postgres } from "../../src/index.ts"
import { dropped } from "../harness.ts"
import { type Library, type Run, libraries } from "./libraries.ts"

const schema = "within_libraries"
const early = Date.parse("2027-01-01T00:00:00.000Z")
const late = Date.parse("2099-01-01T00:00:00.000Z")

const told: Array<string> = []

let tenure: Tenure
let database: pg.Pool

beforeAll(async () => {
  await Effect.runPromise(dropped(schema))
  tenure = await createTenure({
    stores: postgres({ url: inject("databaseUrl"), schema }),
    webhooks: { dispatch: false },
    onEvent: ({ id }: Event) => void told.push(id),
  })
  database = new pg.Pool({ connectionString: inject("databaseUrl") })
  await database.query(`CREATE TABLE ${schema}.payments (invoice text)`)
})

afterAll(async () => {
  await tenure.close()
  await database.end()
})

const counts = `
  WITH event AS (SELECT e.id FROM ${schema}.events e JOIN ${schema}.projects p ON p.number = e.project_number
                 WHERE p.id = $1)
  SELECT (SELECT count(*)::integer FROM ${schema}.audit a
          JOIN ${schema}.projects p ON p.number = a.project_number WHERE p.id = $1) AS changes,
         (SELECT count(*)::integer FROM event) AS events,
         (SELECT count(*)::integer FROM ${schema}.deliveries
          WHERE event_id IN (SELECT id FROM event)) AS deliveries,
         (SELECT count(*)::integer FROM ${schema}.payments WHERE invoice = $1) AS payments`

const waitingForTransaction =
  "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND mode = 'ShareLock'"

/** Counts what is committed for a project. */
const stored = async (projectId: string): Promise<unknown> =>
  (await database.query(counts, [projectId])).rows[0]

/** What is stored before the tests: the grant and the webhook. */
const atFirst = { changes: 2, events: 1, deliveries: 0, payments: 0 }

describe.each(Object.entries(libraries))("a transaction of %s", (name, connect) => {
  let library: Library
  let projectId: string
  let idempotencyKey: string
  let member: { readonly projectId: string; readonly userId: string }

  beforeAll(async () => {
    library = await connect(inject("databaseUrl"))
  })
  afterAll(() => library.close())

  beforeEach(async () => {
    idempotencyKey = crypto.randomUUID()
    projectId = `${name} ${idempotencyKey}`
    member = { projectId, userId: "1001" }
    await tenure.memberships.createProject(projectId)
    await tenure.memberships.grant({ ...member, endDate: early })
    await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
  })

  /** Uses the services in a transaction by the library. */
  const within = (work: (services: PromisedServices, run: Run) => Promise<unknown>) =>
    library.transaction(async (connection, run) => {
      await work(tenure.within(connection), run)
    })

  const pay = () => `INSERT INTO ${schema}.payments VALUES ('${projectId}')`

  const publication = () => ({ projectId, type: "payment.completed", data: { text: `"\\{$1}?` } })

  const endDate = async () => (await tenure.memberships.find(member)).endDate

  it("commits the host's own rows, the change, its audit row, its event and deliveries", async () => {
    let id = ""
    await within(async ({ events, memberships }, run) => {
      await run(pay())
      await memberships.extend({ ...member, endDate: late, reason: "paid" })
      id = await events.publish(publication())
      expect((await memberships.find(member)).endDate).toBe(late)
      expect(await endDate()).toBe(early)
      expect(await stored(projectId)).toEqual(atFirst)
      expect(told).not.toContain(id)
    })
    expect(await endDate()).toBe(late)
    expect(await stored(projectId)).toEqual({ changes: 3, events: 3, deliveries: 2, payments: 1 })
    expect((await tenure.events.find({ projectId, eventId: id })).body).toContain(`"\\"\\\\{$1}?"`)
    await expect.poll(() => told).toContain(id)
  })

  it("leaves nothing if it is rolled back", async () => {
    let id = ""
    const payment = within(async ({ events, memberships }, run) => {
      await run(pay())
      await memberships.extend({ ...member, endDate: late })
      id = await events.publish(publication())
      throw new Error("the host's own")
    })
    await expect(payment).rejects.toThrow("the host's own")
    expect(await endDate()).toBe(early)
    expect(await stored(projectId)).toEqual(atFirst)
    // What is committed later is told later.
    let last = ""
    await within(async ({ events }) => {
      last = await events.publish(publication())
    })
    await expect.poll(() => told).toContain(last)
    expect(told).not.toContain(id)
  })

  it("undoes what follows a savepoint, and tells nothing of it", async () => {
    let [kept, undone] = ["", ""]
    await within(async ({ events, memberships }, run) => {
      await run("SAVEPOINT own")
      await memberships.extend({ ...member, endDate: late })
      undone = await events.publish(publication())
      await run("ROLLBACK TO SAVEPOINT own")
      kept = await events.publish(publication())
    })
    expect(await endDate()).toBe(early)
    await expect.poll(() => told).toContain(kept)
    expect(told).not.toContain(undone)
  })

  it("goes on after errors that are the caller's", async () => {
    const missing = { ...member, userId: "404", endDate: late }
    await within(async ({ memberships }) => {
      for (const [change, _tag] of [
        [missing, "MembershipNotFound"],
        [{ ...member, endDate: late, expectedEndDate: late }, "EndDateConflict"],
        [{ ...member, endDate: "soon" }, "InvalidEndDate"],
        [{ ...missing, idempotencyKey }, "MembershipNotFound"],
      ] as const)
        await expect(memberships.extend(change)).rejects.toMatchObject({ _tag })
      await memberships.extend({ ...member, endDate: late })
    })
    expect(await endDate()).toBe(late)
  })

  it("makes and reads what all services make and read", async () => {
    const own = `${projectId} 2`
    const at = new Date("0000-05-06T07:08:09.010Z")
    const page = { projectId: own }
    let read: unknown
    const readAll = async ({ apiKeys, events, memberships, webhooks }: PromisedServices) => {
      const history = await memberships.history(page)
      const [webhook] = await webhooks.list(page)
      const [delivery] = await webhooks.deliveries({ ...page, webhookId: webhook?.id ?? "" })
      const keys = await apiKeys.list({ within: new Set([own]) })
      return {
        history,
        webhook,
        delivery,
        keys,
        found: await webhooks.find({ ...page, webhookId: webhook?.id ?? "" }),
        event: await events.find({ ...page, eventId: delivery?.eventId ?? "" }),
        list: await memberships.list({ ...page, state: "expired" }),
        ofUser: await memberships.history({ ...page, userId: "1", limit: 1 }),
        older: await memberships.history({ ...page, after: history[1]?.cursor }),
        project: await memberships.findProject(own),
        projects: await memberships.listProjects({ within: new Set([own, "other"]) }),
        ending: await memberships.listEnding({ ...page, before: late + 2 }),
      }
    }
    await within(async (services) => {
      const { apiKeys, memberships, webhooks } = services
      await memberships.createProject(own)
      const eventTypes = ["membership.granted", "membership.extended"]
      const url = "https://receiver.example/"
      const webhook = await webhooks.create({ ...page, url, eventTypes })
      await webhooks.rotateSecret({ ...page, webhookId: webhook.id })
      await memberships.grant({ ...page, userId: "1", endDate: at })
      await memberships.import({ ...page, memberships: [{ userId: "2", endDate: late }] })
      await memberships.extendAll({ ...page, endDate: late + 1 })
      await memberships.end({ ...page, userId: "2", reason: "left" })
      const expiresAt = new Date(late)
      await apiKeys.issue({ projects: [own], role: "operator", name: "ours", expiresAt })
      await memberships.grant({ ...page, userId: "3", endDate: at, idempotencyKey })
      await memberships.grant({ ...page, userId: "3", endDate: at, idempotencyKey })
      read = await readAll(services)
    })
    expect(read).toEqual(await readAll(tenure))
    expect(read).toMatchObject({
      history: Array.from({ length: 7 }, () => ({})),
      webhook: { eventTypes: ["membership.granted", "membership.extended"] },
      list: [{ userId: "3", endDate: at.getTime() }],
      keys: [{ projects: new Set([own]), expiresAt: late }],
      project: { memberships: 2, lastBulkEndDate: late + 1 },
      ending: { memberships: [{ userId: "1", endDate: late + 1 }], next: undefined },
    })
  })

  it("runs calls at the same time one after the other", async () => {
    const granted = Array.from({ length: 10 }, (_, index) => ({
      projectId,
      userId: String(2000 + index),
      endDate: late,
      idempotencyKey: idempotencyKey + index,
    }))
    await within(({ memberships }) => Promise.all(granted.map((one) => memberships.grant(one))))
    expect((await tenure.memberships.findProject(projectId)).memberships).toBe(11)
  })

  it("answers a request that another transaction has just made", async () => {
    const extension = { ...member, endDate: late, idempotencyKey }
    const extend = () =>
      within(async ({ memberships }, run) => {
        await run(pay())
        await memberships.extend(extension)
      })
    let second: Promise<unknown> = Promise.resolve()
    await within(async ({ memberships }) => {
      await memberships.extend(extension)
      second = extend().catch((error) => (library.isStrict ? extend() : Promise.reject(error)))
      await expect.poll(() => database.query(waitingForTransaction)).toMatchObject({ rows: [{}] })
    })
    await second
    expect(await stored(projectId)).toEqual({ changes: 3, events: 2, deliveries: 1, payments: 1 })
  })

  it("does not depend on settings of the host", async () => {
    await within(async ({ memberships }, run) => {
      for (const statement of [
        "CREATE TEMPORARY TABLE memberships (user_id integer) ON COMMIT DROP",
        "SET LOCAL search_path = pg_temp, pg_catalog",
        "SET LOCAL TimeZone = 'Asia/Kathmandu'",
        "SET LOCAL DateStyle = 'German, DMY'",
        "SET LOCAL standard_conforming_strings = off",
      ])
        await run(statement)
      await memberships.extend({ ...member, endDate: late })
      expect((await memberships.find(member)).endDate).toBe(late)
      expect((await memberships.history({ projectId }))[0]).toMatchObject({ from: early, to: late })
    })
    expect(await endDate()).toBe(late)
  })

  // The level is the database's matter, and its error the library's.
  it.each(name === "pg" ? ["REPEATABLE READ", "SERIALIZABLE"] : ["SERIALIZABLE"])(
    "that is %s fails with SQLSTATE 40001 if another one has changed the same, and can be repeated",
    async (level) => {
      const attempt = (interfere: () => Promise<unknown>) =>
        within(async ({ memberships }, run) => {
          await run(`SET TRANSACTION ISOLATION LEVEL ${level}`)
          await run(pay())
          await interfere()
          await memberships.extend({ ...member, endDate: late })
        })
      const interfered = attempt(() => tenure.memberships.extend({ ...member, endDate: late - 1 }))
      await expect(interfered).rejects.toMatchObject({ _tag: "TransactionFailed", code: "40001" })
      expect(await endDate()).toBe(late - 1)
      await attempt(() => Promise.resolve())
      expect(await endDate()).toBe(late)
      expect(await stored(projectId)).toMatchObject({ changes: 4, payments: 1 })
    },
  )

  it("fails with the SQLSTATE of a statement that is refused", async () => {
    const readOnly = within(async ({ memberships }, run) => {
      await run("SET TRANSACTION READ ONLY")
      await memberships.extend({ ...member, endDate: late })
    })
    await expect(readOnly).rejects.toMatchObject({ _tag: "TransactionFailed", code: "25006" })
  })

  it("is required", async () => {
    const extendOutside = async () =>
      tenure.within(library.outside()).memberships.extend({ ...member, endDate: late })
    await expect(extendOutside()).rejects.toMatchObject({ _tag: "NoTransaction" })
    expect(await stored(projectId)).toEqual(atFirst)
  })
})

it("a transaction of a library is refused unless it was converted", () => {
  for (const connection of [undefined, "text", {}, { query: { users: {} } }]) {
    const within = () => tenure.within(JSON.parse("0", () => connection))
    expect(within).toThrow("connection must be a client of pg, or the result of a function")
  }
})
