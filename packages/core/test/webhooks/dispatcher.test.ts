/** Deliveries from an event to the last attempt, and reasons for an earlier end. */

import { inspect } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Result from "effect/Result"
import { hostOrigin } from "../../src/base/change-context.ts"
import { type Event, hooksLayer } from "../../src/events/event.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { StoredSecret } from "../../src/webhooks/secrets.ts"
import { verifySignature } from "../../src/webhooks/signature.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"
import { TransportError } from "../../src/webhooks/transport.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  type Receiver,
  addWebhook,
  addWebhookTo,
  deliveriesOf,
  dispatching,
  hour,
  otherUrl,
  pass,
  projectId,
  publish,
  publishMany,
  settled,
  statesOf,
  status,
  test,
  unavailable,
  url,
} from "./dispatching.ts"

describe("a delivery", () => {
  test("is sent immediately, signed, with the id of the event", function* ({ sent }) {
    const { secret } = yield* addWebhook()
    const eventId = yield* publish
    yield* settled
    expect(sent).toMatchObject([
      {
        url,
        headers: {
          "content-type": "application/json",
          "webhook-id": eventId,
          "webhook-timestamp": "1795000000",
        },
      },
    ])
    const now = yield* Clock.currentTimeMillis
    const { body = "", headers = {} } = sent[0] ?? {}
    expect(Result.isSuccess(verifySignature({ headers, body, now }, [secret]))).toBe(true)
    expect(JSON.parse(body)).toEqual({
      type: "payment.completed",
      timestamp: "2026-11-18T11:06:40.000Z",
      data: { amount: 5 },
    })
  })

  test("that fails is retried on schedule, with the same id and body", function* ({ sent }) {
    const webhook = yield* addWebhook((n) => status(n < 4 ? 500 : 204))
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
  })

  const firstly =
    (first: Effect.Effect<never>): Receiver =>
    (n) =>
      n === 1 ? first : status(200)
  const half =
    (code: number): Receiver =>
    (_, onResponse) => {
      onResponse(() => ({ status: code, retryAfter: undefined, body: "half" }))
      return Effect.never
    }

  const timedOut = { _tag: "Failed", reason: "Timeout" }
  const answered = (code: number) => ({ _tag: "Answered", status: code, body: "half" })

  it.effect.each<readonly [string, Receiver, string, object, number]>([
    ["is aborted at the timeout, and retried", firstly(Effect.never), "delivered", timedOut, 2],
    ["is delivered if only the body misses the timeout", half(200), "delivered", answered(200), 1],
    ["fails by a 410 whose body misses the timeout", half(410), "failed", answered(410), 1],
  ])("%s", ([_name, receiver, state, result, count]) =>
    dispatching(function* ({ aborted, sent }) {
      const webhook = yield* addWebhook(receiver)
      yield* publish
      yield* pass("14999 millis")
      expect(aborted).toEqual([])
      yield* pass("2 millis")
      expect(aborted).toEqual([url])
      yield* pass("1 hour")
      expect(sent).toHaveLength(count)
      const [delivery] = yield* deliveriesOf(webhook)
      expect(delivery?.state).toBe(state)
      expect(delivery?.attempts[0]).toMatchObject({ result, durationMillis: 15_000 })
    }),
  )

  test("is retried after a defect of the transport", function* ({ sent }) {
    const webhook = yield* addWebhook(firstly(Effect.die("a bug")))
    yield* publish
    yield* pass("6 seconds")
    expect(sent).toHaveLength(2)
    const [delivery] = yield* deliveriesOf(webhook)
    expect(delivery?.attempts[0]?.result).toEqual({ _tag: "Failed", reason: "Defect" })
  })

  test("waits until the date in Retry-After, as does its webhook", function* ({ sent }) {
    yield* addWebhook((n) => status(n === 1 ? 429 : 200, "Wed, 18 Nov 2026 11:08:40 GMT"))
    yield* addWebhookTo(otherUrl)
    yield* publish
    yield* settled
    yield* publish
    yield* pass("119 seconds")
    expect(sent.map((request) => request.url).toSorted()).toEqual([url, otherUrl, otherUrl])
    yield* pass("3 minutes")
    expect(sent).toHaveLength(5)
  })
})

describe("deleting a webhook", () => {
  it.effect("that fails because the store is unavailable holds up no delivery", () => {
    const stores = Layer.effect(
      WebhookStore,
      Effect.map(WebhookStore, (store) => ({ ...store, remove: () => unavailable })),
    ).pipe(Layer.provideMerge(memory()))
    return dispatching(
      function* ({ aborted, disruptions, sent }) {
        const webhook = yield* addWebhook((n) => (n === 1 ? Effect.never : status(200)))
        yield* publish
        yield* settled
        disruptions.settle = unavailable
        yield* Effect.flip((yield* Webhooks).delete({ projectId, webhookId: webhook.id }))
        yield* pass("3 seconds")
        expect(aborted).toEqual([url])
        disruptions.settle = Effect.void
        yield* pass("1 second")
        expect(sent).toHaveLength(2)
      },
      { stores },
    )
  })

  test("cancels deliveries that are being claimed", function* ({ disruptions, sent }) {
    const gate = Latch.makeUnsafe()
    const webhook = yield* addWebhook()
    disruptions.claimed = gate.await
    yield* publish
    yield* settled
    yield* (yield* Webhooks).delete({ projectId, webhookId: webhook.id })
    yield* gate.open
    yield* pass("1 minute")
    expect(sent).toEqual([])
    expect(yield* statesOf(webhook)).toEqual(["cancelled"])
  })
})

