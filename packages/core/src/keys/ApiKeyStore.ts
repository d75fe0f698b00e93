/** The storage port for API keys. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Conflict, Replayed } from "../base/Once.ts"
import type { Occasion } from "../base/Origin.ts"
import type { ProjectNotFound } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type {
  ApiKey,
  ApiKeyConflict,
  ApiKeyId,
  ApiKeyNotFound,
  ApiKeyRevoked,
  TokenDigest,
} from "./ApiKey.ts"

/**
 * The keys that somebody may see and revoke: those that open at least one of these projects and no
 * other, or `"all"` keys.
 */
export type Within = ReadonlySet<string> | "all"

/**
 * Stores API keys, with digests in place of their tokens. A change with an idempotency key is made once,
 * as by a `MembershipStore`.
 */
export class ApiKeyStore extends Context.Service<
  ApiKeyStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Adds a key and returns it as stored. If a key with the same digest exists, that one opens the
     * new one's projects as well, and nothing else about it changes. If that one was revoked, the
     * operation changes nothing and fails with `ApiKeyRevoked`; if it has another role, with
     * `ApiKeyConflict`. The answer of a replay is the id of the key.
     */
    readonly add: (
      key: ApiKey,
      occasion: Occasion,
    ) => Effect.Effect<
      ApiKey | Replayed,
      ProjectNotFound | ApiKeyRevoked | ApiKeyConflict | Conflict | StoreUnavailable
    >

    /** Returns the key with a digest, even if it was revoked or has expired. */
    readonly find: (digest: TokenDigest) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /**
     * Revokes a key for good. Revoking it again changes nothing. Fails with `ApiKeyNotFound` if it is
     * not one of those that the caller may revoke.
     */
    readonly revoke: (
      revocation: Occasion & { readonly keyId: ApiKeyId; readonly within: Within },
    ) => Effect.Effect<Replayed | void, ApiKeyNotFound | Conflict | StoreUnavailable>

    /**
     * Records when keys were used. An earlier use than the recorded one changes nothing, and neither
     * does one of an unknown key. A record may be left out rather than wait for a lock.
     */
    readonly touch: (uses: ReadonlyMap<ApiKeyId, number>) => Effect.Effect<void, StoreUnavailable>

    /** Returns the names of keys, of those that have one. */
    readonly names: (
      keyIds: ReadonlySet<ApiKeyId>,
    ) => Effect.Effect<ReadonlyMap<ApiKeyId, string>, StoreUnavailable>

    /**
     * Returns at most `limit` of the keys that the caller may see, oldest first: those after the key
     * `after`. Fails with `ApiKeyNotFound` if that is not one of those that the caller may see.
     */
    readonly list: (page: {
      readonly after: ApiKeyId | undefined
      readonly limit: number
      readonly within: Within
    }) => Effect.Effect<ReadonlyArray<ApiKey>, ApiKeyNotFound | StoreUnavailable>
  }
>()("@tenure/core/ApiKeyStore") {}
