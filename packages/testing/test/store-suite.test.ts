/** Store suites fail for stores that break a promise. */

import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { declareSuite } from "../src/store-suite.ts"
import type { Port, StoreHarness } from "../src/stores/harness.ts"
import { wrongMembershipStores, wronglyAudited } from "./wrong-stores/memberships.ts"
import {
  wrongApiKeyStores,
  wrongFeedStores,
  wrongRateLimitStores,
  wrongTicketStores,
  wrongWebhookStores,
} from "./wrong-stores/other-stores.ts"
import { wrongOutboxes } from "./wrong-stores/outbox.ts"
import { rightStores } from "./wrong-stores/wrong-store.ts"

/** Returns a port's tests by their names. */
const testsOf = (port: Port, harness: Partial<StoreHarness>) => {
  const tests = new Map<string, Effect.Effect<unknown, unknown>>()
  declareSuite(
    port,
    // A property ends at the first input that fails: so many that chance keeps none from failing.
    { layer: rightStores, advance: (millis) => TestClock.adjust(millis), runs: 2000, ...harness },
    {
      describe: (_, declare) => declare(),
      it: (name, test) => tests.set(name, test),
    },
  )
  return tests
}

// That stores in memory pass is tested in their own package.
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
  ])("$port: $test, of one that $wrong", ({ layer, port, test }) =>
    Effect.gen(function* () {
      const found = testsOf(port, { layer }).get(test) ?? expect.fail("there is no such test")
      expect(yield* Effect.exit(found)).toMatchObject({ _tag: "Failure" })
    }),
  )
})

it.live.each(["MembershipStore", "WebhookStore", "ApiKeyStore", "Outbox"] as const)(
  "the suite of %s fails a store that takes no part in transactions of the host",
  (port) =>
    Effect.gen(function* () {
      const others = testsOf(port, {})
      const all = testsOf(port, { transaction: (work) => work })
      const transactional = [...all].filter(([name]) => !others.has(name))
      const exits = yield* Effect.forEach(transactional, ([, test]) => Effect.exit(test))
      expect(exits).toContainEqual(expect.objectContaining({ _tag: "Failure" }))
    }),
)
