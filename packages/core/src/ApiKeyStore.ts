/** The storage port for API keys. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKey, ApiKeyId, ApiKeyNotFound, ApiKeyRevoked, TokenDigest } from "./ApiKey.ts"
import type { ProjectNotFound } from "./Project.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

/** Keeps API keys; of their tokens, digests only. */
export class ApiKeyStore extends Context.Service<
  ApiKeyStore,
  {
    /**
     * Adds a key. If there is one with the same digest, that one also opens the new one's projects
     * and is otherwise left as it is; if that one was revoked, nothing changes. Gives the key as it
     * is now.
     */
    readonly add: (
      key: ApiKey,
    ) => Effect.Effect<ApiKey, ProjectNotFound | ApiKeyRevoked | StoreUnavailable>

    /** Looks a key up by the digest of its token, revoked and expired ones included. */
    readonly find: (digest: TokenDigest) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /** Revokes a key, at once and for good; revoking it again changes nothing. */
    readonly revoke: (
      keyId: ApiKeyId,
      at: number,
    ) => Effect.Effect<void, ApiKeyNotFound | StoreUnavailable>

    /** Reads all keys, oldest first. */
    readonly list: Effect.Effect<ReadonlyArray<ApiKey>, StoreUnavailable>
  }
>()("@tenure/core/ApiKeyStore") {}
