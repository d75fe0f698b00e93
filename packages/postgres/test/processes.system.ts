/** Several processes on one database. Each is a Tenure, or a set of stores, with its own connections. */

import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { PgClient } from "@effect/sql-pg"
import { afterEach, describe, expect, it } from "@effect/vitest"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import {
  ApiKeyId,
  MembershipStore,
  Millis,
  Outbox,
  RateLimitStore,
  WebhookStore,
  bucketPolicy,
} from "@tenure/core/store"
import { nodeTransport, serve } from "@tenure/node-http"
import { type Answer, Fixture, type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Queue from "effect/Queue"
import { beforeEach, inject } from "vitest"
import { postgres, postgresLayer } from "../src/index.ts"
import { deleteFullBuckets } from "../src/rate-limits.ts"
import { clientLayer, emptied, execute } from "./harness.ts"

const schema = "processes"
const projectId = "p1"
const { date, in2027, in2028, in2029, occasion, p1, u1 } = Fixture

const closing: Array<() => Promise<void>> = []

const empty = emptied(schema)
beforeEach(() => Effect.runPromise(empty))

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})

/** Starts stores with their own connections, and the client that they use. */
const startStores = () => {
  const runtime = ManagedRuntime.make(Layer.provideMerge(postgresLayer({ schema }), clientLayer()))
  closing.push(() => runtime.dispose())
  return runtime
}

/** Starts a Tenure that delivers. */
const startTenure = async (options: TenureOptions = {}): Promise<Tenure> => {
  const tenure = await createTenure({
    stores: postgres({ url: inject("databaseUrl"), schema }),
    transport: nodeTransport,
    ...options,
    webhooks: { allowedNetworks: ["127.0.0.0/8"], ...options.webhooks },
  })
  closing.push(tenure.close)
  return tenure
}

const receiving = async (answer?: Answer): Promise<Receiver> => {
  const receiver = await startReceiver(answer)
  closing.push(async () => receiver.close())
  return receiver
}

/** Waits until some connection waits for a lock. */
const blocked = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const waiting = sql.unsafe(
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
  )
  yield* Effect.repeat(waiting, { until: (rows) => rows.length > 0 })
})

describe("an extension", () => {
  it("by a duration is made, however many others extend the member at once", async () => {
    const [one, other] = await Promise.all([startTenure(), startTenure()])
    await one.memberships.createProject(projectId)
    const member = { projectId, userId: "1001" }
    await one.memberships.grant({ ...member, endDate: "2090-01-01T00:00:00.000Z" })
    const extensions = Array.from({ length: 50 }, (_, index) =>
      (index % 2 === 0 ? one : other).memberships.extend({
        ...member,
        by: "P1D",
        idempotencyKey: String(index),
      }),
    )
    await Promise.all(extensions)
    const { endDate } = await one.memberships.find(member)
    expect(new Date(endDate).toISOString()).toBe("2090-02-20T00:00:00.000Z")
  })

  it("takes effect although a bulk extension and another extension overtook it", async () => {
    const [one, other] = [startStores(), startStores()]
    const member = { ...Fixture.change(p1), userId: u1 }
    await one.runPromise(
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* store.grant({ ...member, endDate: in2027 })
      }),
    )
    const first = date("2031-01-01T00:00:00.000Z")
    const overtaken = await one.runPromise(
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const store = yield* MembershipStore
        return yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql.unsafe(`SELECT 1 FROM ${schema}.memberships FOR UPDATE`)
            const extension = other.runPromise(
              Effect.flatMap(MembershipStore, (stores) =>
                stores.extend({ ...Fixture.change(p1), userId: u1, endDate: first }),
              ),
            )
            yield* Effect.promise(() => other.runPromise(blocked))
            const bulk = { ...Fixture.change(p1), bulk: { endDate: in2028, mode: "set" } } as const
            yield* Effect.promise(() =>
              other.runPromise(Effect.flatMap(MembershipStore, (all) => all.extendAll(bulk))),
            )
            yield* store.extend({ ...Fixture.change(p1), userId: u1, endDate: in2029 })
            return extension
          }),
        )
      }),
    )
    expect(overtaken).toMatchObject({ type: "test.happened" })
    const found = await one.runPromise(Effect.flatMap(MembershipStore, (all) => all.find(p1, u1)))
    expect(found.endDate).toBe(first)
  })

  it("that is invalid fails alone, and not the others in its batch", async () => {
    const stores = startStores()
    const results = await stores.runPromise(
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2027 })
        const extension = (requestId: string) =>
          Effect.exit(
            store.extend({
              ...Fixture.change(p1),
              userId: u1,
              endDate: in2029,
              origin: { requestId, keyId: ApiKeyId("k") },
            }),
          )
        // PostgreSQL cannot store NUL in a text.
        return yield* Effect.all(["a", "b\0", "c"].map(extension), { concurrency: "unbounded" })
      }),
    )
    expect(results.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Success"])
  })

  it("of a membership starts where the previous one ended", async () => {
    const stores = startStores()
    const endDates = Array.from({ length: 50 }, (_, day) => new Date(in2027 + day * 86_400_000))
    const history = await stores.runPromise(
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion)
        yield* store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2027 })
        const extend = (endDate: Date) =>
          store.extend({
            ...Fixture.change(p1),
            userId: u1,
            endDate: date(endDate.toISOString()),
          })
        yield* Effect.forEach(endDates, extend, { concurrency: 1 })
        yield* Effect.forEach(endDates, extend, { concurrency: "unbounded" })
        return yield* store.history(p1, { userId: u1, limit: 1000 })
      }),
    )
    // Holds for any order of the concurrent extensions.
    const rows = history.toReversed()
    expect(rows).toHaveLength(101)
    for (const [index, { from }] of rows.entries()) expect(from).toBe(rows[index - 1]?.to)
  })
})

