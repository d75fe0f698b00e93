/** The storage ports for API keys and tickets. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type {
  ChangeContext,
  IdempotencyConflict,
  ReplayedResponse,
} from "../base/change-context.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ApiKeyId, ProjectNotFound } from "../base/values.ts"
import type {
  ApiKey,
  ApiKeyConflict,
  ApiKeyNotFound,
  ApiKeyRevoked,
  Ticket,
  TicketLimitReached,
  TokenDigest,
} from "./api-key.ts"

/**
 * The keys a caller may see and revoke: those that open at least one of these projects and no other, or
 * `"all"` keys.
 */
export type KeyScope = ReadonlySet<string> | "all"

/**
 * Stores API keys, with digests instead of tokens. A change with an idempotency key is made once, as in
 * a `MembershipStore`.
 */
export class ApiKeyStore extends Context.Service<
  ApiKeyStore,
  {
    /** Succeeds if the store answers and takes changes. */
    readonly ping: Effect.Effect<void, StoreUnavailable>

    /**
     * Adds a key and returns it as stored. If a key with the same digest exists, it gets the new key's
     * projects, and nothing else about it changes. If that key is revoked, the operation changes
     * nothing and fails with `ApiKeyRevoked`; if it has another role, with `ApiKeyConflict`. A replay
     * returns the key's id.
     */
    readonly add: (
      key: ApiKey,
      context: ChangeContext,
    ) => Effect.Effect<
      ApiKey | ReplayedResponse,
      ProjectNotFound | ApiKeyRevoked | ApiKeyConflict | IdempotencyConflict | StoreUnavailable
    >

    /** Returns the key with a digest, even if it was revoked or has expired. */
    readonly find: (digest: TokenDigest) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /**
     * Revokes a key permanently. Revoking it again changes nothing. Fails with `ApiKeyNotFound` if the
     * caller may not revoke it.
     */
    readonly revoke: (
      revocation: ChangeContext & { readonly keyId: ApiKeyId; readonly within: KeyScope },
    ) => Effect.Effect<
      ReplayedResponse | void,
      ApiKeyNotFound | IdempotencyConflict | StoreUnavailable
    >

    /**
     * Records when keys were used. Ignores uses earlier than the recorded one, and unknown keys. May
     * skip a record rather than wait for a lock.
     */
    readonly touch: (uses: ReadonlyMap<ApiKeyId, number>) => Effect.Effect<void, StoreUnavailable>

    /** Returns the keys' names, if they have one. */
    readonly names: (
      keyIds: ReadonlySet<ApiKeyId>,
    ) => Effect.Effect<ReadonlyMap<ApiKeyId, string>, StoreUnavailable>

    /**
     * Returns at most `limit` keys visible to the caller, oldest first: those after the key `after`.
     * Fails with `ApiKeyNotFound` if `after` is not visible to the caller.
     */
    readonly list: (page: {
      readonly after: ApiKeyId | undefined
      readonly limit: number
      readonly within: KeyScope
    }) => Effect.Effect<ReadonlyArray<ApiKey>, ApiKeyNotFound | StoreUnavailable>
  }
>()("@tenure/core/ApiKeyStore") {}

/** Limits for a key's tickets. */
export interface TicketLimits {
  /** How long a ticket lives, in milliseconds, by the store's clock. */
  readonly lifeMillis: number
  /** The maximum number of a key's live tickets. */
  readonly most: number
}

/**
 * Stores tickets for a minute, by digest. A store may lose them: their holders then request new ones.
 * It takes no part in the host's transactions.
 */
export class TicketStore extends Context.Service<
  TicketStore,
  {
    /**
     * Adds a ticket. Fails with `TicketLimitReached` if its key has the maximum number of live tickets,
     * counting those added concurrently.
     */
    readonly add: (
      ticket: Ticket,
      bounds: TicketLimits,
    ) => Effect.Effect<void, TicketLimitReached | StoreUnavailable>

    /**
     * Removes a ticket and returns it; returns `undefined` if it is unknown or expired. If several
     * calls take the same ticket concurrently, even in several processes, only one gets it.
     */
    readonly take: (digest: TokenDigest) => Effect.Effect<Ticket | undefined, StoreUnavailable>
  }
>()("@tenure/core/TicketStore") {}
