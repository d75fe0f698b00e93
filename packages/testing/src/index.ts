/**
 * Conformance suites: what every store and every adapter of Tenure has to do. They declare tests
 * of vitest.
 */
export { apiKeyStoreSuite } from "./apiKeyStoreSuite.ts"
export { membershipStoreSuite } from "./membershipStoreSuite.ts"
export { outboxSuite } from "./outboxSuite.ts"
export { paceSuite } from "./paceSuite.ts"
export { replaySuite } from "./replaySuite.ts"
export { rateLimitStoreSuite } from "./rateLimitStoreSuite.ts"
export type { StoreHarness } from "./StoreHarness.ts"
export { webhookStoreSuite } from "./webhookStoreSuite.ts"
export {
  type AdapterHarness,
  type Fixture as AdapterFixture,
  type Mount,
  type RunningServer,
  servingOn,
} from "./AdapterHarness.ts"
export { adapterSuite } from "./adapterSuite.ts"
export { listening } from "./listening.ts"
export { standaloneSuite } from "./standaloneSuite.ts"
export { exchange, type Incoming, type Outgoing, parseResponses, send } from "./httpClient.ts"
export { type Answer, type Notification, type Receiver, startReceiver } from "./receiver.ts"
export * as Fixture from "./fixtures.ts"
export { type DeliveryHarness, deliverySuite } from "./deliverySuite.ts"
