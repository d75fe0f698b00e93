/** Certifies stores, port by port. */

import { describe, it } from "@effect/vitest"
import { createTenure } from "@tenure/core"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { apiKeyStoreSuite, ticketStoreSuite } from "./stores/api-key-store-suite.ts"
import { type StoreTests, testsOn } from "./stores/declare.ts"
import { feedStoreSuite } from "./stores/feed-store-suite.ts"
import { type Port, type Registry, type StoreHarness, ports } from "./stores/harness.ts"
import { membershipStoreSuite } from "./stores/memberships/index.ts"
import { outboxSuite } from "./stores/outbox/index.ts"
import { clockTests, rateLimitStoreSuite } from "./stores/rate-limits.ts"
import { webhookStoreSuite } from "./stores/webhook-store-suite.ts"

const suites: Readonly<Record<Port, (on: StoreTests) => void>> = {
  MembershipStore: membershipStoreSuite,
  WebhookStore: webhookStoreSuite,
  ApiKeyStore: apiKeyStoreSuite,
  Outbox: outboxSuite,
  FeedStore: feedStoreSuite,
  RateLimitStore: (on) => {
    rateLimitStoreSuite(on)
    clockTests(on)
  },
  TicketStore: ticketStoreSuite,
}

/** Declares a port's tests. */
export const declareSuite = <Host>(
  port: Port,
  harness: StoreHarness<Host>,
  registry: Registry,
): void => suites[port](testsOn(harness, registry))

/** Declares the tests for a closed store. */
const closingSuite = <Host>({ layer }: StoreHarness<Host>, registry: Registry): void => {
  registry.describe("after closing", () => {
    registry.it(
      "requests are answered 503 in the envelope, Tenure is not ready, and calls fail",
      Effect.promise(async () => {
        const tenure = await createTenure({ stores: layer })
        await tenure.memberships.createProject("p1")
        const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
        await tenure.close()
        const response = await tenure.handle({
          method: "GET",
          path: "/v2/projects/p1/integrations/webhooks",
          headers: { authorization: `Bearer ${token}` },
          body: { _tag: "Bytes", bytes: new Uint8Array() },
          remoteAddress: undefined,
        })
        expect(response).toMatchObject({ status: 503, headers: { "Retry-After": "5" } })
        expect(JSON.parse(String(response.body))).toMatchObject({
          ok: false,
          error: { error_code: "SERVICE_UNAVAILABLE" },
        })
        expect(await tenure.isReady()).toBe(false)
        await expect(tenure.memberships.createProject("p2")).rejects.toMatchObject({
          _tag: "StoreUnavailable",
        })
      }),
    )
  })
}

const vitest: Registry = { describe, it: (name, test) => it.live(name, () => test) }

/**
 * Declares the tests to certify a store: for every port Tenure needs, or for the harness's ports.
 * @example
 * ```ts
 * import * as Layer from "effect/Layer"
 * import { TestClock } from "effect/testing"
 * import { memory } from "tenure/memory"
 * import { storeSuite } from "tenure/conformance"
 *
 * storeSuite("memory", {
 *   layer: Layer.merge(memory(), TestClock.layer()),
 *   advance: (millis) => TestClock.adjust(millis),
 * })
 * ```
 */
export const storeSuite = <Host = never>(name: string, harness: StoreHarness<Host>): void => {
  describe(name, () => {
    for (const port of harness.ports ?? ports) {
      describe(port, () => {
        declareSuite(port, harness, vitest)
      })
    }
    closingSuite(harness, vitest)
  })
}
