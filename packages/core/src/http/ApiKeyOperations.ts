/** The operations on API keys. Nobody sees, issues or revokes a key that may more than the own one. */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Instant from "../base/Instant.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"
import { ApiKeys, type Issue, type Listed } from "../keys/ApiKeys.ts"
import type { Principal } from "../keys/Identity.ts"
import { roles } from "../keys/Role.ts"
import type { ApiError } from "./ApiError.ts"
import {
  bodyOf,
  idOf,
  opens,
  type OperationsOn,
  originOf,
  sortedProjects,
  timeOf,
} from "./Operation.ts"
import * as Page from "./Page.ts"
import * as Query from "./Query.ts"

const isProjects = (given: unknown): boolean =>
  given === "all" || (Array.isArray(given) && given.every(Predicate.isString))

const expiry = "a time, as YYYY-MM-DDTHH:mm:ss.sssZ or whole milliseconds since the epoch"

/** Reads when the key expires. */
const parseExpiry = (given: unknown): number | undefined =>
  Predicate.isString(given) || Predicate.isNumber(given) ? Instant.fromInput(given) : undefined

// A field that is misspelled would issue a key that may more, or longer, than was meant.
const issueBody = Setting.struct({
  projects: Setting.checked<Issue["projects"]>(
    'an array of at least one project id, or "all"',
    isProjects,
  ),
  role: Setting.oneOf(roles),
  name: Setting.optional(Setting.checked<string>("text", Predicate.isString)),
  expires_at: Setting.optional(Setting.make<string | number, number>(expiry, parseExpiry)),
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
  return projects.every((id) => opens(principal, id))
    ? Effect.void
    : Effect.fail({ _tag: "ProjectNotFound" })
}

const dataOf = (key: Listed) => ({
  id: key.id,
  name: key.name ?? null,
  role: key.role,
  projects: sortedProjects(key.projects),
  created_at: timeOf(key.createdAt),
  expires_at: timeOf(key.expiresAt),
  revoked_at: timeOf(key.revokedAt),
  last_used_at: timeOf(key.lastUsedAt),
})

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const make = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const apiKeys = yield* ApiKeys

  return {
    "apiKeys.list": Effect.fnUntraced(function* (call) {
      const { after, limit } = yield* Query.read(call.request, Query.page)
      const within = call.principal.projects
      const found = yield* apiKeys.list({ after, limit: limit + 1, within })
      return { message: "The API keys.", ...Page.of(found, limit, ({ id }) => id, dataOf) }
    }),

    "apiKeys.issue": Effect.fnUntraced(function* (call) {
      yield* Query.read(call.request, {})
      const body = yield* bodyOf(call, maxBodyBytes)
      const { expires_at, ...key } = yield* Setting.read(issueBody, body)
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
      yield* Query.read(call.request, {})
      const keyId = yield* idOf(call.params.key_id)
      yield* apiKeys.revoke(keyId, originOf(call), {
        within: call.principal.projects,
        idempotencyKey: call.once,
      })
      return { message: "The API key was revoked.", data: null }
    }),
  } satisfies OperationsOn<"apiKeys">
})
