import { memory } from "@tenure/memory"
import {
  apiKeyStoreSuite,
  membershipStoreSuite,
  outboxSuite,
  paceSuite,
  rateLimitStoreSuite,
  replaySuite,
  type StoreHarness,
  webhookStoreSuite,
} from "@tenure/testing"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"

const harness: StoreHarness = {
  layer: Layer.merge(memory(), TestClock.layer()),
  advance: (millis) => TestClock.adjust(millis),
}

membershipStoreSuite("memory", harness)
webhookStoreSuite("memory", harness)
apiKeyStoreSuite("memory", harness)
outboxSuite("memory", harness)
paceSuite("memory", harness)
replaySuite("memory", harness)
rateLimitStoreSuite("memory", harness)