describe("a limit", () => {
  it("on requests applies to all processes together", async () => {
    const stores = [startStores(), startStores()]
    const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })
    const policies = { address: perHour(300), key: perHour(100), burst: perHour(20) }
    const client = { address: "1", keyId: ApiKeyId("a") }
    const takes = await Promise.all(
      Array.from({ length: 400 }, (_, index) =>
        stores[index % 2]?.runPromise(
          Effect.flatMap(RateLimitStore, (store) => store.take(client, policies)),
        ),
      ),
    )
    expect(takes.filter((take) => take?.admitted === true)).toHaveLength(20)
  })

  it("on the number of webhooks applies to all processes together", async () => {
    const stores = [startStores(), startStores()]
    await stores[0]?.runPromise(
      Effect.flatMap(MembershipStore, (all) => all.createProject(p1, occasion)),
    )
    const added = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) =>
        stores[index % 2]?.runPromise(
          Effect.flatMap(WebhookStore, (store) => store.add(Fixture.makeWebhook(p1), 7, occasion)),
        ),
      ),
    )
    expect(added.filter(({ status }) => status === "fulfilled")).toHaveLength(7)
  })
})

describe("a delivery", () => {
  it("is made once, by any of the processes", async () => {
    const receiver = await receiving()
    const tenures = await Promise.all([startTenure(), startTenure(), startTenure()])
    const [first] = tenures
    await first.memberships.createProject(projectId)
    await first.webhooks.create({ projectId, url: receiver.url })
    await Promise.all(
      Array.from({ length: 300 }, (_, index) =>
        tenures[index % 3]?.events.publish({ projectId, type: "test", data: index }),
      ),
    )
    await receiver.until(300)
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"])
    expect([ids.length, new Set(ids).size]).toEqual([300, 300])
  })

  it("is made by a process that another notifies", async () => {
    const receiver = await receiving()
    const tenure = await startTenure()
    await tenure.memberships.createProject(projectId)
    await tenure.webhooks.create({ projectId, url: receiver.url })
    const stores = startStores()
    await stores.runPromise(Effect.flatMap(Outbox, (outbox) => outbox.publish(Fixture.event(p1))))
    await receiver.until(1)
  })

  it("that a process claimed before it stopped is made by another", async () => {
    const receiver = await receiving()
    const dying = startStores()
    await dying.runPromise(
      Effect.gen(function* () {
        const webhook = { ...Fixture.makeWebhook(p1), url: receiver.url }
        yield* (yield* MembershipStore).createProject(p1, occasion)
        yield* (yield* WebhookStore).add(webhook, 50, occasion)
        const outbox = yield* Outbox
        yield* outbox.publish(Fixture.event(p1))
        const claimed = yield* outbox.claim({
          limit: 1,
          failing: 1,
          perWebhook: { least: 4, most: 4 },
          perProject: 100,
          ahead: new Map(),
          leaseMillis: 500,
        })
        expect(claimed.claims).toHaveLength(1)
      }),
    )
    await dying.dispose()
    await startTenure()
    await receiver.until(1)
  })

  it("starts in no process after the webhook is deleted", async () => {
    const receiver = await receiving()
    const [one, other] = await Promise.all([startTenure(), startTenure()])
    await one.memberships.createProject(projectId)
    const { id } = await one.webhooks.create({ projectId, url: receiver.url })
    await one.events.publish({ projectId, type: "test", data: 1 })
    await receiver.until(1)
    await other.webhooks.delete({ projectId, webhookId: id })
    for (const tenure of [one, other]) {
      await tenure.events.publish({ projectId, type: "test", data: 2 })
    }
    const sentinel = await receiving()
    await one.webhooks.create({ projectId, url: sentinel.url })
    await one.events.publish({ projectId, type: "test", data: 3 })
    await sentinel.until(1)
    expect(receiver.received).toHaveLength(1)
  })
})