test("disabling a webhook aborts attempts, enabling sends what waits", function* ({
  aborted,
  sent,
}) {
  const webhooks = yield* Webhooks
  const { id: webhookId } = yield* addWebhook((n) => (n <= 4 ? Effect.never : status(200)))
  yield* publishMany(6)
  yield* settled
  const disabled = yield* webhooks.update({ projectId, webhookId, disabled: true })
  expect(disabled.disabled?.by).toBe("request")
  expect(aborted).toEqual([url, url, url, url])
  yield* publish
  yield* pass("5 days")
  expect(sent).toHaveLength(4)
  yield* webhooks.update({ projectId, webhookId, disabled: false })
  yield* pass("1 second")
  const ids = sent.map(({ headers }) => headers["webhook-id"])
  expect([ids.length, new Set(ids).size]).toEqual([10, 6])
})

test("a ping is sent to one webhook only", function* ({ sent }) {
  const webhook = yield* addWebhook()
  yield* addWebhookTo(otherUrl)
  const eventId = yield* (yield* Webhooks).ping({ projectId, webhookId: webhook.id })
  yield* settled
  expect(sent).toMatchObject([{ url, headers: { "webhook-id": eventId } }])
  expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({
    type: "webhook.ping",
    data: { webhook_id: webhook.id },
  })
})

type Line = Readonly<Record<string, unknown>>

/** Collects log lines. */
const logging = (lines: Array<Line>) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      const annotations = fiber.getRef(References.CurrentLogAnnotations)
      lines.push({ message: String(message), ...annotations })
    }),
  ])

/** Collects the events passed to the host. */
const telling = (told: Array<Event>) => hooksLayer({ onEvent: (event) => void told.push(event) })

it.effect("no attempt logs a secret of its webhook, however it ends", () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ cause, fiber, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    lines.push(inspect([message, cause, annotations], { depth: Infinity }))
  })
  const answers: ReadonlyArray<ReturnType<Receiver>> = [
    Effect.die(new Error("a bug")),
    Effect.fail(new TransportError({ reason: "ECONNRESET" })),
    Effect.never,
    status(500),
  ]
  // Signing uses WebCrypto, and the test clock does not wait for it.
  const logged = (text: string) =>
    Effect.repeat(pass("5 seconds"), { until: () => lines.join().includes(text) })
  return dispatching(
    function* ({ sent }) {
      const webhooks = yield* Webhooks
      const store = yield* WebhookStore
      const webhook = yield* addWebhook((n) => answers[n - 1] ?? status(410))
      const ref = { projectId, webhookId: webhook.id }
      yield* webhooks.update({ ...ref, headers: { authorization: "Bearer hidden" } })
      yield* webhooks.addSigningKey(ref)
      const { secret } = yield* webhooks.rotateSecret(ref)
      const { signingKey = "" } = yield* store.find(projectId, webhook.id)
      yield* publish
      yield* logged("A webhook was disabled")
      expect(sent).toHaveLength(5)
      yield* webhooks.enable(ref)
      const damaged = { secret: StoredSecret("whsec_damaged"), previousUntil: 0 }
      yield* store.rotateSecret(projectId, webhook.id, damaged, { origin: hostOrigin, at: 0 })
      yield* publish
      yield* logged("cannot be used")
      const secrets = [webhook.secret, secret, signingKey, damaged.secret, "_hidden"]
      for (const one of secrets) expect(lines.join()).not.toContain(one.replace(/^[^_]*_/, ""))
    },
    { retrySchedule: ["1 second", "1 second", "1 second", "1 second"] },
  ).pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "All"),
  )
})

describe("the last attempt", () => {
  it.effect("of a delivery is that after the last delay of the schedule, and is logged", () => {
    const lines: Array<Line> = []
    return dispatching(
      function* ({ sent }) {
        const webhook = yield* addWebhook(() => status(500))
        yield* publish
        yield* pass("1 minute")
        expect(sent).toHaveLength(3)
        expect(yield* statesOf(webhook)).toEqual(["failed"])
        expect(lines).toEqual([
          {
            message: "A delivery was given up",
            project_id: projectId,
            webhook_id: webhook.id,
            event_id: expect.any(String),
            attempts: 3,
            status: 500,
          },
        ])
      },
      { retrySchedule: ["1 second", "2 seconds"] },
    ).pipe(Effect.provide(logging(lines)))
  })

  it.effect("for a webhook is logged once, whatever else is in flight", () => {
    const lines: Array<Line> = []
    const told: Array<Event> = []
    return dispatching(function* () {
      yield* addWebhook(() => Effect.delay(status(410), "1 second"))
      yield* publishMany(4)
      yield* pass("1 minute")
      const messages = lines.map(({ message }) => message)
      expect(messages.filter((message) => message === "A webhook was disabled")).toHaveLength(1)
      expect(messages.filter((message) => message === "A delivery was given up")).toHaveLength(3)
      expect(told.filter(({ type }) => type === "webhook.disabled")).toHaveLength(1)
    }).pipe(Effect.provide(logging(lines)), Effect.provide(telling(told)))
  })
})

