/** Suites that certify stores, adapters and transports, and their fixtures. */

export { adapterSuite } from "./adapter-suite.ts"
export { type DeliveryHarness, deliverySuite } from "./adapters/delivery-suite.ts"
export {
  type AdapterHarness,
  type Mount,
  type RunningServer,
  listening,
} from "./adapters/harness.ts"
export { storeSuite } from "./store-suite.ts"
export { type Port, type StoreHarness, ports } from "./stores/harness.ts"
export * as Fixture from "./support/fixtures.ts"
export { type Answer, type Notification, type Receiver, startReceiver } from "./support/fixtures.ts"
export { freePort } from "./support/free-port.ts"
export {
  type Incoming,
  type Outgoing,
  accepts,
  exchange,
  parseResponses,
  send,
} from "./support/http.ts"
