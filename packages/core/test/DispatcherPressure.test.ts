import { describe, expect, it } from "@effect/vitest"
import * as AddressPolicy from "@tenure/core/AddressPolicy"
import { Dispatcher } from "@tenure/core/Dispatcher"
import { Events } from "@tenure/core/Events"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import { Webhooks } from "@tenure/core/Webhooks"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  projectId,
  status,
  scripted,
  noFaults,
  storesWith,
  dispatching,
  url,
  otherUrl,
  addWebhook,
  publish,
  settled,
  pass,
  deliveriesOf,
} from "./dispatching.ts"

describe("a store that fails", () => {
  const outages = [
    ["is unavailable", Effect.fail(new StoreUnavailable({ cause: "down" }))],
    ["has a bug", Effect.die("a bug")],
  ] as const

  it.effect.each(outages)("and %s is asked again a second later", ([_name, fault]) => {
    const faults = noFaults()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          faults.claim = fault
          yield* publish
          yield* pass("5 seconds")
          expect(sent).toEqual([])
          faults.claim = Effect.void
          yield* pass("1 second")
          expect(sent).toHaveLength(1)
        }),
      {},
      storesWith(faults),
    )
  })

  it.effect.each(outages)("and %s is watched again a second later", ([_name, fault]) => {
    const faults = noFaults()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          faults.changes = fault
          yield* publish
          yield* settled
          yield* publish
          faults.changes = Effect.void
          yield* pass("1 second")
          expect(sent).toHaveLength(2)
        }),
      {},
      storesWith(faults),
    )
  })

  it.effect("is told of an attempt as soon as it can be, without another attempt", () => {
    const faults = noFaults()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          faults.settle = Effect.fail(new StoreUnavailable({ cause: "down" }))
          yield* publish
          yield* pass("10 seconds")
          faults.settle = Effect.void
          yield* pass("1 second")
          expect((yield* deliveriesOf(webhook))[0]?.state).toBe("delivered")
          yield* pass("1 hour")
          expect(sent).toHaveLength(1)
        }),
      {},
      storesWith(faults),
    )
  })

  it.effect("for longer than a lease leads to another attempt: none is lost", () => {
    const faults = noFaults()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          faults.settle = Effect.fail(new StoreUnavailable({ cause: "down" }))
          yield* publish
          yield* pass("29 seconds")
          expect(sent).toHaveLength(1)
          faults.settle = Effect.void
          yield* pass("2 seconds")
          expect(sent).toHaveLength(2)
          expect((yield* deliveriesOf(webhook))[0]?.state).toBe("delivered")
        }),
      {},
      storesWith(faults),
    )
  })
})

describe("with nothing due", () => {
  it.effect("the outbox is not asked, until something is published", () => {
    const faults = noFaults()
    let asked = 0
    faults.claim = Effect.sync(() => void asked++)
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* pass("1 minute")
          const before = asked
          yield* pass("1 hour")
          expect(asked).toBe(before)
          yield* publish
          yield* settled
          expect(sent).toHaveLength(1)
        }),
      {},
      storesWith(faults),
    )
  })
})

describe("when the dispatcher ends", () => {
  it.effect("what is in flight is aborted and given back, to be claimed by another at once", () =>
    Effect.gen(function* () {
      const { aborted, layer, sent } = scripted({ [url]: () => Effect.never })
      yield* Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(projectId)
        const dispatcher = Layer.provide(Dispatcher.layer(), layer)
        const webhooks = Layer.mergeAll(Webhooks.layer(), Events.layer).pipe(
          Layer.provide(dispatcher),
          Layer.provide(AddressPolicy.AddressPolicy.layer()),
        )
        yield* Effect.gen(function* () {
          yield* addWebhook()
          yield* Effect.forEach(Array.from({ length: 3 }), () => publish)
          yield* settled
        }).pipe(Effect.provide(webhooks))
        expect([sent.length, aborted.length]).toEqual([3, 3])
        const outbox = yield* Outbox
        const { claims } = yield* outbox.claim({ limit: 10, perWebhook: 4, leaseMillis: 1000 })
        expect(claims.map(({ attempt }) => attempt)).toEqual([1, 1, 1])
      }).pipe(Effect.provide(memory()))
    }),
  )
})

