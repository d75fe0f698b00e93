/** Operations on API keys, and the operation that returns the request's principal. */

import * as Predicate from "effect/Predicate"
import { brandedText, instantSetting, shownInstant } from "../base/input.ts"
import { input } from "../base/operation-input.ts"
import * as Setting from "../base/setting.ts"
import { type InstantInput, readInstant, toInstantInput } from "../base/time.ts"
import { ApiKeyId } from "../base/values.ts"
import { roles } from "../keys/api-key.ts"
import { keyPath } from "../keys/inputs.ts"
import { declareOperations, pageFields, paged, plain } from "./declaration.ts"
import type { Instant, Uuid } from "./types.ts"

/**
 * The key's permission; each role includes the permissions before it.
 * @example "client"
 */
type Role = (typeof roles)[number]

export interface ApiKey {
  /** The key's id. */
  readonly id: Uuid
  /**
   * The key's display name.
   * @minLength 1
   * @maxLength 255
   * @example "nightly import"
   */
  readonly name: string | null
  readonly role: Role
  /**
   * Ids of the projects in the key's scope; `all` for present and future ones.
   * @example ["demo"]
   */
  readonly projects: "all" | ReadonlyArray<string>
  readonly created_at: Instant
  readonly expires_at: Instant | null
  readonly revoked_at: Instant | null
  /** When the key was last used, to about a minute. */
  readonly last_used_at: Instant | null
}

export interface IssuedApiKey extends Pick<ApiKey, "id"> {
  /**
   * The bearer token, shown only once; null in a replayed response.
   * @example "tnr_jVQ0dYqN0zv2mXxq0T5yq3yq9mGmQXoVxKf3mS1b7aE"
   */
  readonly token: string | null
}

export interface Identity extends Pick<ApiKey, "role" | "projects"> {
  /**
   * The API key's id, or the id of another principal named by the host.
   * @example "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
   */
  readonly key_id: string
  /**
   * Whether the sender may change nothing.
   * @example false
   */
  readonly read_only: boolean
}

const all = "/v2/api-keys"

/** A page from the list of keys. */
const keysQuery = input(
  {},
  {
    ...pageFields,
    /** The previous page's `next`; without it, the first page. */
    after: Setting.optional(brandedText(ApiKeyId)),
  },
)

const isProjects = (given: unknown): boolean =>
  given === "all" || (Array.isArray(given) && given.every(Predicate.isString))

const parseExpiry = (given: unknown): InstantInput | undefined => {
  const millis =
    Predicate.isString(given) || Predicate.isNumber(given) ? readInstant(given) : undefined
  return millis === undefined ? undefined : toInstantInput(millis)
}

/** A key to issue. Its values are checked after the permission to use its projects. */
const newApiKey = input(
  {},
  {
    /**
     * Ids of the projects in the key's scope; `all` for present and future ones.
     * @example ["demo"]
     */
    projects: Setting.inJson(
      Setting.guarded<ReadonlyArray<string> | "all">(
        'an array of at least one project id, or "all"',
        isProjects,
      ),
      { anyOf: [{ enum: ["all"] }, { type: "array", items: { type: "string" } }] },
    ),
    role: Setting.inJson(Setting.oneOf(roles), { $ref: "Role" }),
    /**
     * The key's display name.
     * @example "nightly import"
     */
    name: Setting.optional(
      Setting.inJson(Setting.guarded<string>("text", Predicate.isString), {
        type: "string",
        minLength: 1,
        maxLength: 255,
      }),
    ),
    /**
     * A future date. By default, the key never expires.
     * @example "2099-01-01T00:00:00.000Z"
     */
    expiresAt: Setting.optional(
      Setting.inJson(
        Setting.custom<string | number, InstantInput>(
          "a time, as YYYY-MM-DDTHH:mm:ss.sssZ or whole milliseconds since the epoch",
          parseExpiry,
          shownInstant,
        ),
        { ...instantSetting.json },
      ),
    ),
  },
)

/**
 * API keys
 *
 * API keys authenticate clients, each with a role and a scope.
 */
export const apiKeyOperations = declareOperations({
  /**
   * List API keys
   *
   * Returns API keys within the own key's scope, including revoked and expired ones, oldest first.
   */
  list: {
    method: "GET",
    pattern: all,
    role: "admin",
    input: keysQuery,
    reply: paged<ReadonlyArray<ApiKey>>("The API keys."),
    errors: [],
  },
  /**
   * Issue an API key
   *
   * Issues a key. Its scope must be within the own key's scope.
   */
  issue: {
    method: "POST",
    pattern: all,
    role: "admin",
    input: newApiKey,
    reply: plain<IssuedApiKey>("The API key was issued. Its token will not be shown again."),
    errors: ["ProjectNotFound"],
  },
  /**
   * Revoke an API key
   *
   * Revokes a key for good. Revoking it again changes nothing.
   */
  revoke: {
    method: "DELETE",
    pattern: `${all}/:key_id`,
    role: "admin",
    input: input(keyPath, {}),
    reply: plain<null>("The API key was revoked."),
    errors: ["ApiKeyNotFound"],
  },
})

/**
 * Identity
 *
 * The principal behind a request.
 */
export const identityOperations = declareOperations({
  /**
   * Get the identity
   *
   * Returns the request's principal, with its role and scope.
   */
  get: {
    method: "GET",
    pattern: "/v2/identity",
    role: "client",
    input: input({}, {}),
    reply: plain<Identity>("Who sent the request."),
    errors: [],
  },
})
