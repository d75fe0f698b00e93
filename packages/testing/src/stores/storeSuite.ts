/** What every store must do. */

import { describe, it } from "@effect/vitest"
import { closingSuite } from "./closingSuite.ts"
import type { Port, StoreHarness } from "./StoreHarness.ts"
import type { Registry } from "./storeTests.ts"
import { declareSuite } from "./suites.ts"

const vitest: Registry = { describe, it: (name, test) => it.live(name, () => test) }

const standardPorts: ReadonlyArray<Port> = [
  "MembershipStore",
  "WebhookStore",
  "ApiKeyStore",
  "Outbox",
  "FeedStore",
  "RateLimitStore",
  "TicketStore",
]

/**
 * Declares the tests that certify a store: those of every port that Tenure needs, or of the ports
 * that the harness names.
 *
 * @example
 * ```ts
 * import * as Layer from "effect/Layer"
 * import { TestClock } from "effect/testing"
 * import { memory } from "tenure/memory"
 * import { storeSuite } from "tenure/testing"
 *
 * storeSuite("memory", {
 *   layer: Layer.merge(memory(), TestClock.layer()),
 *   advance: (millis) => TestClock.adjust(millis),
 * })
 * ```
 */
export const storeSuite = <Host = never>(name: string, harness: StoreHarness<Host>): void => {
  describe(name, () => {
    for (const port of harness.ports ?? standardPorts) {
      describe(port, () => {
        declareSuite(port, harness, vitest)
      })
    }
    closingSuite(harness, vitest)
  })
}