describe("a webhook that does nothing but fail", () => {
  it.effect("is tried now and then after ten attempts, and goes on at once when it is well", () => {
    let isWell = false
    return dispatching({ [url]: () => status(isWell ? 200 : 500) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* Effect.forEach(Array.from({ length: 100 }), () => publish)
        yield* settled
        // Ten, and those claimed before the tenth had failed.
        expect(sent.length).toBeLessThanOrEqual(16)
        const before = sent.length
        yield* pass("10 seconds")
        expect(sent.length - before).toBeLessThan(10)
        isWell = true
        yield* pass("1 minute")
        expect(sent.length).toBeGreaterThan(100)
      }),
    )
  })

  it.effect("is disabled after five days, and announced to the others and to the host", () => {
    const told: Array<unknown> = []
    return dispatching(
      { [url]: () => status(500) },
      ({ sent }) =>
        Effect.gen(function* () {
          const { id } = yield* addWebhook()
          yield* addWebhook(otherUrl)
          yield* publish
          yield* pass("4 days")
          yield* publish
          yield* pass("23 hours")
          expect((yield* (yield* Webhooks).list(projectId))[0]?.disabledAt).toBeUndefined()
          yield* pass("1 day")
          const [webhook] = yield* (yield* Webhooks).list(projectId)
          expect(webhook?.disabledAt).toEqual(expect.any(Number))
          expect(told).toEqual([{ projectId, webhookId: id }])
          const announcements = sent.filter(({ body }) => body.includes("webhook.disabled"))
          expect(announcements.map((request) => request.url)).toEqual([otherUrl])
          expect(JSON.parse(announcements[0]?.body ?? "")).toMatchObject({
            type: "webhook.disabled",
            data: { project_id: projectId, webhook_id: id, reason: "failing" },
          })
          const before = sent.filter((request) => request.url === url).length
          yield* publish
          yield* pass("5 days")
          expect(sent.filter((request) => request.url === url)).toHaveLength(before)
        }),
      { onDisabled: (webhook) => void told.push(webhook) },
    )
  })
})

describe("fairness", () => {
  it.effect("a webhook has at most four attempts in flight", () =>
    dispatching({ [url]: () => Effect.never }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* Effect.forEach(Array.from({ length: 20 }), () => publish)
        yield* settled
        expect(sent).toHaveLength(4)
        yield* pass("16 seconds")
        expect(sent).toHaveLength(8)
      }),
    ),
  )

  it.effect("a receiver that hangs holds up no other", () =>
    dispatching({ [url]: () => Effect.never }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook(url)
        yield* addWebhook(otherUrl)
        yield* Effect.forEach(Array.from({ length: 50 }), () => publish)
        yield* settled
        expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(50)
      }),
    ),
  )

  it.effect("a thousand receivers that hang hold up none that answers", () => {
    const hanging = Array.from({ length: 1000 }, (_, index) => `https://hanging.example/${index}`)
    return dispatching(
      Object.fromEntries(hanging.map((one) => [one, () => Effect.never])),
      ({ sent }) =>
        Effect.gen(function* () {
          yield* Effect.forEach(hanging, addWebhook)
          yield* Effect.forEach(Array.from({ length: 8 }), () => publish)
          yield* addWebhook(otherUrl)
          yield* Effect.forEach(Array.from({ length: 20 }), () => publish)
          yield* settled
          expect(sent.filter((request) => request.url === otherUrl)).toHaveLength(20)
          expect(sent.length).toBeGreaterThanOrEqual(1020)
        }),
      {},
      memory(),
      { maxPerProject: 2000 },
    )
  })

  it.effect("no more attempts are in flight than the bound over all", () =>
    dispatching(
      { [url]: () => Effect.never, [otherUrl]: () => Effect.never },
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook(url)
          yield* addWebhook(otherUrl)
          yield* Effect.forEach(Array.from({ length: 5 }), () => publish)
          yield* settled
          expect(sent).toHaveLength(3)
        }),
      { maxInFlight: 3 },
    ),
  )
})
