/** The order of an event's deliveries, wherever the rows of its webhooks are. */

import { expect } from "@effect/vitest"
import { Outbox, WebhookStore } from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import { sql } from "./harness.ts"
import { testsOn } from "./locking.ts"

const schema = "delivery_order"
const { event, occasion, p1, makeWebhook } = Fixture

const onStores = testsOn(schema)

onStores(
  "is that of the list of webhooks",
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const store = yield* WebhookStore
    const added = Array.from({ length: 6 }, () => makeWebhook(p1))
    yield* Effect.forEach(added, (one) => store.add(one, 10, occasion))
    // A column in an index changes, so their rows move behind those of the others.
    const moved = added.slice(0, 3).map(({ id }) => `'${id}'`)
    yield* sql(
      `UPDATE ${schema}.webhooks SET paused_until = now() - interval '1 hour' WHERE id IN (${moved.join()})`,
    )
    // So small a table is read as a whole.
    yield* sql(`ANALYZE ${schema}.webhooks`)
    const published = event(p1)
    yield* outbox.publish(published)
    const { deliveries } = yield* outbox.find(p1, published.id)
    expect(deliveries.map(({ webhookId }) => webhookId)).toEqual(added.map(({ id }) => id))
  }),
)
