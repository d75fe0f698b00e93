/** The storage port for API keys. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ProjectNotFound } from "../base/Project.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { ApiKey, ApiKeyId, ApiKeyNotFound, ApiKeyRevoked, TokenDigest } from "./ApiKey.ts"

/** Stores API keys, with digests in place of their tokens. */
export class ApiKeyStore extends Context.Service<
  ApiKeyStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Adds a key and returns it as stored. If a key with the same digest exists, that one opens the
     * new one's projects as well, and nothing else about it changes. If that one was revoked, the
     * operation changes nothing and fails with `ApiKeyRevoked`.
     */
    readonly add: (
      key: ApiKey,
    ) => Effect.Effect<ApiKey, ProjectNotFound | ApiKeyRevoked | StoreUnavailable>

    /** Returns the key with a digest, even if it was revoked or has expired. */
    readonly find: (digest: TokenDigest) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /** Revokes a key for good. Revoking it again changes nothing. */
    readonly revoke: (
      keyId: ApiKeyId,
      at: number,
    ) => Effect.Effect<void, ApiKeyNotFound | StoreUnavailable>

    /** Returns all keys, oldest first. */
    readonly list: Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
  }
>()("@tenure/core/ApiKeyStore") {}
