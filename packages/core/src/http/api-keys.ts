/** The operations on API keys. Nobody sees, issues or revokes a key that may more than the own one. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { InvalidInput } from "../base/errors.ts"
import { shownInstant } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput, readInstant, toInstantInput } from "../base/time.ts"
import { roles } from "../keys/api-key.ts"
import { ApiKeys, type Issue, type Listed } from "../keys/api-keys.ts"
import type { Principal } from "../keys/identity.ts"
import { Tickets } from "../keys/tickets.ts"
import type { ApiError } from "./errors.ts"
import {
  type OperationsOn,
  bodyOf,
  decodePathParam,
  isoOrNull,
  mayUseProject,
  originOf,
  pageQuery,
  readQuery,
  sortedProjects,
} from "./operation.ts"
import { pageReply } from "./response.ts"

const isProjects = (given: unknown): boolean =>
  given === "all" || (Array.isArray(given) && given.every(Predicate.isString))

const expiry = "a time, as YYYY-MM-DDTHH:mm:ss.sssZ or whole milliseconds since the epoch"

/** Reads when the key expires. */
const parseExpiry = (given: unknown): InstantInput | undefined => {
  const millis =
    Predicate.isString(given) || Predicate.isNumber(given) ? readInstant(given) : undefined
  return millis === undefined ? undefined : toInstantInput(millis)
}

// A field that is misspelled would issue a key that may more, or longer, than was meant.
const issueBody = Setting.object({
  projects: Setting.guarded<Issue["projects"]>(
    'an array of at least one project id, or "all"',
    isProjects,
  ),
  role: Setting.oneOf(roles),
  name: Setting.optional(Setting.guarded<string>("text", Predicate.isString)),
  expires_at: Setting.optional(
    Setting.custom<string | number, InstantInput>(expiry, parseExpiry, shownInstant),
  ),
})

/** Names the field of the body that an error of the service is about. */
const named = (error: InvalidInput): InvalidInput =>
  error.field === "expiresAt"
    ? new InvalidInput({ field: "expires_at", problem: error.problem })
    : error

/** Fails unless the sender may use all of the projects. */
const permit = (
  principal: Principal,
  projects: Issue["projects"],
): Effect.Effect<void, ApiError> => {
  if (projects === "all") {
    return principal.projects === "all" ? Effect.void : Effect.fail({ _tag: "Forbidden" })
  }
  return projects.every((id) => mayUseProject(principal, id))
    ? Effect.void
    : Effect.fail({ _tag: "ProjectNotFound" })
}

const dataOf = (key: Listed) => ({
  id: key.id,
  name: key.name ?? null,
  role: key.role,
  projects: sortedProjects(key.projects),
  created_at: isoOrNull(key.createdAt),
  expires_at: isoOrNull(key.expiresAt),
  revoked_at: isoOrNull(key.revokedAt),
  last_used_at: isoOrNull(key.lastUsedAt),
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeApiKeyOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const apiKeys = yield* ApiKeys

  return {
    "apiKeys.list": Effect.fnUntraced(function* (call) {
      const { after, limit } = yield* readQuery(call.request, pageQuery)
      const within = call.principal.projects
      const found = yield* apiKeys.list({ after, limit: limit + 1, within })
      return { message: "The API keys.", ...pageReply(found, limit, ({ id }) => id, dataOf) }
    }),

    "apiKeys.issue": Effect.fnUntraced(function* (call) {
      yield* readQuery(call.request, {})
      const body = yield* bodyOf(call, maxBodyBytes)
      const { expires_at, ...key } = yield* Setting.decode(issueBody, body)
      yield* permit(call.principal, key.projects)
      const issued = yield* Effect.catchTags(
        apiKeys.issue({ ...key, expiresAt: expires_at, idempotencyKey: call.once }, originOf(call)),
        {
          ApiKeyIssued: ({ keyId }) => Effect.succeed({ id: keyId, token: null }),
          InvalidInput: (error) => Effect.fail(named(error)),
          // No key has a token that was just made.
          ApiKeyRevoked: Effect.die,
          ApiKeyConflict: Effect.die,
        },
      )
      return {
        message: "The API key was issued. Its token will not be shown again.",
        data: issued,
      }
    }),

    "apiKeys.revoke": Effect.fnUntraced(function* (call) {
      yield* readQuery(call.request, {})
      const keyId = yield* decodePathParam(call.params.key_id)
      yield* apiKeys.revoke(keyId, originOf(call), {
        within: call.principal.projects,
        idempotencyKey: call.once,
      })
      return { message: "The API key was revoked.", data: null }
    }),
  } satisfies OperationsOn<"apiKeys">
})

/** The operation that tells who sends a request. */

/** Makes the operation. */
export const makeIdentityOperations = () =>
  ({
    "identity.get": Effect.fnUntraced(function* ({ principal, request }) {
      yield* readQuery(request, {})
      const { isReadOnly, keyId, projects, role } = principal
      return {
        message: "Who sent the request.",
        data: {
          key_id: keyId,
          role,
          projects: sortedProjects(projects),
          read_only: isReadOnly,
        },
      }
    }),
  }) satisfies OperationsOn<"identity">

/** The operations for connections that stay open. */

const mostProjects = 100

const realtimeOperationsIsProjects = (given: unknown): boolean =>
  given === "all" ||
  (Array.isArray(given) &&
    given.length >= 1 &&
    given.length <= mostProjects &&
    given.every(Predicate.isString))

const ticketBody = Setting.object({
  projects: Setting.guarded<ReadonlyArray<string> | "all">(
    `an array of 1 to ${mostProjects} project ids, or "all"`,
    realtimeOperationsIsProjects,
  ),
})

// As long as a ticket lives: by then, there is room.
const tooManyTickets: Effect.Effect<never, ApiError> = Effect.fail({
  _tag: "RateLimited",
  retryAfter: 60,
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeRealtimeOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const tickets = yield* Tickets

  return {
    // A repetition with an idempotency key gets another ticket: none can be shown again.
    "realtime.issueTicket": Effect.fnUntraced(function* (call) {
      yield* readQuery(call.request, {})
      const { projects } = yield* Setting.decode(ticketBody, yield* bodyOf(call, maxBodyBytes))
      if (projects !== "all" && !projects.every((id) => mayUseProject(call.principal, id))) {
        return yield* Effect.fail<ApiError>({ _tag: "ProjectNotFound" })
      }
      const { expiresAt, ticket } = yield* Effect.catchTag(
        tickets.issue(call.principal, projects === "all" ? projects : new Set(projects)),
        "TicketLimitReached",
        () => tooManyTickets,
      )
      return {
        message: "The ticket was issued. It can be used once.",
        data: { ticket, expires_at: isoOrNull(expiresAt) },
      }
    }),
  } satisfies OperationsOn<"realtime">
})