describe("an attempt in flight", () => {
  it("is cancelled even if the notification of the deletion is lost", async () => {
    const closed: Array<Promise<unknown>> = []
    const receiver = await receiving((response) => void closed.push(once(response, "close")))
    const sending = await startTenure({ webhooks: { timeout: "1 hour" } })
    await sending.memberships.createProject(projectId)
    await sending.webhooks.create({ projectId, url: receiver.url })
    await sending.events.publish({ projectId, type: "test", data: 1 })
    await receiver.until(1)
    await Effect.runPromise(execute(`DELETE FROM ${schema}.webhooks`))
    await closed[0]
  })

  it("is cancelled when another process deletes the webhook", async () => {
    const closed: Array<Promise<unknown>> = []
    const receiver = await receiving((response) => void closed.push(once(response, "close")))
    const sending = await startTenure()
    await sending.memberships.createProject(projectId)
    const { id } = await sending.webhooks.create({ projectId, url: receiver.url })
    await sending.events.publish({ projectId, type: "test", data: 1 })
    await receiver.until(1)
    const other = await startTenure()
    await other.webhooks.delete({ projectId, webhookId: id })
    await closed[0]
    const deliveries = await other.webhooks.deliveries({ projectId, webhookId: id })
    expect(deliveries.map(({ state }) => state)).toEqual(["cancelled"])
  })
})

describe("a publication", () => {
  it("notifies other processes", async () => {
    const [telling, listening] = [startStores(), startStores()]
    await listening.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const notifications = yield* sql.listen(`"${schema}".deliveries`)
          const publication = Effect.gen(function* () {
            yield* (yield* MembershipStore).createProject(p1, occasion)
            yield* (yield* WebhookStore).add(Fixture.makeWebhook(p1), 50, occasion)
            yield* (yield* Outbox).publish(Fixture.event(p1))
          })
          yield* Effect.promise(() => telling.runPromise(publication))
          yield* Queue.take(notifications)
        }),
      ),
    )
  })
})

