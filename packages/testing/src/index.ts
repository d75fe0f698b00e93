/** Tenure for a host's tests. */

export { EndlessWork } from "./controlled-runtime.ts"
export {
  type ForwardedWebhook,
  type NextOptions,
  type SentWebhook,
  type TestWebhooks,
  WebhookNotSent,
} from "./recorded-webhooks.ts"
export {
  type TestClock,
  type TestTenure,
  type TestTenureOptions,
  testTenure,
} from "./test-tenure.ts"
