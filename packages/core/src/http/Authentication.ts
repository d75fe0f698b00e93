/** Authentication: finding out who sent a request. */

import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { type HeaderFields, single } from "../base/HeaderFields.ts"
import * as Step from "../base/Step.ts"
import type { ApiKey } from "../keys/ApiKey.ts"
import type { ApiKeys } from "../keys/ApiKeys.ts"
import * as Identity from "../keys/Identity.ts"
import type { Tickets } from "../keys/Tickets.ts"
import type { ApiError } from "./ApiError.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import * as Outcome from "./Outcome.ts"

const unauthorized: ApiError = { _tag: "Unauthorized" }

const repeated: ApiError = {
  _tag: "MalformedRequest",
  message: "The Authorization header was sent more than once.",
}

// The scheme is case-insensitive (RFC 9110, 11.1).
const bearer = /^bearer +(.*[^ ]) *$/i

/** Reads the bearer token of a request. */
const tokenOf = (headers: HeaderFields): Outcome.Outcome<string> => {
  const field = single(headers, "authorization")
  if (field._tag === "Repeated") return Outcome.fail(repeated)
  const token = field._tag === "Value" ? bearer.exec(field.value)?.[1] : undefined
  return token === undefined ? Outcome.fail(unauthorized) : Result.succeed(token)
}

const ofKey = (key: ApiKey | undefined): Effect.Effect<Identity.Principal, ApiError> =>
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
  identity: Identity.Identity | undefined,
): Effect.Effect<Identity.Principal, ApiError> =>
  identity ? Effect.succeed(Identity.toPrincipal(identity)) : Effect.fail(unauthorized)

/** Asks the host. What its function throws is a defect. */
const askHost = (
  authenticate: Identity.Authenticate<void>,
): Effect.Effect<Identity.Principal, ApiError> => {
  const answer = authenticate()
  return Predicate.isPromiseLike(answer)
    ? Effect.flatMap(
        Effect.promise(() => answer),
        ofIdentity,
      )
    : ofIdentity(answer)
}

/** Finds the key of the token in a request. */
const byToken = (
  { headers }: ApiRequest,
  clock: Clock.Clock,
  find: (token: string) => Effect.Effect<ApiKey | undefined, ApiError>,
): Effect.Effect<Identity.Principal, ApiError> => {
  const token = tokenOf(headers)
  return Result.isSuccess(token)
    ? Effect.flatMapEager(Step.begin(find(token.success), clock), ofKey)
    : Effect.fail(token.failure)
}

/** Reads the ticket of a request, which only those have who cannot send header fields. */
const ticketOf = ({ headers, query }: ApiRequest): string | undefined =>
  query?.includes("ticket=") === true && !Object.hasOwn(headers, "authorization")
    ? (new URLSearchParams(query).get("ticket") ?? undefined)
    : undefined

const ifHolder = (holder: Identity.Principal | undefined) =>
  holder === undefined ? Effect.fail(unauthorized) : Effect.succeed(holder)

/**
 * Finds out again who sent a request. Holds no more of the request than that takes, because connections
 * that stay open keep it.
 *
 * @param mostAge - how old the store's answer may be, in milliseconds, if that is less than
 *   `keyCacheLife`
 */
export type Renewal = (mostAge?: number) => Effect.Effect<Identity.Principal, ApiError>

/** Finds out who sent a request. */
export interface Authentication {
  /**
   * Redeems the ticket of the request, or else asks the adapter's authentication, or else the host's, or
   * else looks up the API key.
   */
  readonly identify: (request: ApiRequest) => Effect.Effect<Identity.Principal, ApiError>
  /** Knows only the holders of cached API keys. Asks neither a store nor the host. */
  readonly recall: (request: ApiRequest) => Effect.Effect<Identity.Principal, ApiError>
  /** Returns what finds out again who sent a request, as far as that can have changed. */
  readonly renewal: (request: ApiRequest, principal: Identity.Principal) => Renewal
}

/** Makes the authentication. */
export const make = (
  apiKeys: ApiKeys["Service"],
  tickets: Tickets["Service"],
  hostAuthenticate: Identity.Authenticate<ApiRequest> | undefined,
): Authentication => {
  /** Returns the authentication of the adapter, or else that of the host, if there is one. */
  const authenticateOf = (request: ApiRequest): Identity.Authenticate<void> | undefined =>
    request.authenticate ?? (hostAuthenticate && (() => hostAuthenticate(request)))

  return {
    identify: (request) =>
      // What a host throws is a defect of this effect.
      Step.make((clock) => {
        if (request.body._tag === "Unreadable") return Effect.fail(request.body.error)
        const ticket = ticketOf(request)
        if (ticket !== undefined) return Effect.flatMap(tickets.redeem(ticket), ifHolder)
        const authenticate = authenticateOf(request)
        return authenticate === undefined
          ? byToken(request, clock, apiKeys.authenticate)
          : askHost(authenticate)
      }),

    recall: (request) =>
      Step.make((clock) =>
        request.authenticate === undefined && hostAuthenticate === undefined
          ? byToken(request, clock, apiKeys.recall)
          : Effect.fail(unauthorized),
      ),

    renewal: (request, { digest, ticket }) => {
      // A ticket is not needed again.
      if (ticket !== undefined) {
        return (mostAge) => Effect.flatMap(tickets.renew(ticket, mostAge), ifHolder)
      }
      if (digest !== undefined) {
        return (mostAge) =>
          Step.make((clock) =>
            Effect.flatMapEager(Step.begin(apiKeys.byDigest(digest, mostAge), clock), ofKey),
          )
      }
      const authenticate = authenticateOf(request)
      return () => Step.make(() => askHost(() => authenticate?.()))
    },
  }
}
