/** The suites of stores fail for stores that break a promise. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { declareSuite } from "../src/store-suite.ts"
import { type Port, type StoreHarness, ports } from "../src/stores/harness.ts"
import { wrongFeedStores } from "./wrong-stores/feed.ts"
import { wrongApiKeyStores, wrongTicketStores } from "./wrong-stores/keys.ts"
import { wrongMembershipStores, wronglyAudited } from "./wrong-stores/memberships.ts"
import { wrongOutboxes } from "./wrong-stores/outbox.ts"
import { wrongRateLimitStores } from "./wrong-stores/rate-limits.ts"
import { wrongWebhookStores } from "./wrong-stores/webhooks.ts"
import { rightStores } from "./wrong-stores/wrong-store.ts"

/** Returns the tests of a port, or those of one name. */
const testsOf = (port: Port, harness: Partial<StoreHarness>, only?: string) => {
  const tests: Array<Effect.Effect<unknown, unknown>> = []
  declareSuite(
    port,
    { layer: rightStores, advance: (millis) => TestClock.adjust(millis), ...harness },
    {
      describe: (_, declare) => declare(),
      it: (name, test) => {
        if (only === undefined || name === only) tests.push(test)
      },
    },
  )
  return tests
}

it.live.each(ports)("the suite of %s passes stores in memory", (port) =>
  Effect.forEach(testsOf(port, {}), (test) => test),
)

describe("the test of a promise fails for a store that breaks it", () => {
  it.live.each([
    ...wrongMembershipStores,
    ...wronglyAudited,
    ...wrongWebhookStores,
    ...wrongApiKeyStores,
    ...wrongTicketStores,
    ...wrongOutboxes,
    ...wrongFeedStores,
    ...wrongRateLimitStores,
  ])("$port: $test", ({ layer, port, test: name }) =>
    Effect.gen(function* () {
      const tests = testsOf(port, { layer }, name)
      expect(tests).toHaveLength(1)
      for (const test of tests) expect(yield* Effect.exit(test)).toMatchObject({ _tag: "Failure" })
    }),
  )
})

it.live.each(["MembershipStore", "WebhookStore", "ApiKeyStore", "Outbox"] as const)(
  "the suite of %s fails a store that takes no part in transactions of the host",
  (port) =>
    Effect.flip(
      Effect.sandbox(
        Effect.forEach(testsOf(port, { transaction: (work) => work }), (test) => test),
      ),
    ),
)
