import { describe, expect, it } from "@effect/vitest"
import * as AddressPolicy from "@tenure/core/AddressPolicy"
import { type Options, Dispatcher } from "@tenure/core/Dispatcher"
import { Events } from "@tenure/core/Events"
import type { InvalidInput } from "@tenure/core/InvalidInput"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import type { Stores } from "@tenure/core/Tenure"
import type { WebhookId } from "@tenure/core/Webhook"
import { type Options as WebhookOptions, Webhooks } from "@tenure/core/Webhooks"
import * as WebhookSignature from "@tenure/core/WebhookSignature"
import {
  type Answer,
  type Outgoing,
  type TransportError,
  WebhookTransport,
} from "@tenure/core/WebhookTransport"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { TestClock } from "effect/testing"

const projectId = ProjectId("p1")
const hour = 3_600_000

interface Sent extends Outgoing {
  readonly at: number
}

/** What a receiver does with the n-th request it gets, from 1. */
type Receiver = (n: number) => Effect.Effect<Answer, TransportError>

const status = (code: number, retryAfter?: string): Effect.Effect<Answer> =>
  Effect.succeed({ status: code, retryAfter, body: `answer ${code}` })

/** A transport to receivers by URL, which notes what is sent and what is aborted. */
const scripted = (receivers: Readonly<Record<string, Receiver>>) => {
  const sent: Array<Sent> = []
  const aborted: Array<string> = []
  const layer = Layer.succeed(WebhookTransport, {
    send: (request) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) => {
        sent.push({ ...request, at })
        const n = sent.filter(({ url }) => url === request.url).length
        const receiver = receivers[request.url] ?? (() => status(200))
        return receiver(n).pipe(
          Effect.onInterrupt(() => Effect.sync(() => aborted.push(request.url))),
        )
      }),
  })
  return { sent, aborted, layer }
}

type Fault = Effect.Effect<void, StoreUnavailable>

/** What happens before the outbox does its work, to be changed in the middle of a test. */
interface Faults {
  claim: Fault
  /** Happens after a claim. */
  claimed: Fault
  settle: Fault
  changes: Fault
}

const noFaults = (): Faults => ({
  claim: Effect.void,
  claimed: Effect.void,
  settle: Effect.void,
  changes: Effect.void,
})

/** Memory stores with an outbox in which things happen. */
const storesWith = (faults: Faults) =>
  Layer.provideMerge(
    Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => {
        const after = <A, E>(name: keyof Faults, work: Effect.Effect<A, E>) =>
          Effect.andThen(
            Effect.suspend(() => faults[name]),
            work,
          )
        return {
          ...outbox,
          claim: (options) =>
            Effect.tap(after("claim", outbox.claim(options)), () => faults.claimed),
          settle: (claim, settlement) => after("settle", outbox.settle(claim, settlement)),
          changes: after("changes", outbox.changes),
        }
      }),
    ),
    memory(),
  )

/** Runs a test with a project, a dispatcher and scripted receivers. */
const dispatching = <A, E>(
  receivers: Readonly<Record<string, Receiver>>,
  test: (
    transport: Omit<ReturnType<typeof scripted>, "layer">,
  ) => Effect.Effect<A, E, Webhooks | Events | Outbox>,
  options: Options = {},
  stores: Layer.Layer<Stores, InvalidInput> = memory(),
  webhooks: WebhookOptions = {},
) => {
  const transport = scripted(receivers)
  const services = Layer.mergeAll(Webhooks.layer(webhooks), Events.layer).pipe(
    Layer.provide(Dispatcher.layer(options)),
    Layer.provide(transport.layer),
    Layer.provide(AddressPolicy.AddressPolicy.layer()),
    Layer.provideMerge(stores),
  )
  return Effect.gen(function* () {
    yield* TestClock.setTime(1_795_000_000_000)
    yield* (yield* MembershipStore).createProject(projectId)
    return yield* test(transport)
  }).pipe(Effect.provide(services))
}

const url = "https://receiver.example/a"
const otherUrl = "https://receiver.example/b"

const addWebhook = (to = url) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create({ projectId, url: to }))

const publish = Effect.flatMap(Events, (events) =>
  events.publish({ projectId, type: "payment.completed", data: { amount: 5 } }),
)

/** Lets fibers run until they wait for time to pass, or for nothing. */
const settled = Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })

/** Lets time pass, after all that is due has been done. */
const pass = (duration: Duration.Input) =>
  Effect.andThen(settled, Effect.andThen(TestClock.adjust(duration), settled))

const deliveriesOf = ({ id }: { readonly id: WebhookId }) =>
  Effect.flatMap(Outbox, (outbox) =>
    outbox.deliveries({ projectId, webhookId: id }, { limit: 100 }),
  )

