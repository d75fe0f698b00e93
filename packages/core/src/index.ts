/** Tenure for hosts: `createTenure`, its options, its results, and its errors. */

export {
  IdempotencyInProgress,
  IdempotencyMismatch,
  type IdempotencyConflict,
} from "./base/change-context.ts"
export { InvalidInput, StoreUnavailable } from "./base/errors.ts"
export type { Fault } from "./base/faults.ts"
export {
  NoTransaction,
  NotInTransaction,
  TransactionFailed,
  TransactionsUnsupported,
  WrongServer,
} from "./base/transactions.ts"
export { ProjectNotFound } from "./base/values.ts"
export { EventNotFound, type Event } from "./events/event.ts"
export { CursorExpired, type FeedPage } from "./events/feed-store.ts"
export type { AccessRecord } from "./http/handler.ts"
export {
  ApiKeyConflict,
  ApiKeyIssued,
  ApiKeyNotFound,
  ApiKeyRevoked,
  TicketLimitReached,
  type ApiKey,
  type Role,
} from "./keys/api-key.ts"
export type { Identity } from "./keys/identity.ts"
export type { RateLimit } from "./limits/rate-limiter.ts"
export {
  BulkExtensionNotFound,
  BulkExtensionSettled,
  BulkExtensionUndone,
} from "./memberships/bulk-extension.ts"
export { EndDateNotInFuture, InvalidEndDate } from "./memberships/end-date.ts"
export {
  EndDateConflict,
  MembershipNotFound,
  StateConflict,
  type CurrentMembership,
  type Membership,
  type MembershipEnd,
  type ProjectSummary,
  type Member,
} from "./memberships/membership.ts"
export type { AuditPage } from "./memberships/audit-search.ts"
export { type AuditAction, type AuditRow } from "./memberships/audit-trail.ts"
export type { Metadata, MetadataPatch } from "./memberships/metadata.ts"
export type { EventsPreview, PreviewedWebhook } from "./memberships/dry-run.ts"
export type { ExtensionResult } from "./memberships/extensions.ts"
export type { GrantResult, UpdatedProject } from "./memberships/membership-acts.ts"
export type { DayEnds, EndCounts } from "./memberships/ends.ts"
export type { EndingPage } from "./memberships/ending-page.ts"
export type { PromisedServices, Promises } from "./promises.ts"
export { prometheusContentType } from "./telemetry/instruments.ts"
export {
  createTenure,
  type CreateTenureOptions,
  type Store,
  type Tenure,
  type TenureOptions,
  type WebhookOptions,
} from "./tenure.ts"
export type { Delivery } from "./webhooks/outbox.ts"
export { parseKeyring, type KeyringInput } from "./webhooks/secrets.ts"
export { VerificationError } from "./webhooks/signature.ts"
export { InvalidWebhookUrl } from "./webhooks/transport.ts"
export {
  WebhookDisabled,
  WebhookLimitReached,
  WebhookNotFound,
  type Webhook,
} from "./webhooks/webhook.ts"
