/** Schemas shared by groups: parameters, envelopes, and error responses. */

import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type ApiErrorOf, type ApiErrorTag, apiErrors } from "../api/errors.ts"
import { InvalidInput } from "../base/errors.ts"
import { instantPattern } from "../base/time.ts"
import { EndDate, EndDateNotInFuture, InvalidEndDate } from "../memberships/end-date.ts"
import { UserId, membershipStates, userIdPattern } from "../memberships/membership.ts"
import {
  maxMetadata,
  metadataFormat,
  metadataNamePattern,
  metadataValuePattern,
} from "../memberships/metadata.ts"
import { InvalidWebhookUrl } from "../webhooks/transport.ts"
import { WebhookLimitReached } from "../webhooks/webhook.ts"

/** The id shown in examples for one assigned by Tenure. */
export const exampleId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** The instant in examples: far enough in the future to be sent as it is. */
const exampleInstant = "2099-01-01T00:00:00.000Z"

export const projectId = Schema.String.annotate({
  description: "The id of the project.",
  examples: ["demo"],
})

export const userId = Schema.String.check(Schema.isPattern(userIdPattern)).annotate({
  description: "The id of the user, as the host has it. Neither . nor ..",
  examples: ["1001"],
})

/** An id assigned by Tenure. */
export const uuid = Schema.String.check(Schema.isUUID()).annotate({
  identifier: "Uuid",
  description: "A UUID.",
  examples: [exampleId],
})

const requestId = Schema.String.check(Schema.isUUID()).annotate({
  identifier: "RequestId",
  description: "The id of the request, a new UUID.",
  examples: [exampleId],
})

export const webhookId = uuid.annotateKey({ description: "The id of the webhook." })

/** A time in a response. */
export const instant = Schema.String.check(Schema.isPattern(instantPattern)).annotate({
  identifier: "Instant",
  description: "A time in UTC, with milliseconds.",
  examples: [exampleInstant],
})

/** The request's facts in every response. */
const subject = {
  request_id: requestId,
  method: Schema.String,
  path: Schema.String,
}

const successesFields = (message: string) => ({
  ok: Schema.Literal(true),
  ...subject,
  code: Schema.Literal(200),
  message: Schema.String.annotate({ examples: [message] }),
})

const total = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ examples: [1] })

/** A plain operation's response, with its message. */
export const success = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({ ...successesFields(message), data })

/** A counting operation's response, with its message. */
export const counted = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({ ...successesFields(message), total, data })

/** A paged operation's response, with its message. */
export const paged = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({
    ...counted(data, message).fields,
    next: Schema.NullOr(Schema.String).annotate({
      description: "The cursor of the next page, for `after`; null on the last page.",
      examples: [null],
    }),
  })

/** A response that continues from a cursor, with its message. */
export const readOn = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({
    ...counted(data, message).fields,
    next: Schema.String.annotate({
      description: "The cursor of the place after these items, for `after`.",
      examples: ["bf74eca13f6d.mhk1v2q8.ou.1"],
    }),
  })

const failuresFields = <Tag extends ApiErrorTag>(tag: Tag) => ({
  ok: Schema.Literal(false),
  ...subject,
  code: Schema.Literal(apiErrors[tag].status),
})

const error = <Tag extends ApiErrorTag>(tag: Tag) => ({
  error_code: Schema.Literal(apiErrors[tag].code),
  message: Schema.String,
})

/**
 * An error's response. The document names its schema after the error.
 *
 * @param details - the fields of the `error` object besides code and message
 */
export const failure = <Tag extends ApiErrorTag, Details extends Schema.Struct.Fields = {}>(
  tag: Tag,
  details?: Details,
) =>
  Schema.Struct({ ...failuresFields(tag), error: Schema.Struct({ ...error(tag), ...details }) })
    .annotate({ identifier: tag })
    .pipe(HttpApiSchema.status(apiErrors[tag].status))

const { InvalidEndDate: FailuresInvalidEndDate, RateLimited } = apiErrors

/** The response to a date in neither format. It has an error for each. */
export const invalidEndDate = Schema.Struct({
  ...failuresFields("InvalidEndDate"),
  errors: Schema.Array(Schema.Struct(error("InvalidEndDate"))).check(
    Schema.isMinLength(2),
    Schema.isMaxLength(2),
  ),
})
  .annotate({ identifier: "InvalidEndDate" })
  .pipe(HttpApiSchema.status(FailuresInvalidEndDate.status))

