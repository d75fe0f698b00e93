/**
 * Every failure that a client can meet, with its status, error code, message and header fields: one
 * table.
 */

import type { EndDateNotInFuture, InvalidEndDate } from "./EndDate.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import type { MembershipNotFound } from "./Membership.ts"
import type { ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"
import type { InvalidWebhookUrl, WebhookLimitReached, WebhookNotFound } from "./Webhook.ts"

/** The request is not HTTP, or its body not a JSON object; the message says what is wrong. */
export interface MalformedRequest {
  readonly _tag: "MalformedRequest"
  readonly message: string
}

/** The request did not arrive in time. */
export interface RequestTimeout {
  readonly _tag: "RequestTimeout"
}

/** The header fields are longer than the server takes. */
export interface RequestHeadersTooLarge {
  readonly _tag: "RequestHeadersTooLarge"
}

/** A failure of the request itself, before any operation. */
export type RequestError =
  | MalformedRequest
  | RequestTimeout
  | RequestHeadersTooLarge
  | { readonly _tag: "Unauthorized" }
  | { readonly _tag: "RouteNotFound" }
  | { readonly _tag: "MethodNotAllowed"; readonly allow: ReadonlyArray<string> }
  | { readonly _tag: "PayloadTooLarge"; readonly limit: number }
  | { readonly _tag: "UnsupportedMediaType"; readonly message: string }
  | { readonly _tag: "RateLimited"; readonly retryAfter: number }
  | { readonly _tag: "InternalError" }

/** Every failure that a client can meet. */
export type ApiError =
  | RequestError
  | InvalidEndDate
  | EndDateNotInFuture
  | InvalidInput
  | InvalidWebhookUrl
  | WebhookLimitReached
  | Pick<ProjectNotFound, "_tag">
  | Pick<MembershipNotFound, "_tag">
  | WebhookNotFound
  | Pick<StoreUnavailable, "_tag" | "cause">

/** What the envelope says of a failure. */
export interface Failure {
  readonly status: number
  readonly code: string
  /** Two for an `extend` in neither format, one for all else. */
  readonly messages: readonly [string, ...ReadonlyArray<string>]
  /** The header fields of such a response, besides those of every response. */
  readonly headers: Readonly<Record<string, string>>
}

const failure = (
  status: number,
  code: string,
  message: string,
  headers: Failure["headers"] = {},
): Failure => ({ status, code, messages: [message], headers })

const storeRetrySeconds = 5

// What a client learns of a project, a membership or a webhook is that it is not there. The same
// words for all clients: neither existence nor ownership shows.
const constant = {
  unauthorized: failure(401, "UNAUTHORIZED", "A valid bearer token is required.", {
    "WWW-Authenticate": "Bearer",
  }),
  routeNotFound: failure(404, "ROUTE_NOT_FOUND", "There is nothing at this path."),
  projectNotFound: failure(404, "PROJECT_NOT_FOUND", "The project was not found."),
  membershipNotFound: failure(404, "MEMBERSHIP_NOT_FOUND", "The membership was not found."),
  webhookNotFound: failure(404, "WEBHOOK_NOT_FOUND", "The webhook was not found."),
  requestTimeout: failure(408, "REQUEST_TIMEOUT", "The request did not arrive in time."),
  headersTooLarge: failure(431, "REQUEST_HEADERS_TOO_LARGE", "The header fields are too large."),
  invalidEndDate: {
    status: 422,
    code: "VALIDATION_ERROR",
    messages: [
      "extend must be a Unix timestamp in milliseconds (13 digits)",
      "extend must be a UTC ISO 8601 date with three millisecond digits (YYYY-MM-DDTHH:mm:ss.sssZ)",
    ],
    headers: {},
  } satisfies Failure,
  notInFuture: failure(422, "VALIDATION_ERROR", "extend must be a future timestamp"),
  internalError: failure(500, "INTERNAL_ERROR", "Something went wrong on our side."),
  unavailable: failure(503, "SERVICE_UNAVAILABLE", "The service is unavailable for the moment.", {
    "Retry-After": String(storeRetrySeconds),
  }),
}

/** Looks up what the envelope says of an error. */
export const describe = (error: ApiError): Failure => {
  switch (error._tag) {
    case "MalformedRequest":
      return failure(400, "MALFORMED_REQUEST", error.message)
    case "Unauthorized":
      return constant.unauthorized
    case "RouteNotFound":
      return constant.routeNotFound
    case "ProjectNotFound":
      return constant.projectNotFound
    case "MembershipNotFound":
      return constant.membershipNotFound
    case "WebhookNotFound":
      return constant.webhookNotFound
    case "MethodNotAllowed": {
      const allowed = error.allow.join(", ")
      return failure(405, "METHOD_NOT_ALLOWED", `This path takes ${allowed} only.`, {
        Allow: allowed,
      })
    }
    case "RequestTimeout":
      return constant.requestTimeout
    case "PayloadTooLarge":
      return failure(413, "PAYLOAD_TOO_LARGE", `The body is longer than ${error.limit} bytes.`)
    case "UnsupportedMediaType":
      return failure(415, "UNSUPPORTED_MEDIA_TYPE", error.message)
    case "InvalidEndDate":
      return constant.invalidEndDate
    case "EndDateNotInFuture":
      return constant.notInFuture
    case "InvalidInput":
    case "InvalidWebhookUrl":
      return failure(422, "VALIDATION_ERROR", error.message)
    case "WebhookLimitReached":
      return failure(422, "VALIDATION_ERROR", error.message)
    case "RateLimited":
      return failure(429, "RATE_LIMIT_EXCEEDED", `Try again in ${error.retryAfter} s.`, {
        "Retry-After": String(error.retryAfter),
      })
    case "RequestHeadersTooLarge":
      return constant.headersTooLarge
    case "InternalError":
      return constant.internalError
    case "StoreUnavailable":
      return constant.unavailable
  }
}
