import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { describe, expect } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Readiness, Status } from "../../src/health/status.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type StorePorts, type TenureOptions, isReady, tenureLayer } from "../../src/tenure.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"
import { test } from "../support/test.ts"

type Ping = Effect.Effect<void, StoreUnavailable>

type Port = "memberships" | "webhooks" | "apiKeys" | "outbox" | "limits"

/** Answers replacing the memory stores' own. */
interface Answers extends Partial<Record<Port, Ping>> {
  readonly backlog?: ReturnType<Outbox["Service"]["backlog"]>
}

const servicesWith = (answers: Answers, options: TenureOptions = {}) => {
  const stores = Layer.effectContext(
    Effect.map(Effect.context<StorePorts>(), (found) => {
      const withPing = <Service extends { readonly ping: Ping }>(service: Service, ping?: Ping) =>
        ping === undefined ? service : { ...service, ping }
      const { apiKeys, backlog, limits, memberships, outbox, webhooks } = answers
      const own = Context.get(found, Outbox)
      const told = backlog === undefined ? own : { ...own, backlog: () => backlog }
      return found.pipe(
        Context.add(MembershipStore, withPing(Context.get(found, MembershipStore), memberships)),
        Context.add(WebhookStore, withPing(Context.get(found, WebhookStore), webhooks)),
        Context.add(ApiKeyStore, withPing(Context.get(found, ApiKeyStore), apiKeys)),
        Context.add(Outbox, withPing(told, outbox)),
        Context.add(RateLimitStore, withPing(Context.get(found, RateLimitStore), limits)),
      )
    }),
  )
  return tenureLayer({ expiry: false, ...options }).pipe(
    Layer.provide(Layer.provide(stores, memory())),
  )
}

/** Returns whether the stores are ready, and each store's answer. */
const readyWith = (answers: Answers, options: TenureOptions = {}) =>
  Effect.all([isReady, Readiness.use(({ stores }) => stores)], { concurrency: 2 }).pipe(
    Effect.provide(servicesWith(answers, options)),
  )

const down: Ping = Effect.fail(new StoreUnavailable({ cause: "down" }))
const all = {
  memberships: true,
  webhooks: true,
  apiKeys: true,
  deliveries: true,
  rateLimits: true,
}

describe("readiness", () => {
  test("holds while every store answers", function* () {
    expect(yield* readyWith({})).toEqual([true, all])
  })

  test.each([
    ["memberships", "memberships"],
    ["webhooks", "webhooks"],
    ["apiKeys", "apiKeys"],
    ["outbox", "deliveries"],
  ])(
    "does not hold while the store of %s does not answer, which is named",
    function* ([port, name]) {
      for (const ping of [down, Effect.die("a defect")]) {
        expect(yield* readyWith({ [port]: ping })).toEqual([false, { ...all, [name]: false }])
      }
    },
  )

  test.each([
    ["local", true],
    ["open", true],
    ["closed", false],
  ])(
    "without the limits' store and with onStoreFailure %j is %j",
    function* ([onStoreFailure, isHeld]) {
      const options = { rateLimits: { onStoreFailure } }
      const named = { ...all, rateLimits: false }
      for (const limits of [down, Effect.die("a defect")]) {
        expect(yield* readyWith({ limits }, options)).toEqual([isHeld, named])
      }
    },
  )

  test("asks ports with one ping once", function* () {
    let pings = 0
    const ping = Effect.sync(() => void pings++)
    const answers = { memberships: ping, webhooks: ping, apiKeys: ping, outbox: ping }
    yield* Effect.provide(isReady, servicesWith(answers))
    expect(pings).toBe(1)
  })

  test("does not wait longer than 5 seconds for a store, whatever the others take", function* () {
    const fiber = yield* Effect.forkChild(readyWith({ webhooks: Effect.never }))
    yield* TestClock.adjust("5 seconds")
    expect(yield* Fiber.join(fiber)).toEqual([false, { ...all, webhooks: false }])
  })
})

describe("the status", () => {
  const reportWith = (backlog: Answers["backlog"]) =>
    Status.use(({ report }) => report).pipe(
      Effect.provide(servicesWith(backlog === undefined ? {} : { backlog })),
    )

  test("has what is left to deliver", function* () {
    const backlog = {
      waiting: 3,
      dueForMillis: 1500,
      lateForMillis: undefined,
      failedDeliveries: 2,
      disabledWebhooks: 1,
    }
    const report = yield* reportWith(Effect.succeed(backlog))
    expect(report).toMatchObject({ backlog, suspendedKeys: [] })
  })

  test.each([
    Effect.fail(new StoreUnavailable({ cause: "down" })),
    Effect.die("a defect"),
    Effect.never,
  ])("has the rest if the store of deliveries does not answer", function* (backlog) {
    const fiber = yield* Effect.forkChild(reportWith(backlog))
    yield* TestClock.adjust("5 seconds")
    const report = yield* Fiber.join(fiber)
    expect(report.backlog).toBeUndefined()
    expect(report).toMatchObject({ webhooksNeedingAttention: [], stores: { memberships: true } })
  })
})