it.effect("a failing webhook is announced at 50, 90 and 100 % of five days, and disabled", () => {
  const day = 24 * hour
  const told: Array<Event> = []
  return dispatching(function* ({ sent }) {
    const webhooks = yield* Webhooks
    const { id: webhookId } = yield* addWebhook(() => status(503))
    yield* webhooks.create({
      projectId,
      url: otherUrl,
      eventTypes: ["webhook.failing", "webhook.disabled"],
    })
    yield* Effect.replicateEffect(Effect.andThen(publish, pass("1 hour")), 6 * 24)
    const run = told
      .filter(({ type }) => type.startsWith("webhook."))
      .map((event) => {
        const { data, timestamp, type } = JSON.parse(event.body)
        return { type, data, at: Date.parse(timestamp), id: event.id }
      })
    expect(run.map(({ data, type }) => [type, data.percent ?? data.reason])).toEqual([
      ["webhook.failing", 50],
      ["webhook.failing", 90],
      ["webhook.failing", 100],
      ["webhook.disabled", "failing"],
    ])
    const since = Date.parse(run[0]?.data.failing_since)
    for (const { at, data, type } of run) {
      expect(data).toMatchObject({
        project_id: projectId,
        webhook_id: webhookId,
        last_attempt: { status: 503, error: null },
      })
      if (type === "webhook.disabled") continue
      expect(data).toEqual({
        project_id: projectId,
        webhook_id: webhookId,
        percent: data.percent,
        failing_since: new Date(since).toISOString(),
        disables_at: new Date(since + 5 * day).toISOString(),
        failures: sent.filter((one) => one.url === url && one.at <= at).length,
        last_attempt: expect.anything(),
      })
      const late = at - since - (data.percent / 100) * 5 * day
      expect(late).toBeGreaterThanOrEqual(0)
      expect(late).toBeLessThan(2 * hour)
    }
    // The ids order them in the feed.
    expect(run.map(({ id }) => id).toSorted()).toEqual(run.map(({ id }) => id))
    expect(
      sent.filter((one) => one.url === otherUrl).map(({ body }) => JSON.parse(body).data),
    ).toEqual(run.map(({ data }) => data))
    const disabledAt = run.at(-1)?.at ?? 0
    expect(yield* webhooks.find({ projectId, webhookId })).toMatchObject({
      disabled: { at: disabledAt, by: "failures" },
    })
    expect(sent.filter((one) => one.url === url && one.at > disabledAt)).toEqual([])
  }).pipe(Effect.provide(telling(told)))
})

describe("if the store", () => {
  it.effect.each([
    ["is unavailable", unavailable],
    ["has a bug", Effect.die("a bug")],
  ] as const)(
    "%s, the dispatcher claims, and watches for changes, again after a second",
    ([_name, disruption]) =>
      dispatching(function* ({ disruptions, sent }) {
        yield* addWebhook()
        disruptions.claim = disruption
        yield* publish
        yield* pass("5 seconds")
        expect(sent).toEqual([])
        disruptions.claim = Effect.void
        yield* pass("1 second")
        expect(sent).toHaveLength(1)
        disruptions.changes = disruption
        yield* publish
        yield* settled
        yield* publish
        disruptions.changes = Effect.void
        yield* pass("1 second")
        expect(sent).toHaveLength(3)
      }),
  )

  it.effect.each([
    ["for a short time, an attempt is recorded afterwards and not repeated", 10, 1, 1],
    ["for longer than a lease, an attempt is repeated", 29, 2, 2],
  ] as const)("is unavailable %s", ([_name, seconds, more, attempts]) =>
    dispatching(function* ({ disruptions, sent }) {
      const webhook = yield* addWebhook()
      disruptions.settle = unavailable
      yield* publish
      yield* pass(seconds * 1000)
      expect(sent).toHaveLength(1)
      disruptions.settle = Effect.void
      yield* pass(more * 1000)
      expect(yield* statesOf(webhook)).toEqual(["delivered"])
      yield* pass("1 hour")
      expect(sent).toHaveLength(attempts)
    }),
  )

  it.effect("returns nothing and says that more is due at once, the dispatcher pauses", () => {
    let nextDueMillis: number | undefined
    const stores = Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => ({
        ...outbox,
        claim: () => Effect.sync(() => ({ claims: [], nextDueMillis, keptBack: [] })),
      })),
    ).pipe(Layer.provideMerge(memory()))
    return dispatching(
      function* ({ calls }) {
        yield* addWebhook()
        nextDueMillis = 0
        yield* publish
        yield* pass("1 second")
        expect(calls.claim).toBeGreaterThan(10)
        expect(calls.claim).toBeLessThan(30)
      },
      { stores },
    )
  })
})
