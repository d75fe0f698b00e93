/**
 * Operations on API keys, tickets and identities. A principal sees, issues and revokes only keys with
 * no more access than its own.
 */

import * as Effect from "effect/Effect"
import { apiKeyOperations, identityOperations } from "../api/api-keys.ts"
import { ofResource } from "../api/declaration.ts"
import type { ApiErrorOf } from "../api/errors.ts"
import { realtimeOperations } from "../api/realtime.ts"
import { InvalidInput } from "../base/errors.ts"
import { ApiKeyActs, type Listed } from "../keys/api-keys.ts"
import type { Principal } from "../keys/identity.ts"
import { newKey } from "../keys/inputs.ts"
import { Tickets } from "../keys/tickets.ts"
import {
  type OperationsOn,
  isoOrNull,
  mayUseProject,
  perform,
  sortedProjects,
} from "./operation.ts"
import { pageReply } from "./response.ts"

/** Names the body field behind an error. */
const named = (error: InvalidInput): InvalidInput =>
  error.field === "expiresAt"
    ? new InvalidInput({ field: "expires_at", problem: error.problem })
    : error

/** Fails unless the principal may use all the projects. */
const permit = (
  principal: Principal,
  projects: ReadonlyArray<string>,
): Effect.Effect<void, ApiErrorOf<"ProjectNotFound">> =>
  projects.every((id) => mayUseProject(principal, id))
    ? Effect.void
    : Effect.fail({ _tag: "ProjectNotFound" })

const forbidden: Effect.Effect<never, ApiErrorOf<"Forbidden">> = Effect.fail({ _tag: "Forbidden" })

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
  const acts = yield* ApiKeyActs
  const { issue, list, revoke } = apiKeyOperations

  return ofResource("apiKeys", {
    list: perform(list, maxBodyBytes, ({ after, limit }, _context, { principal }) =>
      Effect.map(acts.list({ after, limit: limit + 1, within: principal.projects }), (found) =>
        pageReply(found, limit, ({ id }) => id, dataOf),
      ),
    ),

    issue: perform(issue, maxBodyBytes, (body, context, { principal }) =>
      Effect.gen(function* () {
        if (body.projects !== "all") yield* permit(principal, body.projects)
        else if (principal.projects !== "all") return yield* forbidden
        return { data: yield* acts.issue(yield* Effect.fromResult(newKey.fromHost(body)), context) }
      }).pipe(
        Effect.catchTags({
          ApiKeyIssued: ({ keyId }) => Effect.succeed({ data: { id: keyId, token: null } }),
          InvalidInput: (error) => Effect.fail(named(error)),
          // No key has the token just made.
          ApiKeyRevoked: Effect.die,
          ApiKeyConflict: Effect.die,
        }),
      ),
    ),

    revoke: perform(revoke, maxBodyBytes, ({ keyId }, context, { principal }) =>
      Effect.as(acts.revoke({ keyId, within: principal.projects }, context), { data: null }),
    ),
  }) satisfies OperationsOn<"apiKeys">
})

/** Makes the operation that returns the request's principal. */
export const makeIdentityOperations = (maxBodyBytes: number) =>
  ofResource("identity", {
    get: perform(identityOperations.get, maxBodyBytes, (_input, _context, { principal }) =>
      Effect.succeed({
        data: {
          key_id: principal.keyId,
          role: principal.role,
          projects: sortedProjects(principal.projects),
          read_only: principal.isReadOnly,
        },
      }),
    ),
  }) satisfies OperationsOn<"identity">

// As long as a ticket lives: by then, there is room.
const tooManyTickets: Effect.Effect<never, ApiErrorOf<"RateLimited">> = Effect.fail({
  _tag: "RateLimited",
  retryAfter: 60,
})

/**
 * Makes the operations for long-lived connections.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeRealtimeOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const tickets = yield* Tickets

  return ofResource("realtime", {
    // A repetition with an idempotency key gets another ticket: none can be shown again.
    issueTicket: perform(
      realtimeOperations.issueTicket,
      maxBodyBytes,
      ({ projects }, _context, { principal }) =>
        Effect.gen(function* () {
          if (projects !== "all") yield* permit(principal, projects)
          const { expiresAt, ticket } = yield* Effect.catchTag(
            tickets.issue(principal, projects === "all" ? projects : new Set(projects)),
            "TicketLimitReached",
            () => tooManyTickets,
          )
          return { data: { ticket, expires_at: isoOrNull(expiresAt) } }
        }),
    ),
  }) satisfies OperationsOn<"realtime">
})