describe("a delivery", () => {
  it.effect("is sent at once, signed, with the same id as the event", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const { secret } = yield* addWebhook()
        const eventId = yield* publish
        yield* settled
        expect(sent).toHaveLength(1)
        const [request] = sent
        expect(request).toMatchObject({
          url,
          headers: {
            "content-type": "application/json",
            "webhook-id": eventId,
            "webhook-timestamp": "1795000000",
          },
        })
        const now = yield* Clock.currentTimeMillis
        const { body = "", headers = {} } = request ?? {}
        const verdict = WebhookSignature.verify({ headers, body, now }, [secret])
        expect(Result.isSuccess(verdict)).toBe(true)
        expect(JSON.parse(body)).toEqual({
          type: "payment.completed",
          timestamp: "2026-11-18T11:06:40.000Z",
          data: { amount: 5 },
        })
      }),
    ),
  )

  it.effect(
    "that fails is retried on schedule, with a new timestamp and the same id and body",
    () =>
      dispatching({ [url]: (n) => status(n < 4 ? 500 : 204) }, ({ sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          yield* publish
          yield* pass("1 hour")
          expect(sent).toHaveLength(4)
          const ids = new Set(sent.map(({ headers }) => headers["webhook-id"]))
          const stamps = new Set(sent.map(({ headers }) => headers["webhook-timestamp"]))
          const bodies = new Set(sent.map(({ body }) => body))
          expect([ids.size, bodies.size, stamps.size]).toEqual([1, 1, 4])
          const pauses = sent.slice(1).map(({ at }, index) => at - (sent[index]?.at ?? 0))
          for (const [index, scheduled] of [5000, 300_000, 1_800_000].entries()) {
            expect(pauses[index]).toBeGreaterThanOrEqual(0.8 * scheduled)
            expect(pauses[index]).toBeLessThanOrEqual(1.2 * scheduled + 2)
          }
          const [delivery] = yield* deliveriesOf(webhook)
          expect(delivery?.state).toBe("delivered")
          expect(delivery?.attempts.map(({ result }) => result)).toEqual(
            [500, 500, 500, 204].map((code) => ({
              _tag: "Answered",
              status: code,
              body: `answer ${code}`,
            })),
          )
        }),
      ),
  )

  it.effect("that keeps failing is given up visibly after the last step of the schedule", () =>
    dispatching({ [url]: () => status(503) }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publish
        yield* pass("5 days")
        expect(sent).toHaveLength(10)
        expect((yield* deliveriesOf(webhook))[0]?.state).toBe("failed")
      }),
    ),
  )

  it.effect.each([301, 302, 400, 404, 500, 600, 199])("answered %d has failed", (code) =>
    dispatching({ [url]: (n) => status(n === 1 ? code : 200) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publish
        yield* pass("10 seconds")
        expect(sent).toHaveLength(2)
      }),
    ),
  )

  it.effect("ends at the deadline, whatever the receiver does", () =>
    dispatching({ [url]: (n) => (n === 1 ? Effect.never : status(200)) }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publish
        yield* pass("14999 millis")
        expect(aborted).toEqual([])
        yield* pass("2 millis")
        expect(aborted).toEqual([url])
        yield* pass("10 seconds")
        expect(sent).toHaveLength(2)
        const [delivery] = yield* deliveriesOf(webhook)
        expect(delivery?.attempts[0]).toMatchObject({
          result: { _tag: "Failed", reason: "Timeout" },
          durationMillis: 15_000,
        })
      }),
    ),
  )

  it.effect("that meets a defect of the transport has failed, like any other", () =>
    dispatching({ [url]: (n) => (n === 1 ? Effect.die("a bug") : status(200)) }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publish
        yield* pass("6 seconds")
        expect(sent).toHaveLength(2)
        const [delivery] = yield* deliveriesOf(webhook)
        expect(delivery?.attempts[0]?.result).toEqual({ _tag: "Failed", reason: "Defect" })
      }),
    ),
  )
})

describe("what the receiver asks for", () => {
  it.effect.each([
    ["120", 120_000],
    ["Wed, 18 Nov 2026 11:08:40 GMT", 120_000],
    ["soon", 5000],
    ["-5", 5000],
    ["99999999", 1_800_000],
  ] as const)("with Retry-After: %s is waited for, within bounds", ([retryAfter, pause]) =>
    dispatching({ [url]: (n) => status(n === 1 ? 503 : 200, retryAfter) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publish
        yield* pass("1 hour")
        const [first, second] = sent
        const waited = (second?.at ?? 0) - (first?.at ?? 0)
        expect(waited).toBeGreaterThanOrEqual(0.8 * pause)
        expect(waited).toBeLessThanOrEqual(1.2 * pause + 2)
      }),
    ),
  )

  it.effect("with Retry-After holds for all that waits for it", () =>
    dispatching({ [url]: (n) => status(n === 1 ? 429 : 200, "120") }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* addWebhook(otherUrl)
        yield* publish
        yield* settled
        yield* publish
        yield* pass("119 seconds")
        expect(sent.map((request) => request.url).toSorted()).toEqual([url, otherUrl, otherUrl])
        yield* pass("3 minutes")
        expect(sent).toHaveLength(5)
      }),
    ),
  )

  it.effect.each([429, 502, 503, 504])("with %d is a moment's rest", (code) =>
    dispatching({ [url]: (n) => status(n === 1 ? code : 200) }, ({ sent }) =>
      Effect.gen(function* () {
        yield* addWebhook()
        yield* publish
        yield* settled
        yield* publish
        yield* pass("999 millis")
        expect(sent).toHaveLength(1)
        yield* pass("1 millis")
        expect(sent).toHaveLength(2)
      }),
    ),
  )

  it.effect("with 410 is to be left alone", () =>
    dispatching({ [url]: () => status(410) }, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publish
        yield* settled
        yield* publish
        yield* pass("5 days")
        expect(sent).toHaveLength(1)
        expect((yield* deliveriesOf(webhook)).map(({ state }) => state)).toEqual(["failed"])
      }),
    ),
  )
})

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

