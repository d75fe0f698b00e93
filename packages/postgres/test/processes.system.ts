/** Several processes on one database. Each is a Tenure, or a set with all stores, with its own connections. */

import { once } from "node:events"
import { PgClient } from "@effect/sql-pg"
import { afterEach, describe, expect, it } from "@effect/vitest"
import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import {
  ApiKeyId,
  type ChangeContext,
  EndDate,
  MembershipStore,
  Millis,
  Outbox,
  RateLimitStore,
  WebhookStore,
  bucketPolicy,
} from "@tenure/core/store"
import { nodeTransport } from "@tenure/node-http"
import { type Answer, Fixture, type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Queue from "effect/Queue"
import { beforeEach, inject } from "vitest"
import { postgres, postgresLayer } from "../src/index.ts"
import { clientLayer, emptied, execute, waitingOn } from "./harness.ts"

const schema = "processes"
const projectId = "p1"
const { date, in2027, in2028, in2029, context, p1, u1 } = Fixture

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

const member = { projectId, userId: "1001" }

/** Makes a project with a member. */
const granted = Effect.flatMap(MembershipStore, (store) =>
  Effect.andThen(
    store.createProject(p1, context),
    store.grant({ ...Fixture.change(p1), userId: u1, endDate: in2027 }),
  ),
)

const extend = (endDate: EndDate, more: Partial<ChangeContext> = {}) =>
  Effect.flatMap(MembershipStore, (store) =>
    store.extend({ ...Fixture.change(p1), userId: u1, endDate, ...more }),
  )

/** Makes a project with a webhook to this URL, whose first event is published. */
const publishTo = async (tenure: Tenure, url: string): Promise<string> => {
  await tenure.memberships.createProject(projectId)
  const { id } = await tenure.webhooks.create({ projectId, url })
  await tenure.events.publish({ projectId, type: "test", data: 1 })
  return id
}

describe("an extension", () => {
  it("by a duration is made, however many others extend the member at once", async () => {
    const [one, other] = await Promise.all([startTenure(), startTenure()])
    await one.memberships.createProject(projectId)
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
    await one.runPromise(granted)
    const first = date("2031-01-01T00:00:00.000Z")
    const overtaken = await one.runPromise(
      Effect.gen(function* () {
        const client = yield* PgClient.PgClient
        return yield* client.withTransaction(
          Effect.gen(function* () {
            yield* client.unsafe(`SELECT 1 FROM ${schema}.memberships FOR UPDATE`)
            const extension = other.runPromise(extend(first))
            yield* Effect.promise(() => other.runPromise(waitingOn(schema)))
            const bulk = { ...Fixture.change(p1), bulk: { endDate: in2028, mode: "set" } } as const
            yield* Effect.promise(() =>
              other.runPromise(Effect.flatMap(MembershipStore, (all) => all.extendAll(bulk))),
            )
            yield* extend(in2029)
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
    // PostgreSQL cannot store NUL in a text.
    const extensions = ["a", "b\0", "c"].map((requestId) =>
      Effect.exit(extend(in2029, { origin: { requestId, keyId: ApiKeyId("k") } })),
    )
    const results = await startStores().runPromise(
      Effect.andThen(granted, Effect.all(extensions, { concurrency: "unbounded" })),
    )
    expect(results.map(({ _tag }) => _tag)).toEqual(["Success", "Failure", "Success"])
  })
})

it("extensions of a membership start where the previous one ended", async () => {
  const endDates = Array.from({ length: 50 }, (_, day) => EndDate(in2027 + day * 86_400_000))
  const history = await startStores().runPromise(
    Effect.gen(function* () {
      yield* granted
      yield* Effect.forEach(endDates, (endDate) => extend(endDate))
      yield* Effect.forEach(endDates, (endDate) => extend(endDate), { concurrency: "unbounded" })
      return yield* (yield* MembershipStore).history(p1, { userId: u1, limit: 1000 })
    }),
  )
  // Holds in whatever order the extensions come.
  const rows = history.toReversed()
  expect(rows).toHaveLength(101)
  for (const [index, { from }] of rows.entries()) expect(from).toBe(rows[index - 1]?.to)
})

it("a limit on requests applies to all processes together", async () => {
  const [one, other] = [startStores(), startStores()]
  const perHour = (limit: number) => bucketPolicy({ limit, window: Millis(3_600_000) })
  const policies = { address: perHour(300), key: perHour(100), burst: perHour(20) }
  const taking = Effect.flatMap(RateLimitStore, (store) =>
    store.take({ address: "1", keyId: ApiKeyId("a") }, policies),
  )
  const takes = await Promise.all(
    Array.from({ length: 400 }, (_, index) => (index % 2 === 0 ? one : other).runPromise(taking)),
  )
  expect(takes.filter(({ admitted }) => admitted)).toHaveLength(20)
})

it("a limit on the number of webhooks applies to all processes together", async () => {
  const [one, other] = [startStores(), startStores()]
  await one.runPromise(granted)
  const adding = Effect.flatMap(WebhookStore, (store) =>
    Effect.option(store.add(Fixture.makeWebhook(p1), 7, context)),
  )
  const added = await Promise.all(
    Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : other).runPromise(adding)),
  )
  expect(added.filter(({ _tag }) => _tag === "Some")).toHaveLength(7)
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

  it("starts in no process after the webhook is deleted", async () => {
    const [receiver, sentinel] = [await receiving(), await receiving()]
    const [one, other] = await Promise.all([startTenure(), startTenure()])
    const webhookId = await publishTo(one, receiver.url)
    await receiver.until(1)
    await other.webhooks.delete({ projectId, webhookId })
    for (const tenure of [one, other])
      await tenure.events.publish({ projectId, type: "test", data: 2 })
    await publishTo(one, sentinel.url)
    await sentinel.until(1)
    expect(receiver.received).toHaveLength(1)
  })
})

describe("an attempt in flight is cancelled", () => {
  const inFlight = async (options: TenureOptions = {}) => {
    const closed: Array<Promise<unknown>> = []
    const receiver = await receiving((response) => void closed.push(once(response, "close")))
    const webhookId = await publishTo(await startTenure(options), receiver.url)
    await receiver.until(1)
    return { webhookId, closed }
  }

  it("even if the notification of the deletion is lost", async () => {
    const { closed } = await inFlight({ webhooks: { timeout: "1 hour" } })
    await Effect.runPromise(execute(`DELETE FROM ${schema}.webhooks`))
    await closed[0]
  })

  it("when another process deletes the webhook", async () => {
    const { closed, webhookId } = await inFlight()
    const { webhooks } = await startTenure()
    await webhooks.delete({ projectId, webhookId })
    await closed[0]
    expect(await webhooks.deliveries({ projectId, webhookId })).toMatchObject([
      { state: "cancelled" },
    ])
  })
})

/** Makes a project with a webhook. */
const withWebhook = Effect.gen(function* () {
  yield* (yield* MembershipStore).createProject(p1, context)
  yield* (yield* WebhookStore).add(Fixture.makeWebhook(p1), 50, context)
})

const publication = Effect.suspend(() =>
  Effect.flatMap(Outbox, (outbox) => outbox.publish(Fixture.event(p1))),
)

it("a publication notifies other processes", async () => {
  const [telling, listening] = [startStores(), startStores()]
  await listening.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* PgClient.PgClient
        const notifications = yield* client.listen(`"${schema}".deliveries`)
        yield* Effect.promise(() => telling.runPromise(Effect.andThen(withWebhook, publication)))
        yield* Queue.take(notifications)
      }),
    ),
  )
})

it("a process is told of its own publication once", () =>
  startStores().runPromise(
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const webhooks = yield* WebhookStore
      yield* withWebhook
      const remove = (webhook = Fixture.makeWebhook(p1)) =>
        Effect.andThen(webhooks.add(webhook, 50, context), webhooks.remove(p1, webhook.id, context))
      // It listens once it hears about a removal, and has heard about all once it hears about the last.
      yield* Effect.repeat(
        Effect.flatMap(
          Effect.suspend(() => remove()),
          () => outbox.nextChange,
        ),
        { until: (change) => change._tag === "Stopped" },
      )
      const last = Fixture.makeWebhook(p1)
      yield* remove(last)
      yield* Effect.repeat(outbox.nextChange, {
        until: (change) => change._tag === "Stopped" && change.webhookId === last.id,
      })
      yield* publication
      expect(yield* outbox.nextChange).toEqual({ _tag: "Due" })
      const another = yield* Effect.timeoutOption(outbox.nextChange, "200 millis")
      expect(another._tag).toBe("None")
    }),
  ))
