/** The suites of all ports, over shards in memory. */

import { shardsLayer } from "@tenure/core/internal"
import { type Port, storeSuite } from "@tenure/testing/conformance"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { memory } from "../src/index.ts"

const on = (home: (projectId: string) => boolean) => ({
  layer: Layer.merge(
    shardsLayer([
      { name: "home", projects: home, stores: memory() },
      { name: "other", projects: "others", stores: memory() },
    ]),
    TestClock.layer(),
  ),
  advance: (millis: number) => TestClock.adjust(millis),
})

storeSuite(
  "shards, of which the home has no project",
  on(() => false),
)

// A read of the feed is for projects of one shard.
const ports: ReadonlyArray<Port> = ["MembershipStore", "WebhookStore", "ApiKeyStore", "Outbox"]

storeSuite("shards, of which the home has one project", {
  ...on((id) => id === "p1"),
  hasSeveralDatabases: true,
  ports,
})