/** The response to another end date than the expected one. */
export const endDateConflict = failure("EndDateConflict", {
  current_end_date: Schema.NullOr(instant),
})

/** The response about a membership in another state than the change needs. */
export const stateConflict = failure("StateConflict", {
  current_state: Schema.Literals(membershipStates),
})

/** The response to invalid lines in a body. */
export const linesFailure = Schema.Struct({
  ...failuresFields("InvalidLines"),
  errors: Schema.Array(
    Schema.Struct({
      ...error("InvalidLines"),
      line: Schema.Int.annotate({ description: "The number of the line; the first one is 1." }),
    }),
  ).check(Schema.isMinLength(1), Schema.isMaxLength(100)),
})
  .annotate({ identifier: "InvalidLines" })
  .pipe(HttpApiSchema.status(apiErrors.InvalidLines.status))

/** The only response without `ok`, and with the error code in `code`. */
const rateLimited = Schema.Struct({
  ...subject,
  code: Schema.Literal(RateLimited.status),
  error: Schema.Struct({
    message: Schema.String,
    code: Schema.Literal(RateLimited.code),
    retry_after: Schema.Int,
  }),
})
  .annotate({ identifier: "RateLimited" })
  .pipe(HttpApiSchema.status(RateLimited.status))

/** Errors common to all operations, even without a key. */
export const withoutKey = [
  failure("MalformedRequest"),
  failure("MethodNotAllowed"),
  failure("RequestTimeout"),
  failure("PayloadTooLarge"),
  rateLimited,
  failure("RequestHeadersTooLarge"),
  failure("InternalError"),
  failure("StoreUnavailable"),
] as const

/** Errors common to all operations that need a key. */
export const commonFailures = [
  ...withoutKey,
  failure("Unauthorized"),
  failure("Forbidden"),
  failure("UnsupportedMediaType"),
] as const

/** Errors common to all operations in a project. */
export const projectFailures = [...commonFailures, failure("ProjectNotFound")] as const

/** The idempotency key errors common to all changing operations. */
export const idempotencyFailures = [
  failure("IdempotencyMismatch"),
  failure("IdempotencyInProgress"),
] as const

/** Authentication by an API key, sent as a bearer token. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "@tenure/core/Api/Authorization",
  { requiredForClient: true, security: { bearer: HttpApiSecurity.bearer } },
) {
  /** Sends a token with every client request. */
  static readonly layerClient = (
    token: Redacted.Redacted,
  ): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
    HttpApiMiddleware.layerClient(this, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, token)),
    )
}

/** A membership's metadata. */
export const metadata = Schema.Record(
  Schema.String.check(Schema.isPattern(metadataNamePattern)),
  Schema.String.check(Schema.isPattern(metadataValuePattern)),
)
  .check(Schema.isMaxProperties(maxMetadata))
  .annotate({
    description: `What was noted of a membership: ${metadataFormat}.`,
    examples: [{ plan: "gold" }],
  })

interface Sample<Of extends ApiErrorTag> {
  readonly error: ApiErrorOf<Of>
  readonly when: string
}

