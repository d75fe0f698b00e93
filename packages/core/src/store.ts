/** The storage ports, their types, and the rules shared by stores. */

export {
  IdempotencyInProgress,
  IdempotencyMismatch,
  hostOrigin,
  replayedResponse,
  type ChangeContext,
  type IdempotencyConflict,
  type IdempotencyKey,
  type ReplayedResponse,
} from "./base/change-context.ts"
export { InvalidInput, StoreUnavailable } from "./base/errors.ts"
export { Micros, Millis, toMicros } from "./base/time.ts"
export {
  NoTransaction,
  NotInTransaction,
  TransactionFailed,
  Transactions,
  TransactionsUnsupported,
  WrongServer,
  type Connection,
  type Join,
  type Param,
} from "./base/transactions.ts"
export { ApiKeyId, ProjectId, ProjectNotFound } from "./base/values.ts"
export {
  EventId,
  EventNotFound,
  EventType,
  completeEvent,
  knownEventTypes,
  type Event,
} from "./events/event.ts"
export {
  CursorExpired,
  FeedCursor,
  FeedStore,
  type FeedEvent,
  type FeedHistory,
  type FeedPage,
  type LatestEvents,
  type FeedPageSize,
  type FeedStart,
} from "./events/feed-store.ts"
export {
  ApiKeyConflict,
  ApiKeyNotFound,
  ApiKeyRevoked,
  TicketLimitReached,
  TokenDigest,
  isToken,
  roles,
  type ApiKey,
  type Role,
  type Ticket,
} from "./keys/api-key.ts"
export { ApiKeyStore, TicketStore, type KeyScope, type TicketLimits } from "./keys/store.ts"
export {
  RateLimitStore,
  bucketPolicy,
  makeInProcessRateLimits,
  remainingTokens,
  takeToken,
  type BucketPolicies,
  type BucketPolicy,
  type LimitedClient,
  type TakeResult,
} from "./limits/buckets.ts"
export {
  BulkExtensionNotFound,
  BulkExtensionSettled,
  BulkExtensionUndone,
  type BulkExtensionRecord,
  type AnnouncementCounts,
  type BulkPreview,
  type StoredPreview,
} from "./memberships/bulk-extension.ts"
export {
  maxPreviewed,
  type PreviewPublication,
  type PreviewedChange,
  type Publication,
} from "./memberships/dry-run.ts"
export { TimeZone, parseTimeZone } from "./memberships/calendar.ts"
export { DurationText, addDuration } from "./memberships/duration.ts"
export {
  EndDate,
  parseEndDate,
  readEndDate,
  type BulkMode,
  adjustmentOf,
  composeAdjustments,
  composeLog,
  composeWith,
  effectiveEndDate,
  effectiveForm,
  instantForm,
  isSameForm,
  type Adjustment,
  type BulkChange,
  type ComposedBulkExtensions,
  type OrderedAdjustment,
  type DateForm,
  type FormedEndDate,
  type OptionalForm,
  type LoggedBulkExtension,
} from "./memberships/end-date.ts"
export {
  cellOf,
  dayOf,
  dayStartsOf,
  endCellsAt,
  endCountsOf,
  extendingActions,
  type DayEnds,
  type DayRange,
  type EndCells,
  type EndCounts,
  type EndsQuery,
  type Extended,
} from "./memberships/ends.ts"
export {
  type Announcement,
  type AnnouncementOutcome,
  type DateOrigin,
  type DecideAnnouncement,
  type DueMembership,
  type OwnEndDate,
  type TimedBulkExtension,
  changeTime,
  expiredLead,
  type LastAnnouncement,
  dateOrigin,
} from "./memberships/expiry.ts"
export {
  EndDateConflict,
  MembershipNotFound,
  MoveConflict,
  PauseConflict,
  ProjectConflict,
  Reason,
  UserId,
  UserIdPrefix,
  alreadyMember,
  endDateConflict,
  isAlreadyMember,
  laterOf,
  type AlreadyMember,
  type DatedMembership,
  type EndsLater,
  type Membership,
  type MembershipEnd,
  type ProjectSummary,
} from "./memberships/membership.ts"
export {
  MemberChangesConflict,
  isSameTerm,
  type MemberChange,
  type Term,
} from "./memberships/member-changes.ts"
export { eraseUser } from "./memberships/erasure.ts"
export { userOf } from "./events/user.ts"
export {
  decideAuditPage,
  isSelective,
  matchesFilter,
  maxClockSkewMillis,
  maxSearchedRows,
  searchingHistory,
  type AuditFilter,
  type AuditPage,
} from "./memberships/audit-search.ts"
export {
  AuditCursor,
  announcementActions,
  auditActions,
  bulkActions,
  changesOfUser,
  datelessActions,
  type AuditAction,
  type AuditRow,
  type NonMembershipAction,
} from "./memberships/audit-trail.ts"
export {
  changedMembersOf,
  selectableActions,
  statelessActions,
  type BulkChangeMade,
  type ChangeSelection,
  type ChangedMember,
  type ChangedMembers,
  type DateBefore,
  type RecordedChange,
  type RecordedState,
  type SelectedChangesPage,
} from "./memberships/changed-members.ts"
export {
  defaultProjectSettings,
  projectChanges,
  storedTimeZone,
  type ProjectSettings,
} from "./memberships/project-settings.ts"
export {
  MetadataConflict,
  metadataFromJson,
  metadataJson,
  noMetadata,
  type Metadata,
} from "./memberships/metadata.ts"
export { endAfterPause, isOver, type Pause } from "./memberships/pause.ts"
export { joinMemberships, type MovedMembership } from "./memberships/move.ts"
export {
  type BulkExtended,
  MembershipStore,
  type MemberChanges,
  type BulkExtension,
  type Change,
  type DateChange,
  type Ending,
  type Extension,
  type Grant,
  type GrantIfAbsent,
  type Granted,
  type Import,
  type MetadataChange,
  type Move,
  type Pausing,
  type ProjectChange,
  type Resuming,
  type Undo,
  type UndoFailure,
  type UndoTarget,
} from "./memberships/store.ts"
export {
  EndingCursor,
  endingPage,
  positionOfCursor,
  type EndingPage,
} from "./memberships/ending-page.ts"
export { formatBulkAnswer, formatGrantAnswer, type GrantAnswer } from "./memberships/answers.ts"
export { type ExpiryStore } from "./memberships/expiry-store.ts"
export { encryptionKeyOf } from "./webhooks/secrets.ts"
export type { Store, StorePorts } from "./tenure.ts"
export {
  clampConcurrency,
  concurrencyAfterFailure,
  concurrencyAfterSuccess,
  webhookRatePolicy,
} from "./webhooks/claim-budget.ts"
export {
  answerTimeBucket,
  cellStart,
  compareTroubles,
  fillCells,
  lastDay,
  lastHour,
  spanStart,
  sumAnswerTimes,
  type ActivityCell,
  type ActivitySpan,
  type AnswerTimes,
  type DeliveryProgress,
  type LatestAttempt,
  type TroubledWebhook,
  type WebhookActivity,
} from "./webhooks/delivery-activity.ts"
export {
  Outbox,
  announcementsOf,
  isAwaited,
  maxAttemptsOfWebhook,
  maxCountedBacklog,
  type Attempt,
  type AttemptPosition,
  type AttemptResult,
  type Backlog,
  type Claim,
  type ClaimResult,
  type Delivery,
  type DeliveryState,
  type FailingAnnouncement,
  type OutboxChange,
  type PublishedEvent,
  type SettleResult,
  type WebhookRef,
} from "./webhooks/outbox.ts"
export { cancelledChanges, isSelected, type CancelSelection } from "./webhooks/cancel.ts"
export {
  formatReplayPage,
  maxReplayRead,
  maxReplayed,
  replayKindOf,
  type ReplayKind,
  type ReplayPage,
  type ReplayPosition,
  type ReplaySelection,
} from "./webhooks/replay.ts"
export { StoredSecret } from "./webhooks/secrets.ts"
export {
  WebhookStore,
  type WebhookChange,
  type KeyUse,
  maxKeySamples,
  maxKeyUses,
  maxSampleLength,
} from "./webhooks/store.ts"
export { settingChanges, type WebhookSettings } from "./webhooks/webhook-settings.ts"
export {
  WebhookConflict,
  WebhookDisabled,
  WebhookId,
  WebhookLimitReached,
  WebhookNotFound,
  type Health,
  type Disabling,
  type StoredWebhook,
} from "./webhooks/webhook.ts"
