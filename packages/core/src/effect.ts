/** Tenure for Effect hosts: the layer and the services. */

export { feedStream } from "./events/feed-stream.ts"
export { Feed } from "./events/feed.ts"
export { Listeners } from "./events/listeners.ts"
export { ApiKeys } from "./keys/api-keys.ts"
export { type LimitMode } from "./limits/outages.ts"
export { RateLimiter, type RateLimiterOptions } from "./limits/rate-limiter.ts"
export { Memberships } from "./memberships/memberships.ts"
export { isReady, promisesFromEffect, tenureLayer, type Services } from "./tenure.ts"
export { Dispatcher } from "./webhooks/dispatcher.ts"
export { Events } from "./webhooks/published-events.ts"
export { Webhooks } from "./webhooks/webhooks.ts"
