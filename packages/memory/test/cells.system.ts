/** Runs the whole conformance suite on cells in memory; the quick suite proves only their routing. */

import { makeCellStores } from "@tenure/core/internal"
import { ApiKeyStore, FeedStore, MembershipStore, Outbox, WebhookStore } from "@tenure/core/store"
import { storeSuite } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { memory } from "../src/index.ts"

const open = (name: string) =>
  Effect.map(Layer.build(Layer.fresh(memory())), (stores) => ({
    name,
    stores,
    memberships: Context.get(stores, MembershipStore),
    webhooks: Context.get(stores, WebhookStore),
    outbox: Context.get(stores, Outbox),
    feed: Context.get(stores, FeedStore),
  }))

const layer = Layer.effectContext(
  Effect.gen(function* () {
    const { memberships, stores } = yield* open("home")
    const cells = [yield* open("a"), yield* open("b")] as const
    const spread = yield* makeCellStores({
      home: { memberships, apiKeys: Context.get(stores, ApiKeyStore) },
      cells,
      changes: cells.map(({ name, outbox }) => ({ name, next: outbox.nextChange })),
    })
    return Context.merge(stores, spread)
  }),
)

storeSuite("cells in memory", {
  layer: Layer.merge(layer, TestClock.layer()),
  advance: (millis) => TestClock.adjust(millis),
  hasSeveralDatabases: true,
  // A feed read is for one cell's projects.
  ports: ["MembershipStore", "WebhookStore", "ApiKeyStore", "Outbox"],
})
