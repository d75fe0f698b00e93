/** All errors sent to clients: one table with status, error code, messages and headers. */

import type { IdempotencyInProgress, IdempotencyMismatch } from "../base/change-context.ts"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import type { ProjectNotFound } from "../base/values.ts"
import type { EventNotFound } from "../events/event.ts"
import type { CursorExpired } from "../events/feed-store.ts"
import type { ApiKeyNotFound } from "../keys/api-key.ts"
import type {
  BulkExtensionNotFound,
  BulkExtensionSettled,
  BulkExtensionUndone,
} from "../memberships/bulk-extension.ts"
import {
  type EndDateNotInFuture,
  type InvalidEndDate,
  formatEndDateOrNull,
} from "../memberships/end-date.ts"
import type {
  EndDateConflict,
  MembershipNotFound,
  StateConflict,
} from "../memberships/membership.ts"
import type { InvalidWebhookUrl } from "../webhooks/transport.ts"
import type { WebhookDisabled, WebhookLimitReached, WebhookNotFound } from "../webhooks/webhook.ts"

/** The request could not be read as a whole. */
export type UnreadableRequest =
  /** The request is not valid HTTP, or its body is not a JSON object; the message names the problem. */
  | { readonly _tag: "MalformedRequest"; readonly message: string }
  /** The request did not arrive in time. */
  | { readonly _tag: "RequestTimeout" }
  /** The header fields are longer than the server accepts. */
  | { readonly _tag: "RequestHeadersTooLarge" }

/** The problem with a line in a body; the first line has the number 1. */
export interface LineFault {
  readonly line: number
  readonly message: string
}

/** A body has invalid lines. */
export interface InvalidLines {
  readonly _tag: "InvalidLines"
  readonly faults: readonly [LineFault, ...ReadonlyArray<LineFault>]
}

/** All errors sent to clients. */
export type ApiError =
  | UnreadableRequest
  | { readonly _tag: "Unauthorized" }
  /** The principal's role is too small for the operation. */
  | { readonly _tag: "Forbidden" }
  | { readonly _tag: "RouteNotFound" }
  /** `allow` lists the path's methods. */
  | { readonly _tag: "MethodNotAllowed"; readonly allow: ReadonlyArray<string> }
  /** `limit` is the longest body, in bytes. */
  | { readonly _tag: "PayloadTooLarge"; readonly limit: number }
  | { readonly _tag: "UnsupportedMediaType"; readonly message: string }
  /** The path takes WebSocket connections only. */
  | { readonly _tag: "UpgradeRequired" }
  /** A client is admitted after waiting `retryAfter` seconds. */
  | { readonly _tag: "RateLimited"; readonly retryAfter: number }
  | { readonly _tag: "InternalError" }
  | Pick<IdempotencyMismatch, "_tag">
  | Pick<IdempotencyInProgress, "_tag">
  | InvalidEndDate
  | EndDateNotInFuture
  | InvalidInput
  | InvalidLines
  | Pick<EndDateConflict, "_tag" | "currentEndDate">
  | Pick<StateConflict, "_tag" | "currentState">
  | InvalidWebhookUrl
  | WebhookLimitReached
  | Pick<ProjectNotFound, "_tag">
  | Pick<MembershipNotFound, "_tag">
  | Pick<BulkExtensionNotFound, "_tag">
  | Pick<BulkExtensionUndone, "_tag">
  | Pick<BulkExtensionSettled, "_tag">
  | Pick<WebhookNotFound, "_tag">
  | Pick<WebhookDisabled, "_tag">
  | Pick<EventNotFound, "_tag">
  | Pick<CursorExpired, "_tag">
  | Pick<ApiKeyNotFound, "_tag">
  | Pick<StoreUnavailable, "_tag" | "cause" | "problem">

/** An error's name. */
export type ApiErrorTag = ApiError["_tag"]

/** The errors with a name. */
export type ApiErrorOf<Of extends ApiErrorTag> = {
  readonly [Name in Of]: Extract<ApiError, { readonly _tag: Name }> & { readonly _tag: Name }
}[Of]

