/** The suites of stores fail for stores that are wrong. */

import { describe, expect, it } from "@effect/vitest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { declareSuite } from "../src/store-suite.ts"
import type { Port, StoreHarness } from "../src/stores/harness.ts"
import { apiKeys } from "./mutants/apiKeys.ts"
import { auditing } from "./mutants/auditing.ts"
import { directories } from "./mutants/directories.ts"
import { endingSoon } from "./mutants/endingSoon.ts"
import { erasing } from "./mutants/erasing.ts"
import { announcedTwice, expiring } from "./mutants/expiry.ts"
import { feed } from "./mutants/feed.ts"
import { eventsOfMemberships, memberships } from "./mutants/memberships.ts"
import { type Mutant, stores } from "./mutants/Mutant.ts"
import { outbox } from "./mutants/outbox.ts"
import { projects } from "./mutants/projects.ts"
import { rateLimits, rightRateLimits } from "./mutants/rateLimits.ts"
import { tickets } from "./mutants/tickets.ts"
import { webhooks } from "./mutants/webhooks.ts"

/**
 * Runs the tests of a port until one fails, and returns its name. A test of a store that is wrong has
 * failed if it takes longer than a second: it hangs.
 */
const failureOf = Effect.fnUntraced(function* (
  port: Port,
  harness: Partial<StoreHarness>,
  patience: Duration.Input = "1 second",
) {
  const tests: Array<{ readonly name: string; readonly test: Effect.Effect<unknown, unknown> }> = []
  declareSuite(
    port,
    { layer: stores, advance: (millis) => TestClock.adjust(millis), ...harness },
    { describe: (_, declare) => declare(), it: (name, test) => tests.push({ name, test }) },
  )
  for (const { name, test } of tests) {
    const exit = yield* Effect.exit(Effect.timeout(test, patience))
    if (exit._tag === "Failure") return name
  }
  return undefined
})

const mutants: ReadonlyArray<readonly [Port, ReadonlyArray<Mutant>]> = [
  [
    "MembershipStore",
    [
      ...memberships,
      ...eventsOfMemberships,
      ...projects,
      ...erasing,
      ...auditing,
      ...endingSoon,
      ...expiring,
      ...announcedTwice,
    ],
  ],
  ["WebhookStore", webhooks],
  ["ApiKeyStore", apiKeys],
  ["Outbox", outbox],
  ["FeedStore", feed],
  ["RateLimitStore", rateLimits],
  ["TicketStore", tickets],
  ["ProjectDirectory", directories],
]

describe.each(mutants)("the suite of %s", (port, wrong) => {
  it.live("passes stores in memory", () =>
    Effect.gen(function* () {
      expect(yield* failureOf(port, {}, "30 seconds")).toBeUndefined()
    }),
  )

  it.live.each(wrong)("fails a store that $name", ({ layer }) =>
    Effect.gen(function* () {
      expect(yield* failureOf(port, { layer })).toBeDefined()
    }),
  )
})

it.live.each(rightRateLimits)(
  "the suite of RateLimitStore passes a store that $name",
  ({ layer }) =>
    Effect.gen(function* () {
      expect(yield* failureOf("RateLimitStore", { layer }, "30 seconds")).toBeUndefined()
    }),
)

it.live.each(["MembershipStore", "WebhookStore", "ApiKeyStore", "Outbox"] as const)(
  "the suite of %s fails a store that takes no part in transactions of the host",
  (port) =>
    Effect.gen(function* () {
      expect(yield* failureOf(port, { transaction: (work) => work })).toBeDefined()
    }),
)
