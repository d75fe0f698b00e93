/** A client of Tenure's HTTP API, and the verification of its webhooks. */
export type { CallOptions } from "./calls.ts"
export { type Client, type ClientOptions, createClient } from "./createClient.ts"
export type { ImportLine } from "./importLine.ts"
export type * from "./operations.ts"
export type { List } from "./pages.ts"
export type { Continued, Counted, Page, Success } from "./response.ts"
export type { Subscribe, Subscription } from "./subscribe.ts"
export { type Code, isTenureError, type Problem, TenureError } from "./TenureError.ts"
export {
  verifyWebhook,
  type VerifyOptions,
  type WebhookNotification,
  WebhookVerificationError,
} from "./verifyWebhook.ts"
export type { WebhookEvent } from "./webhookEvents.ts"