type Messages = readonly [string, ...ReadonlyArray<string>]

/** Fields in a response's error, besides its code and its message. */
type ApiErrorDetails = Readonly<Record<string, number | string | null>>

type Headers = Readonly<Record<string, string>>

/** The response to an error: a function if it varies with the error. */
interface Entry<Error> {
  readonly status: number
  readonly code: string
  /** Several for several errors in the body. */
  readonly messages: Messages | ((error: Error) => Messages)
  /** This response's header fields, besides the usual ones. */
  readonly headers?: Headers | ((error: Error) => Headers)
  /** Further error fields in the body. */
  readonly details?: (error: Error) => ApiErrorDetails
  /** Further fields for each error in a list. The body has a list even for a single error. */
  readonly detailsOfEach?: (error: Error) => ReadonlyArray<ApiErrorDetails>
}

const ownMessage = ({ message }: { readonly message: string }): Messages => [message]

const storeRetrySeconds = 5

/** The response to each error. Whether a thing is missing or belongs to another client never shows. */
export const apiErrors = {
  MalformedRequest: { status: 400, code: "MALFORMED_REQUEST", messages: ownMessage },
  Unauthorized: {
    status: 401,
    code: "UNAUTHORIZED",
    messages: ["A valid bearer token is required."],
    headers: { "WWW-Authenticate": "Bearer" },
  },
  Forbidden: {
    status: 403,
    code: "FORBIDDEN",
    messages: ["The role of this key does not allow this."],
  },
  RouteNotFound: {
    status: 404,
    code: "ROUTE_NOT_FOUND",
    messages: ["There is nothing at this path."],
  },
  ProjectNotFound: {
    status: 404,
    code: "PROJECT_NOT_FOUND",
    messages: ["The project was not found."],
  },
  MembershipNotFound: {
    status: 404,
    code: "MEMBERSHIP_NOT_FOUND",
    messages: ["The membership was not found."],
  },
  BulkExtensionNotFound: {
    status: 404,
    code: "BULK_EXTENSION_NOT_FOUND",
    messages: ["The bulk extension was not found."],
  },
  WebhookNotFound: {
    status: 404,
    code: "WEBHOOK_NOT_FOUND",
    messages: ["The webhook was not found."],
  },
  EventNotFound: {
    status: 404,
    code: "EVENT_NOT_FOUND",
    messages: ["The event was not found."],
  },
  ApiKeyNotFound: {
    status: 404,
    code: "API_KEY_NOT_FOUND",
    messages: ["The API key was not found."],
  },
  MethodNotAllowed: {
    status: 405,
    code: "METHOD_NOT_ALLOWED",
    messages: ({ allow }) => [`This path takes ${allow.join(", ")} only.`],
    headers: ({ allow }) => ({ Allow: allow.join(", ") }),
  },
  RequestTimeout: {
    status: 408,
    code: "REQUEST_TIMEOUT",
    messages: ["The request did not arrive in time."],
  },
  EndDateConflict: {
    status: 409,
    code: "END_DATE_CONFLICT",
    messages: ["The membership has another end date than expected_end_date."],
    details: ({ currentEndDate }) => ({ current_end_date: formatEndDateOrNull(currentEndDate) }),
  },
  StateConflict: {
    status: 409,
    code: "STATE_CONFLICT",
    messages: ({ currentState }) => [`The state of the membership is ${currentState}.`],
    details: ({ currentState }) => ({ current_state: currentState }),
  },
  BulkExtensionUndone: {
    status: 409,
    code: "BULK_EXTENSION_UNDONE",
    messages: ["The bulk extension is undone already."],
  },
  BulkExtensionSettled: {
    status: 409,
    code: "BULK_EXTENSION_SETTLED",
    messages: ["The bulk extension is too old to be undone."],
  },
  WebhookDisabled: {
    status: 409,
    code: "WEBHOOK_DISABLED",
    messages: ["The webhook is disabled. Nothing can be sent to it until it is enabled."],
  },
  IdempotencyInProgress: {
    status: 409,
    code: "IDEMPOTENCY_IN_PROGRESS",
    messages: ["The first request with this idempotency key has not ended yet."],
  },
  CursorExpired: {
    status: 410,
    code: "CURSOR_EXPIRED",
    messages: ["The feed cannot go on from this cursor without a gap."],
  },
  PayloadTooLarge: {
    status: 413,
    code: "PAYLOAD_TOO_LARGE",
    messages: ({ limit }) => [`The body is longer than ${limit} bytes.`],
  },
  UnsupportedMediaType: { status: 415, code: "UNSUPPORTED_MEDIA_TYPE", messages: ownMessage },
  InvalidEndDate: {
    status: 422,
    code: "VALIDATION_ERROR",
    messages: [
      "extend must be a Unix timestamp in milliseconds (13 digits)",
      "extend must be a UTC ISO 8601 date with three millisecond digits (YYYY-MM-DDTHH:mm:ss.sssZ)",
    ],
  },
  EndDateNotInFuture: {
    status: 422,
    code: "VALIDATION_ERROR",
    messages: ["extend must be a future timestamp"],
  },
  InvalidInput: { status: 422, code: "VALIDATION_ERROR", messages: ownMessage },
  InvalidLines: {
    status: 422,
    code: "VALIDATION_ERROR",
    messages: ({ faults: [first, ...others] }) => [
      first.message,
      ...others.map(({ message }) => message),
    ],
    detailsOfEach: ({ faults }) => faults.map(({ line }) => ({ line })),
  },
  IdempotencyMismatch: {
    status: 422,
    code: "IDEMPOTENCY_MISMATCH",
    messages: ["The idempotency key was used for another request."],
  },
  InvalidWebhookUrl: { status: 422, code: "VALIDATION_ERROR", messages: ownMessage },
  WebhookLimitReached: { status: 422, code: "VALIDATION_ERROR", messages: ownMessage },
  UpgradeRequired: {
    status: 426,
    code: "UPGRADE_REQUIRED",
    messages: ["This path takes WebSocket connections only, of version 13."],
    headers: { Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Version": "13" },
  },
  RateLimited: {
    status: 429,
    code: "RATE_LIMIT_EXCEEDED",
    messages: ({ retryAfter }) => [`Try again in ${retryAfter} s.`],
    headers: ({ retryAfter }) => ({ "Retry-After": String(retryAfter) }),
  },
  RequestHeadersTooLarge: {
    status: 431,
    code: "REQUEST_HEADERS_TOO_LARGE",
    messages: ["The header fields are too large."],
  },
  InternalError: {
    status: 500,
    code: "INTERNAL_ERROR",
    messages: ["Something went wrong on our side."],
  },
  StoreUnavailable: {
    status: 503,
    code: "SERVICE_UNAVAILABLE",
    messages: ["The service is unavailable for the moment."],
    headers: { "Retry-After": String(storeRetrySeconds) },
  },
} as const satisfies { readonly [Of in ApiErrorTag]: Entry<ApiErrorOf<Of>> }

/** The response to one error. */
export interface ApiFailure {
  readonly status: number
  readonly code: string
  readonly messages: Messages
  readonly headers: Headers
  readonly details: ApiErrorDetails | undefined
  readonly detailsOfEach: ReadonlyArray<ApiErrorDetails> | undefined
}

const entries: { readonly [Of in ApiErrorTag]: Entry<ApiErrorOf<Of>> } = apiErrors

const noHeaders: Headers = {}

/** Looks up how an error is answered. */
export const describeApiError = <Of extends ApiErrorTag>(error: ApiErrorOf<Of>): ApiFailure => {
  const {
    code,
    details,
    detailsOfEach,
    headers = noHeaders,
    messages,
    status,
  } = entries[error._tag]
  return {
    status,
    code,
    messages: typeof messages === "function" ? messages(error) : messages,
    headers: typeof headers === "function" ? headers(error) : headers,
    details: details?.(error),
    detailsOfEach: detailsOfEach?.(error),
  }
}
