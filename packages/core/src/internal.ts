/** For this repository's packages, in the same version. Nothing here is stable. */

export * as Setting from "./base/setting.ts"
export { parseAddress } from "./base/address.ts"
export {
  makeHeap,
  makeRing,
  makeRoundRobin,
  type Heap,
  type Ring,
  type RoundRobin,
} from "./base/collections.ts"
export { auditedOrigin, isReplayedResponse } from "./base/change-context.ts"
export { ErrorReporter } from "./base/faults.ts"
export { makeNameCheck } from "./base/field-names.ts"
export { instantSetting, shownInstant } from "./base/input.ts"
export { invariant } from "./base/values.ts"
export { commandVariables, describeMisspelled } from "./base/misspelled.ts"
export { version } from "./base/version.ts"
export { fromCallSite } from "./promises.ts"
export { TaggedError, hasTag, unless } from "./base/tagged-error.ts"
export {
  currentMoment,
  currentUnixMillis,
  latestInstant,
  readInstant,
  readMonotonicMillis,
  withMoment,
  type MonotonicClock,
  type InstantInput,
  type Moment,
} from "./base/time.ts"
export {
  derivedEventId,
  draftEvent,
  eventData,
  makeEvent,
  newEventId,
  type EventDraft,
} from "./events/event.ts"
export { apiErrors, describeApiError, type ApiErrorTag, type ApiFailure } from "./api/errors.ts"
export { Handler, handlerOptions } from "./http/handler.ts"
export {
  makeRoutes,
  routes,
  type BodyLimit,
  type Operation,
  type PathParameter,
  type PathParams,
} from "./http/routes.ts"
export { digestToken, roleCovers } from "./keys/api-key.ts"
export { bucketSpan, currentTat, makeBucketTable, waitMicros } from "./limits/buckets.ts"
export { rateLimiterOptions, type LimitDecision } from "./limits/rate-limiter.ts"
export { suspensionOptions } from "./limits/suspensions.ts"
export { expiryRules } from "./memberships/announcements.ts"
export { foresee } from "./memberships/foresight.ts"
export { type EndedAgo, movedEnds } from "./memberships/project-settings.ts"
export { maxBulkExtensions, maxExamples, type BulkExample } from "./memberships/bulk-extension.ts"
export { Day, addToInstant, dayEndedAt, endOfToday } from "./memberships/calendar.ts"
export { fixedMillis, formatDuration } from "./memberships/duration.ts"
export {
  bulkModes,
  decodeEndDate,
  formatEndDate,
  lastEndDate,
  noAdjustment,
  type OrderedEndDate,
  adjust,
  bulkChangeNames,
} from "./memberships/end-date.ts"
export { makeDecideAnnouncement, reminderLeads } from "./memberships/expiry.ts"
export { endsLater, isEndsLater, stateAt, type MembershipState } from "./memberships/membership.ts"
export { mentionsUser } from "./memberships/erasure.ts"
export { userPrefixLength } from "./events/user.ts"
export { datelessActions, type Disclosure } from "./memberships/audit-trail.ts"
export { membershipsOptions } from "./memberships/membership-acts.ts"
export { readPause } from "./memberships/pause.ts"
export { graceSetting } from "./memberships/project-settings.ts"
export { comparePositions } from "./memberships/ending-page.ts"
export { type Cell, cellNumber } from "./cells/cell.ts"
export { type CellChanges, makeCellStores } from "./cells/stores.ts"
export {
  instruments,
  observeCounter,
  observeGauge,
  prometheusName,
} from "./telemetry/instruments.ts"
export { hostLoggerOption, type HostLogger } from "./telemetry/host-logger.ts"
export { createTenureOptions, startTenure } from "./tenure.ts"
export { logGivenUp } from "./webhooks/attempt.ts"
export {
  concurrencyRange,
  initialConcurrency,
  type ConcurrencyRange,
} from "./webhooks/claim-budget.ts"
export { dispatcherOptions, flushOptions } from "./webhooks/dispatcher.ts"
export { Encryption, encryptionLayer, encryptionOptions } from "./webhooks/encryption.ts"
export { answerTimeBuckets } from "./webhooks/delivery-activity.ts"
export {
  addToQueue,
  changeSettings,
  claimDeliveries,
  forgetWebhook,
  isNextDue,
  makeDeliveryQueues,
  openDeliveries,
  queueOf,
  queuedBacklog,
  settleClaim,
  withdraw,
  type ClaimedDelivery,
  type DeliveryQueues,
  type WebhookQueue,
} from "./webhooks/delivery-queues.ts"
export type { QueuedDelivery } from "./webhooks/waiting-deliveries.ts"
export { deliveryStates } from "./webhooks/outbox.ts"
export { keyringFormat, keyringOption, type Keyring, type Keys } from "./webhooks/secrets.ts"
export { addressPolicyOptions } from "./webhooks/transport.ts"
export { formatHeaders } from "./webhooks/webhook-headers.ts"
export { webhooksOptions } from "./webhooks/webhook-registry.ts"
