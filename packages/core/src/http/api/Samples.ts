/** An example of each error, and when it is answered. */

import { InvalidInput } from "../../base/InvalidInput.ts"
import { EndDate, EndDateNotInFuture, InvalidEndDate } from "../../memberships/EndDate.ts"
import { WebhookLimitReached } from "../../webhooks/Webhook.ts"
import { InvalidWebhookUrl } from "../../webhooks/WebhookUrl.ts"
import type * as ApiError from "../ApiError.ts"

interface Sample<Of extends ApiError.Tag> {
  readonly error: ApiError.ErrorOf<Of>
  readonly when: string
}

/** The example of each error. */
export const samples: { readonly [Of in ApiError.Tag]: Sample<Of> } = {
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
        { line: 2, message: "user_id must be 1 to 64 decimal digits, as text" },
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
    error: new InvalidWebhookUrl({ message: "url must not point to a private address" }),
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
