import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Readiness } from "../../src/health/status.ts"
import { ApiKeyStore } from "../../src/keys/store.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { type StorePorts, type TenureOptions, isReady, tenureLayer } from "../../src/tenure.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"

type Ping = Effect.Effect<void, StoreUnavailable>

type Port = "memberships" | "webhooks" | "apiKeys" | "outbox" | "limits"

/** Memory stores with the pings of a test. */
const storesWith = (pings: Partial<Record<Port, Ping>>) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const { apiKeys, limits, memberships, outbox, webhooks } = pings
      const found = yield* Effect.context<StorePorts>()
      const withPing = <Service extends { readonly ping: Ping }>(service: Service, ping?: Ping) =>
        ping === undefined ? service : { ...service, ping }
      return found.pipe(
        Context.add(MembershipStore, withPing(Context.get(found, MembershipStore), memberships)),
        Context.add(WebhookStore, withPing(Context.get(found, WebhookStore), webhooks)),
        Context.add(ApiKeyStore, withPing(Context.get(found, ApiKeyStore), apiKeys)),
        Context.add(Outbox, withPing(Context.get(found, Outbox), outbox)),
        Context.add(RateLimitStore, withPing(Context.get(found, RateLimitStore), limits)),
      )
    }),
  ).pipe(Layer.provide(memory()))

const readyWith = (pings: Partial<Record<Port, Ping>>, options: TenureOptions = {}) =>
  Effect.provide(
    isReady,
    Layer.provide(tenureLayer({ expiry: false, ...options }), storesWith(pings)),
  )

const storesAnswering = (pings: Partial<Record<Port, Ping>>) =>
  Readiness.use(({ stores }) => stores).pipe(
    Effect.provide(Layer.provide(tenureLayer({ expiry: false }), storesWith(pings))),
  )

const down: Ping = Effect.fail(new StoreUnavailable({ cause: "down" }))

describe("readiness", () => {
  it.effect("holds while every store answers", () =>
    Effect.gen(function* () {
      expect(yield* readyWith({})).toBe(true)
    }),
  )

  it.effect.each(["memberships", "webhooks", "apiKeys", "outbox"] as const)(
    "does not hold while the store of %s does not answer",
    (port) =>
      Effect.gen(function* () {
        expect(yield* readyWith({ [port]: down })).toBe(false)
        expect(yield* readyWith({ [port]: Effect.die("a defect") })).toBe(false)
      }),
  )

  it.effect.each([
    ["local", true],
    ["open", true],
    ["closed", false],
  ] as const)(
    "without the limits' store and with onStoreFailure %j is %j",
    ([onStoreFailure, ready]) =>
      Effect.gen(function* () {
        const options = { rateLimits: { onStoreFailure } }
        expect(yield* readyWith({ limits: down }, options)).toBe(ready)
      }),
  )

  it.effect("asks ports with one ping once", () =>
    Effect.gen(function* () {
      let pings = 0
      const ping = Effect.sync(() => void pings++)
      yield* readyWith({ memberships: ping, webhooks: ping, apiKeys: ping, outbox: ping })
      expect(pings).toBe(1)
    }),
  )

  it.effect("does not wait longer than 5 seconds for a store", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(readyWith({ webhooks: Effect.never }))
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(fiber)).toBe(false)
    }),
  )
})

describe("each store", () => {
  const all = {
    memberships: true,
    webhooks: true,
    apiKeys: true,
    deliveries: true,
    rateLimits: true,
  }

  it.effect.each([
    ["memberships", "memberships"],
    ["webhooks", "webhooks"],
    ["apiKeys", "apiKeys"],
    ["outbox", "deliveries"],
    ["limits", "rateLimits"],
  ] as const)("answers or not: %s", ([port, name]) =>
    Effect.gen(function* () {
      expect(yield* storesAnswering({})).toEqual(all)
      for (const ping of [down, Effect.die("a defect")]) {
        expect(yield* storesAnswering({ [port]: ping })).toEqual({ ...all, [name]: false })
      }
    }),
  )

  it.effect("has 5 seconds for it, whatever the others take", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(storesAnswering({ webhooks: Effect.never }))
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(fiber)).toEqual({ ...all, webhooks: false })
    }),
  )
})