describe("a process", () => {
  it("is told of its own publication once", async () => {
    const stores = startStores()
    await stores.runPromise(
      Effect.gen(function* () {
        const outbox = yield* Outbox
        const webhooks = yield* WebhookStore
        yield* (yield* MembershipStore).createProject(p1, occasion)
        yield* webhooks.add(Fixture.makeWebhook(p1), 50, occasion)
        const remove = (webhook = Fixture.makeWebhook(p1)) =>
          Effect.andThen(
            webhooks.add(webhook, 50, occasion),
            webhooks.remove(p1, webhook.id, occasion),
          )
        // It listens once it hears of a removal, and has heard of all once it hears of the last.
        yield* Effect.repeat(
          Effect.flatMap(remove(), () => outbox.nextChange),
          { until: (change) => change._tag === "Stopped" },
        )
        const last = Fixture.makeWebhook(p1)
        yield* remove(last)
        yield* Effect.repeat(outbox.nextChange, {
          until: (change) => change._tag === "Stopped" && change.webhookId === last.id,
        })
        yield* outbox.publish(Fixture.event(p1))
        expect(yield* outbox.nextChange).toEqual({ _tag: "Due" })
        const another = yield* Effect.timeoutOption(outbox.nextChange, "200 millis")
        expect(another._tag).toBe("None")
      }),
    )
  })
})

describe("the sweep of buckets", () => {
  it("deletes full buckets only", async () => {
    const stores = startStores()
    const take = (address: string, millis: number) => {
      const policy = bucketPolicy({ limit: 1, window: Millis(millis) })
      return Effect.flatMap(RateLimitStore, (store) =>
        store.take({ address, keyId: undefined }, { address: policy, key: policy, burst: policy }),
      )
    }
    const kept = await stores.runPromise(
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* take("soon", 1)
        yield* take("late", 3_600_000)
        // The window has ended on the clock of the database.
        yield* sql.unsafe("SELECT pg_sleep(0.002)")
        yield* sql.unsafe(deleteFullBuckets(`"${schema}"`))
        return yield* sql.unsafe(`SELECT id FROM ${schema}.rate_limit_buckets`)
      }),
    )
    expect(kept).toEqual([{ id: "address:late" }])
  })
})

describe("an API key", () => {
  it("that another process has revoked stops working when its cache entry expires", async () => {
    const [one, other] = await Promise.all([
      startTenure({ keyCacheTtl: 200 }),
      startTenure({ keyCacheTtl: 200 }),
    ])
    await one.memberships.createProject(projectId)
    const { id, token } = await one.apiKeys.issue({ projects: [projectId] })
    expect(await other.apiKeys.authenticate(token)).toMatchObject({ id })
    await one.apiKeys.revoke(id)
    expect(await one.apiKeys.authenticate(token)).toBeUndefined()
    // Elapsed time is what this test is about: the life of a cached key.
    await sleep(250)
    expect(await other.apiKeys.authenticate(token)).toBeUndefined()
  })
})

describe("a ticket", () => {
  it("of one process opens one connection, at whichever process it is used first", async () => {
    const startServer = async (tenure: Tenure): Promise<string> => {
      const server = await serve(tenure, { shutdownTimeout: 500 })
      closing.push(server.close)
      return server.url
    }
    const [one, another] = await Promise.all([startTenure(), startTenure()])
    const [url, otherUrl] = await Promise.all([startServer(one), startServer(another)])
    await one.memberships.createProject(projectId)
    const { token } = await one.apiKeys.issue({ projects: [projectId] })
    const issue = async (): Promise<string> => {
      const answer = await fetch(`${url}/v2/realtime/tickets`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ projects: [projectId] }),
      })
      return Object(await answer.json()).data.ticket
    }
    const use = async (at: string, ticket: string): Promise<number> => {
      const leaving = new AbortController()
      const { status } = await fetch(`${at}/v2/projects/${projectId}/events?ticket=${ticket}`, {
        headers: { accept: "text/event-stream" },
        signal: leaving.signal,
      })
      leaving.abort()
      return status
    }
    const ticket = await issue()
    expect(await use(otherUrl, ticket)).toBe(200)
    expect(await use(url, ticket)).toBe(401)
    const contested = await issue()
    const statuses = await Promise.all(
      [url, otherUrl].flatMap((at) => Array.from({ length: 4 }, () => use(at, contested))),
    )
    expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: 7 }, () => 401)])
  })
})
