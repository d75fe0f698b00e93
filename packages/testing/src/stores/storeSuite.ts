/** What every store must do. */

import { describe } from "vitest"
import { apiKeyStoreSuite } from "./apiKeyStoreSuite.ts"
import { membershipStoreSuite } from "./memberships/membershipStoreSuite.ts"
import { outboxSuite } from "./outbox/outboxSuite.ts"
import { rateLimitStoreSuite } from "./rateLimits/rateLimitStoreSuite.ts"
import type { Port, StoreHarness } from "./StoreHarness.ts"
import { type StoreTests, testsOn } from "./storeTests.ts"
import { webhookStoreSuite } from "./webhookStoreSuite.ts"

const suites: Readonly<Record<Port, (on: StoreTests) => void>> = {
  MembershipStore: membershipStoreSuite,
  WebhookStore: webhookStoreSuite,
  ApiKeyStore: apiKeyStoreSuite,
  Outbox: outboxSuite,
  RateLimitStore: rateLimitStoreSuite,
}

const allPorts: ReadonlyArray<Port> = [
  "MembershipStore",
  "WebhookStore",
  "ApiKeyStore",
  "Outbox",
  "RateLimitStore",
]

/**
 * Declares the tests that certify a store: those of every port, or of the ports that the harness
 * names.
 *
 * @example
 * ```ts
 * import { memory } from "@tenure/memory"
 * import { storeSuite } from "@tenure/testing"
 * import * as Layer from "effect/Layer"
 * import { TestClock } from "effect/testing"
 *
 * storeSuite("memory", {
 *   layer: Layer.merge(memory(), TestClock.layer()),
 *   advance: (millis) => TestClock.adjust(millis),
 * })
 * ```
 */
export const storeSuite = (name: string, harness: StoreHarness): void => {
  describe(name, () => {
    const on = testsOn(harness)
    for (const port of harness.ports ?? allPorts) {
      describe(port, () => {
        suites[port](on)
      })
    }
  })
}