/** Each error's example. */
export const samples: { readonly [Of in ApiErrorTag]: Sample<Of> } = {
  MalformedRequest: {
    error: { _tag: "MalformedRequest", message: "The body is not valid JSON." },
    when: "The request is not valid HTTP, or its body is not a JSON object in UTF-8.",
  },
  Unauthorized: {
    error: { _tag: "Unauthorized" },
    when: "The bearer token is missing or invalid.",
  },
  Forbidden: {
    error: { _tag: "Forbidden" },
    when: "The role of the key does not allow the operation.",
  },
  RouteNotFound: {
    error: { _tag: "RouteNotFound" },
    when: "The path is not one of the API's.",
  },
  ProjectNotFound: {
    error: { _tag: "ProjectNotFound" },
    when: "The key does not open the project, or there is no such project.",
  },
  MembershipNotFound: {
    error: { _tag: "MembershipNotFound" },
    when: "The user has no membership in the project.",
  },
  BulkExtensionNotFound: {
    error: { _tag: "BulkExtensionNotFound" },
    when: "The project has no such bulk extension.",
  },
  WebhookNotFound: {
    error: { _tag: "WebhookNotFound" },
    when: "The project has no such webhook.",
  },
  EventNotFound: {
    error: { _tag: "EventNotFound" },
    when: "The project has no such event, or it is not kept any more.",
  },
  CursorExpired: {
    error: { _tag: "CursorExpired" },
    when: "The events after the cursor are not all kept any more, or the database is another one. Begin again with `after=start`, or without `after`.",
  },
  ApiKeyNotFound: {
    error: { _tag: "ApiKeyNotFound" },
    when: "There is no such API key, or it opens projects that the own key does not open.",
  },
  MethodNotAllowed: {
    error: { _tag: "MethodNotAllowed", allow: ["PATCH"] },
    when: "The path does not allow the method.",
  },
  RequestTimeout: {
    error: { _tag: "RequestTimeout" },
    when: "The request did not arrive in time.",
  },
  EndDateConflict: {
    error: { _tag: "EndDateConflict", currentEndDate: EndDate(Date.UTC(2098, 0, 1)) },
    when: "The membership has another end date than `expected_end_date`.",
  },
  StateConflict: {
    error: { _tag: "StateConflict", currentState: "expired" },
    when: "The membership is in another state than the change needs.",
  },
  BulkExtensionUndone: {
    error: { _tag: "BulkExtensionUndone" },
    when: "The bulk extension is undone already.",
  },
  BulkExtensionSettled: {
    error: { _tag: "BulkExtensionSettled" },
    when: "The bulk extension was made too long ago, or 64 others were made since then.",
  },
  WebhookDisabled: {
    error: { _tag: "WebhookDisabled" },
    when: "The webhook is disabled.",
  },
  IdempotencyInProgress: {
    error: { _tag: "IdempotencyInProgress" },
    when: "The first request with the idempotency key has not ended yet.",
  },
  PayloadTooLarge: {
    error: { _tag: "PayloadTooLarge", limit: 65_536 },
    when: "The body is too long.",
  },
  UnsupportedMediaType: {
    error: {
      _tag: "UnsupportedMediaType",
      message: "The content type must be application/json.",
    },
    when: "The body has another content type, or a content encoding.",
  },
  UpgradeRequired: {
    error: { _tag: "UpgradeRequired" },
    when: "The path takes WebSocket connections only.",
  },
  InvalidEndDate: {
    error: new InvalidEndDate({ message: "" }),
    when: "The date is in neither of the two formats.",
  },
  EndDateNotInFuture: {
    error: new EndDateNotInFuture({ message: "" }),
    when: "The date is over.",
  },
  InvalidInput: {
    error: new InvalidInput({ field: "limit", problem: "must be a whole number from 1 to 1,000" }),
    when: "A parameter or a field of the body is invalid.",
  },
  InvalidLines: {
    error: {
      _tag: "InvalidLines",
      faults: [
        { line: 2, message: `user_id must be ${UserId.expected}, as text` },
        { line: 7, message: "the line must be a JSON object" },
      ],
    },
    when: "Lines of the body are invalid. The errors are those of the first hundred of them.",
  },
  IdempotencyMismatch: {
    error: { _tag: "IdempotencyMismatch" },
    when: "The idempotency key was used for another request.",
  },
  InvalidWebhookUrl: {
    error: new InvalidWebhookUrl({
      message:
        "url must not point to a private address, unless webhooks.allowedNetworks of the server includes it",
    }),
    when: "The URL of the webhook is invalid, or may not be reached.",
  },
  WebhookLimitReached: {
    error: new WebhookLimitReached({ limit: 50 }),
    when: "The project has the most webhooks that it may have.",
  },
  RateLimited: {
    error: { _tag: "RateLimited", retryAfter: 3 },
    when: "A rate limit is exceeded, or the key is suspended.",
  },
  RequestHeadersTooLarge: {
    error: { _tag: "RequestHeadersTooLarge" },
    when: "The header fields are too large.",
  },
  InternalError: {
    error: { _tag: "InternalError" },
    when: "The server has a defect.",
  },
  StoreUnavailable: {
    error: { _tag: "StoreUnavailable", cause: undefined },
    when: "The service is unavailable for the moment. It is unknown whether a change was made.",
  },
}
