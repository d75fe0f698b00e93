/** Authentication: finds a request's principal, and checks whether a client following events may go on. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ApiError, ApiErrorOf } from "../api/errors.ts"
import type { ErrorReporter } from "../base/faults.ts"
import { type HeaderFields, singleHeader } from "../base/headers.ts"
import { maxAccessAge } from "../events/listeners.ts"
import type { ApiKey } from "../keys/api-key.ts"
import type { ApiKeys } from "../keys/api-keys.ts"
import { type Authenticate, type Identity, type Principal, toPrincipal } from "../keys/identity.ts"
import type { Tickets } from "../keys/tickets.ts"
import { mayUseProject } from "./operation.ts"
import type { ApiRequest } from "./request.ts"
import { type Outcome, apiErrorIn, failOutcome } from "./response.ts"

const unauthorized: ApiErrorOf<"Unauthorized"> = { _tag: "Unauthorized" }

const repeated: ApiError = {
  _tag: "MalformedRequest",
  message: "The Authorization header was sent more than once.",
}

// The scheme is case-insensitive (RFC 9110, 11.1).
const bearer = /^bearer +(.*[^ ]) *$/i

/** Reads a request's bearer token. */
const tokenOf = (headers: HeaderFields): Outcome<string> => {
  const field = singleHeader(headers, "authorization")
  if (field._tag === "Repeated") return failOutcome(repeated)
  const token = field._tag === "Value" ? bearer.exec(field.value)?.[1] : undefined
  return token === undefined ? failOutcome(unauthorized) : Result.succeed(token)
}

const ofKey = (key: ApiKey | undefined): Effect.Effect<Principal, ApiErrorOf<"Unauthorized">> =>
  key === undefined
    ? Effect.fail(unauthorized)
    : Effect.succeed({
        keyId: key.id,
        role: key.role,
        projects: key.projects,
        isReadOnly: false,
        digest: key.digest,
      })

// Hosts without types may also return `null` or `false`.
const ofIdentity = (
  identity: Identity | undefined,
): Effect.Effect<Principal, ApiErrorOf<"Unauthorized">> =>
  identity ? Effect.succeed(toPrincipal(identity)) : Effect.fail(unauthorized)

/** Asks the host. Errors thrown by its function are defects. */
const askHost = (
  authenticate: Authenticate<void>,
): Effect.Effect<Principal, ApiErrorOf<"Unauthorized">> => {
  const answer = authenticate()
  return Predicate.isPromiseLike(answer)
    ? Effect.flatMap(
        Effect.promise(() => answer),
        ofIdentity,
      )
    : ofIdentity(answer)
}

/** Finds the API key for a request's token. */
const byToken = (
  { headers }: ApiRequest,
  find: (token: string) => Effect.Effect<ApiKey | undefined, ApiError>,
): Effect.Effect<Principal, ApiError> => {
  const token = tokenOf(headers)
  return Result.isSuccess(token)
    ? Effect.flatMap(find(token.success), ofKey)
    : Effect.fail(token.failure)
}

/** Reads a request's ticket. Only clients that cannot send header fields use one. */
const ticketOf = ({ headers, query }: ApiRequest): string | undefined =>
  query?.includes("ticket=") === true && !Object.hasOwn(headers, "authorization")
    ? (new URLSearchParams(query).get("ticket") ?? undefined)
    : undefined

const ifHolder = (holder: Principal | undefined) =>
  holder === undefined ? Effect.fail(unauthorized) : Effect.succeed(holder)

/**
 * Authenticates a request again. Keeps only the needed parts in memory, because open connections hold
 * them.
 *
 * @param maxAge - the store's answer may be this old, in milliseconds, if that is less than
 *   `keyCacheTtl`
 */
type Reauthenticate = (
  maxAge?: number,
) => Effect.Effect<Principal, ApiErrorOf<"StoreUnavailable" | "Unauthorized">>

