/** For the packages of this repository, in the same version. Nothing here is stable. */

export * as Setting from "./base/setting.ts"
export { apiErrors, describeApiError, type ApiErrorTag, type ApiFailure } from "./http/errors.ts"
export { handlerOptions } from "./http/handler.ts"
export { routerOptions } from "./http/http-router.ts"
export {
  makeRoutes,
  routes,
  type BodyLimit,
  type Operation,
  type PathParameter,
  type PathParams,
} from "./http/routes.ts"
export { makeBucketTable } from "./limits/buckets.ts"
export { rateLimiterOptions, suspensionOptions, type LimitDecision } from "./limits/rate-limiter.ts"
export { expiryRules } from "./memberships/announcements.ts"
export { membershipsOptions } from "./memberships/memberships.ts"
export { shardsLayer, shardsOptions } from "./shards/shards.ts"
export {
  instruments,
  observeCounter,
  observeGauge,
  prometheusName,
} from "./telemetry/instruments.ts"
export { createTenureOptions } from "./tenure.ts"
export { logGivenUp } from "./webhooks/attempt.ts"
export { dispatcherOptions, flushOptions } from "./webhooks/dispatcher.ts"
export { Encryption, encryptionLayer } from "./webhooks/encryption.ts"
export { keyringFormat, keyringOption } from "./webhooks/secrets.ts"
export { addressPolicyOptions } from "./webhooks/transport.ts"
export { webhooksOptions } from "./webhooks/webhooks.ts"
