import { expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Outbox } from "../../src/webhooks/outbox.ts"
import { Webhooks } from "../../src/webhooks/webhooks.ts"
import {
  addWebhook,
  dispatching,
  pass,
  projectId,
  publish,
  publishMany,
  status,
  url,
} from "./dispatching.ts"

/** Stores that record the events in the order of their claims. */
const recording = (claimed: Array<string>) =>
  Layer.provideMerge(
    Layer.effect(
      Outbox,
      Effect.map(Outbox, (outbox) => ({
        ...outbox,
        claim: (options) =>
          Effect.tap(outbox.claim(options), ({ claims }) =>
            Effect.sync(() => claimed.push(...claims.map(({ event }) => event.id))),
          ),
      })),
    ),
    memory(),
  )

it.effect("attempts a live event before all replayed ones that are not claimed yet", () => {
  const claimed: Array<string> = []
  const slow = () => Effect.delay(status(200), "1 second")
  return dispatching(
    { [url]: slow },
    ({ sent }) =>
      Effect.gen(function* () {
        yield* publishMany(5000)
        const { id } = yield* addWebhook()
        const webhooks = yield* Webhooks
        const events = { projectId, webhookId: id, since: new Date(0) }
        expect(yield* webhooks.replayMany(events)).toBe(5000)
        yield* pass("20 seconds")
        for (let n = 0; n < 5; n++) {
          const before = claimed.length
          const live = yield* publish
          yield* pass("20 seconds")
          expect(claimed[before]).toBe(live)
          const attempted = sent.map(({ headers }) => headers["webhook-id"])
          expect(attempted.indexOf(live)).toBeGreaterThan(0)
          expect(attempted.indexOf(live)).toBeLessThanOrEqual(before)
        }
        expect(claimed.length).toBeLessThan(5000)
      }),
    {},
    recording(claimed),
  )
})
