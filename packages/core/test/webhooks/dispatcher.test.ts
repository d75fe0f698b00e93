import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { MembershipStore } from "../../src/memberships/store.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { verifySignature, verifySignatureAsymmetric } from "../../src/webhooks/signature.ts"
import { WebhookStore } from "../../src/webhooks/store.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  addWebhook,
  deliveriesOf,
  dispatching,
  hour,
  noDisruptions,
  otherUrl,
  pass,
  projectId,
  publish,
  publishMany,
  settled,
  status,
  storesWith,
  url,
} from "./dispatching.ts"

describe("a delivery", () => {
  it.effect("is sent immediately, signed, with the id of the event", () =>
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
        const verdict = verifySignature({ headers, body, now }, [secret])
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

  it.effect("fails visibly after the last attempt of the schedule", () =>
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

  it.effect.each([301, 302, 400, 404, 500, 600, 199])(
    "is retried after a response with status %d",
    (code) =>
      dispatching({ [url]: (n) => status(n === 1 ? code : 200) }, ({ sent }) =>
        Effect.gen(function* () {
          yield* addWebhook()
          yield* publish
          yield* pass("10 seconds")
          expect(sent).toHaveLength(2)
        }),
      ),
  )

  it.effect("is aborted at the timeout", () =>
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

  it.effect.each([
    [200, "delivered"],
    [410, "failed"],
  ] as const)("has the status %d if only the body misses the timeout", ([code, state]) =>
    dispatching(
      {
        [url]: (_, onResponse) => {
          onResponse(() => ({ status: code, retryAfter: undefined, body: "half" }))
          return Effect.never
        },
      },
      ({ aborted, sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          yield* publish
          yield* pass("1 hour")
          expect(aborted).toEqual([url])
          expect(sent).toHaveLength(1)
          const [delivery] = yield* deliveriesOf(webhook)
          expect(delivery?.state).toBe(state)
          expect(delivery?.attempts[0]).toMatchObject({
            result: { _tag: "Answered", status: code, body: "half" },
            durationMillis: 15_000,
          })
        }),
    ),
  )

  it.effect("is retried after a defect of the transport", () =>
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

describe("a receiver", () => {
  it.effect.each([
    ["120", 120_000],
    ["Wed, 18 Nov 2026 11:08:40 GMT", 120_000],
    ["soon", 5000],
    ["-5", 5000],
    ["99999999", 1_800_000],
  ] as const)(
    "that sends Retry-After: %s delays the next attempt, within bounds",
    ([retryAfter, pause]) =>
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

  it.effect("that sends Retry-After holds all its deliveries", () =>
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

  it.effect.each([429, 502, 503, 504])("that answers %d is left alone for a second", (code) =>
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

  it.effect("that answers 410 gets nothing more", () =>
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

describe("deleting a webhook", () => {
  it.effect("aborts attempts in flight and cancels waiting deliveries", () =>
    dispatching({ [url]: () => Effect.never }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        const webhook = yield* addWebhook()
        yield* publishMany(6)
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

  it.effect("that fails because the store is unavailable holds up no delivery", () => {
    const disruptions = noDisruptions()
    const unavailable = Effect.fail(new StoreUnavailable({ cause: "a test" }))
    const stores = Layer.effect(
      WebhookStore,
      Effect.map(WebhookStore, (store) => ({ ...store, remove: () => unavailable })),
    ).pipe(Layer.provideMerge(storesWith(disruptions)))
    return dispatching(
      { [url]: (n) => (n === 1 ? Effect.never : status(200)) },
      ({ aborted, sent }) =>
        Effect.gen(function* () {
          const webhook = yield* addWebhook()
          yield* publish
          yield* settled
          disruptions.settle = unavailable
          yield* Effect.flip((yield* Webhooks).delete({ projectId, webhookId: webhook.id }))
          yield* pass("3 seconds")
          expect(aborted).toEqual([url])
          disruptions.settle = Effect.void
          yield* pass("1 second")
          expect(sent).toHaveLength(2)
        }),
      {},
      stores,
    )
  })

  it.effect("cancels deliveries that are being claimed", () => {
    const disruptions = noDisruptions()
    const gate = Latch.makeUnsafe()
    return dispatching(
      {},
      ({ sent }) =>
        Effect.gen(function* () {
          const outbox = yield* Outbox
          const webhook = yield* addWebhook()
          disruptions.claimed = gate.await
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
      storesWith(disruptions),
    )
  })
})

describe("disabling a webhook by request", () => {
  it.effect("aborts attempts in flight, and goes on with all that waits once it is enabled", () =>
    dispatching({ [url]: (n) => (n <= 4 ? Effect.never : status(200)) }, ({ aborted, sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id: webhookId } = yield* addWebhook()
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
        const history = yield* (yield* MembershipStore).history(projectId, {
          userId: undefined,
          limit: 2,
        })
        expect(history.map(({ changes }) => changes)).toEqual([
          [{ field: "disabledBy", from: "request", to: null }],
          [{ field: "disabledBy", from: null, to: "request" }],
        ])
      }),
    ),
  )
})

describe("rotating the secret", () => {
  it.effect("keeps the old secret signing for a day", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id, secret } = yield* addWebhook()
        const ids = { projectId, webhookId: id }
        const { secret: fresh } = yield* webhooks.rotateSecret(ids)
        const verifying = Effect.gen(function* () {
          yield* publish
          yield* settled
          const { body = "", headers = {} } = sent.at(-1) ?? {}
          const now = yield* Clock.currentTimeMillis
          return [secret, fresh].map((one) =>
            Result.isSuccess(verifySignature({ headers, body, now }, [one])),
          )
        })
        expect(yield* verifying).toEqual([true, true])
        yield* pass("24 hours")
        expect(yield* verifying).toEqual([false, true])
        const [listed] = yield* webhooks.list({ projectId })
        expect(listed?.secret).toBe(fresh)
      }),
    ),
  )
})

describe("a signing key", () => {
  it.effect("signs in addition to the secret once it was added", () =>
    dispatching({}, ({ sent }) =>
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const { id, secret } = yield* addWebhook()
        const ids = { projectId, webhookId: id }
        const key = yield* webhooks.addSigningKey(ids)
        expect(yield* webhooks.addSigningKey(ids)).toBe(key)
        yield* publish
        yield* settled
        const { body = "", headers = {} } = sent[0] ?? {}
        const notification = { headers, body, now: yield* Clock.currentTimeMillis }
        expect(Result.isSuccess(verifySignature(notification, [secret]))).toBe(true)
        const { id: eventId } = yield* verifySignatureAsymmetric(notification, [key])
        expect(eventId).toBe(headers["webhook-id"])
      }),
    ),
  )
})

describe("a ping", () => {
  it.effect("is sent to one webhook only", () =>
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

describe("the option retrySchedule", () => {
  it.effect("sets the delays", () =>
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
