/** The storage port for API keys. */

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
 * The keys that somebody may see and revoke: those that open at least one of these projects and no
 * other, or `"all"` keys.
 */
export type KeyScope = ReadonlySet<string> | "all"

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
      occasion: ChangeContext,
    ) => Effect.Effect<
      ApiKey | ReplayedResponse,
      ProjectNotFound | ApiKeyRevoked | ApiKeyConflict | IdempotencyConflict | StoreUnavailable
    >

    /** Returns the key with a digest, even if it was revoked or has expired. */
    readonly find: (digest: TokenDigest) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /**
     * Revokes a key for good. Revoking it again changes nothing. Fails with `ApiKeyNotFound` if it is
     * not one of those that the caller may revoke.
     */
    readonly revoke: (
      revocation: ChangeContext & { readonly keyId: ApiKeyId; readonly within: KeyScope },
    ) => Effect.Effect<
      ReplayedResponse | void,
      ApiKeyNotFound | IdempotencyConflict | StoreUnavailable
    >

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
      readonly within: KeyScope
    }) => Effect.Effect<ReadonlyArray<ApiKey>, ApiKeyNotFound | StoreUnavailable>
  }
>()("@tenure/core/ApiKeyStore") {}

/** The storage port for tickets. */

/** What bounds the tickets of a key. */
export interface TicketLimits {
  /** How long a ticket lives, in milliseconds, by the store's clock. */
  readonly lifeMillis: number
  /** How many tickets of a key may live at a time. */
  readonly most: number
}

/**
 * Stores tickets for a minute, with digests in their place. A store may lose them: whoever has a lost one
 * asks for another. It takes no part in transactions of the host.
 */
export class TicketStore extends Context.Service<
  TicketStore,
  {
    /**
     * Adds a ticket. Fails with `TicketLimitReached` if as many of its key live as may, also of those that are
     * added at the same time.
     */
    readonly add: (
      ticket: Ticket,
      bounds: TicketLimits,
    ) => Effect.Effect<void, TicketLimitReached | StoreUnavailable>

    /**
     * Removes a ticket and returns it; returns `undefined` if it is unknown or has expired. Of several
     * calls for one ticket, at the same time or in several processes, only one gets it.
     */
    readonly take: (digest: TokenDigest) => Effect.Effect<Ticket | undefined, StoreUnavailable>
  }
>()("@tenure/core/TicketStore") {}
