/** The suite of each port. */

import { apiKeyStoreSuite } from "./apiKeyStoreSuite.ts"
import { feedStoreSuite } from "./feedStoreSuite.ts"
import { membershipStoreSuite } from "./memberships/membershipStoreSuite.ts"
import { outboxSuite } from "./outbox/outboxSuite.ts"
import { projectDirectorySuite } from "./projectDirectorySuite.ts"
import { rateLimitStoreSuite } from "./rateLimits/rateLimitStoreSuite.ts"
import type { Port, StoreHarness } from "./StoreHarness.ts"
import { type Registry, type StoreTests, testsOn } from "./storeTests.ts"
import { ticketStoreSuite } from "./ticketStoreSuite.ts"
import { webhookStoreSuite } from "./webhookStoreSuite.ts"

const suites: Readonly<Record<Port, (on: StoreTests) => void>> = {
  MembershipStore: membershipStoreSuite,
  WebhookStore: webhookStoreSuite,
  ApiKeyStore: apiKeyStoreSuite,
  Outbox: outboxSuite,
  FeedStore: feedStoreSuite,
  RateLimitStore: rateLimitStoreSuite,
  TicketStore: ticketStoreSuite,
  ProjectDirectory: projectDirectorySuite,
}

/** Declares the tests of a port. */
export const declareSuite = <Host>(
  port: Port,
  harness: StoreHarness<Host>,
  registry: Registry,
): void => suites[port](testsOn(harness, registry))