describe("deleting a webhook", () => {
  it.effect("aborts what is in flight and cancels what waits: nothing is sent any more", () =>
    dispatching({ [url]: () => Effect.never }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* Effect.forEach(Array.from({ length: 6 }), () => publish)
        yield* settled
        yield* (yield* Webhooks).delete({ projectId, webhookId: webhook.id })
        expect(aborted).toEqual([url, url, url, url])
        yield* pass("5 days")
        expect(sent).toHaveLength(4)
        const states = (yield* deliveriesOf(webhook)).map(({ state }) => state)
        expect(states).toEqual(Array.from({ length: 6 }, () => "cancelled"))
      }),
    ),
  )

  it.effect("also drops what is being claimed in that moment", () => {
    const faults = noFaults()
    const gate = Latch.makeUnsafe()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          const outbox = yield* Outbox
          const webhook = yield* addWebhook()
          faults.claimed = gate.await
          yield* publish
          yield* settled
          yield* (yield* Webhooks).delete({ projectId, webhookId: webhook.id })
          yield* gate.open
          yield* pass("1 minute")
          expect(sent).toEqual([])
          expect(
            yield* outbox.deliveries({ projectId, webhookId: webhook.id }, { limit: 1 }),
          ).toMatchObject([{ state: "cancelled" }])
        }),
      {},
      storesWith(faults),
    )
  })
})

describe("rotating the secret", () => {
  it.effect("lets receivers with either verify for a day, and with the new one for good", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id, secret } = yield* addWebhook()
        const ids = { projectId, webhookId: id }
        const fresh = yield* webhooks.rotateSecret(ids)
        const verifying = Effect.gen(function* () {
          yield* publish
          yield* settled
          const { body = "", headers = {} } = sent.at(-1) ?? {}
          const now = yield* Clock.currentTimeMillis
          return [secret, fresh].map((one) =>
            Result.isSuccess(WebhookSignature.verify({ headers, body, now }, [one])),
          )
        })
        expect(yield* verifying).toEqual([true, true])
        yield* pass("24 hours")
        expect(yield* verifying).toEqual([false, true])
        const [listed] = yield* webhooks.list(projectId)
        expect(listed?.secret).toBe(fresh)
      }),
    ),
  )
})

describe("a key pair", () => {
  it.effect("signs besides the secret, from when it is asked for", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id, secret } = yield* addWebhook()
        const ids = { projectId, webhookId: id }
        const key = yield* webhooks.verificationKey(ids)
        expect(yield* webhooks.verificationKey(ids)).toBe(key)
        yield* publish
        yield* Effect.repeat(
          Effect.promise(() => new Promise(setImmediate)),
          {
            until: () => sent.length > 0,
          },
        )
        const { body = "", headers = {} } = sent[0] ?? {}
        const notification = { headers, body, now: yield* Clock.currentTimeMillis }
        expect(Result.isSuccess(WebhookSignature.verify(notification, [secret]))).toBe(true)
        const { id: eventId } = yield* WebhookSignature.verifyAsymmetric(notification, [key])
        expect(eventId).toBe(headers["webhook-id"])
      }),
    ),
  )
})

describe("a ping", () => {
  it.effect("goes to one webhook alone", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook(url)
        yield* addWebhook(otherUrl)
        const eventId = yield* (yield* Webhooks).ping({ projectId, webhookId: webhook.id })
        yield* settled
        expect(sent.map((request) => request.url)).toEqual([url])
        expect(sent[0]?.headers["webhook-id"]).toBe(eventId)
        expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({
          type: "webhook.ping",
          data: { webhook_id: webhook.id },
        })
      }),
    ),
  )
})

describe("a schedule of one's own", () => {
  it.effect("is kept to", () =>
    dispatching(
      { [url]: () => status(500) },
      ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publish
          yield* pass(24 * hour)
          expect(sent).toHaveLength(3)
        }),
      { retrySchedule: ["1 second", "2 seconds"] },
    ),
  )
})
