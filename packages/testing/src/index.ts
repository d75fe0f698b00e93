/**
 * Suites that certify stores and adapters, and what their tests need besides. The suites declare
 * tests of vitest.
 */
export { type Port, type StoreHarness } from "./stores/StoreHarness.ts"
export { storeSuite } from "./stores/storeSuite.ts"
export type { AdapterHarness, Mount, RunningServer } from "./adapters/AdapterHarness.ts"
export { adapterSuite } from "./adapters/adapterSuite.ts"
export type { DeliveryHarness } from "./adapters/deliveries/DeliveryHarness.ts"
export { deliverySuite } from "./adapters/deliveries/deliverySuite.ts"
export { listening } from "./adapters/listening.ts"
export { accepts } from "./support/accepts.ts"
export { freePort } from "./support/freePort.ts"
export * as Fixture from "./support/fixtures.ts"
export {
  exchange,
  type Incoming,
  type Outgoing,
  parseResponses,
  send,
} from "./support/httpClient.ts"
export { type Answer, type Notification, type Receiver, startReceiver } from "./support/receiver.ts"