/** Authenticates requests. */
export interface Authentication {
  /**
   * Redeems the request's ticket, or else asks the adapter's authentication, or else the host's, or
   * else looks up the API key.
   */
  readonly identify: (request: ApiRequest) => Effect.Effect<Principal, ApiError>
  /** Knows only cached API keys. Asks neither a store nor the host. */
  readonly recall: (request: ApiRequest) => Effect.Effect<Principal, ApiError>
  /** Returns a function that authenticates the request again, as far as the result can have changed. */
  readonly renewal: (request: ApiRequest, principal: Principal) => Reauthenticate
}

/** Makes the authentication. */
export const makeAuthentication = (
  apiKeys: ApiKeys["Service"],
  tickets: Tickets["Service"],
  hostAuthenticate: Authenticate<ApiRequest> | undefined,
): Authentication => {
  /** Returns the adapter's authentication, or else the host's, if there is one. */
  const authenticateOf = (request: ApiRequest): Authenticate<void> | undefined =>
    request.authenticate ?? (hostAuthenticate && (() => hostAuthenticate(request)))

  return {
    identify: (request) =>
      // An error thrown by the host is a defect in this effect.
      Effect.suspend(() => {
        if (request.body._tag === "Unreadable") return Effect.fail(request.body.error)
        const ticket = ticketOf(request)
        if (ticket !== undefined) return Effect.flatMap(tickets.redeem(ticket), ifHolder)
        const authenticate = authenticateOf(request)
        return authenticate === undefined
          ? byToken(request, apiKeys.authenticate)
          : askHost(authenticate)
      }),

    recall: (request) =>
      request.authenticate === undefined && hostAuthenticate === undefined
        ? byToken(request, apiKeys.recall)
        : Effect.fail(unauthorized),

    renewal: (request, { digest, ticket }) => {
      // A ticket is not needed again.
      if (ticket !== undefined) {
        return (maxAge) => Effect.flatMap(tickets.renew(ticket, maxAge), ifHolder)
      }
      if (digest !== undefined) {
        return (maxAge) => Effect.flatMap(apiKeys.byDigest(digest, maxAge), ofKey)
      }
      const authenticate = authenticateOf(request)
      return () => Effect.suspend(() => askHost(() => authenticate?.()))
    },
  }
}

/** A client's access to a project, kept as long as the client follows the project. */
export interface StreamAccess {
  readonly projectId: string
  readonly renew: Reauthenticate
  /** The request that obtained it. */
  readonly requestId: string
}

/** Why a client may not follow a project. */
type AccessError = ApiErrorOf<"ProjectNotFound" | "StoreUnavailable" | "Unauthorized">

/** No slot is free. One will be at the latest when the longest poll has ended. */
export const connectionLimitError: ApiErrorOf<"RateLimited"> = {
  _tag: "RateLimited",
  retryAfter: 20,
}

/**
 * Fails if the client may not use the project any more, or if another project has its id now.
 *
 * @param age - the store's answer may be this old, in milliseconds, if that is less than `keyCacheTtl`
 */
export const recheckAccess = (
  { projectId, renew }: StreamAccess,
  age?: number,
): Effect.Effect<void, AccessError> =>
  Effect.flatMap(renew(age), (principal) =>
    mayUseProject(principal, projectId) ? Effect.void : Effect.fail({ _tag: "ProjectNotFound" }),
  )

/** Fails unless the client may follow the project, according to present knowledge. */
export const admit = (access: StreamAccess): Effect.Effect<void, AccessError> =>
  recheckAccess(access, maxAccessAge)

/** Tells whether the client may still follow the project: `undefined` if a store does not answer. */
export const isStillAllowed = (
  access: StreamAccess,
  faults: ErrorReporter,
): Effect.Effect<boolean | undefined> =>
  // Made anew each time: thousands of connections keep it.
  Effect.suspend(() =>
    Effect.matchCauseEffect(admit(access), {
      onSuccess: () => Effect.succeed(true),
      onFailure: (cause) => {
        const error = apiErrorIn(cause)
        if (error?._tag === "StoreUnavailable") return Effect.undefined
        if (error !== undefined) return Effect.succeed(false)
        const reported = faults.defect("A listener could not be checked", cause, access.requestId)
        return Effect.as(reported, false)
      },
    }),
  )
