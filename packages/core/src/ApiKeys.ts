/** API keys: issuing, revoking, and telling whose a token is. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ApiKey from "./ApiKey.ts"
import { ApiKeyStore } from "./ApiKeyStore.ts"
import * as Base64 from "./internal/base64.ts"
import * as Input from "./internal/input.ts"
import * as KeyCache from "./internal/keyCache.ts"
import { InvalidInput } from "./InvalidInput.ts"
import type { ProjectNotFound } from "./Project.ts"
import * as Setting from "./Setting.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

/** Options of the service. */
export interface Options {
  /**
   * How long it is believed whose a token is before the store is asked again; `"10 seconds"` by
   * default, 0 for asking each time. A key that another process has revoked works that much longer.
   */
  readonly keyCacheLife?: Duration.Input | undefined
}

/** What a new key is to be. */
export interface Issue {
  /** Ids of the projects it opens. */
  readonly projects: ReadonlyArray<string>
  /** A token that clients have already; a fresh one by default. */
  readonly token?: string | undefined
  /** When it stops opening anything, in milliseconds since the epoch; never by default. */
  readonly expiresAt?: number | undefined
}

/** A key just issued. The token is nowhere to be had again. */
export interface Issued {
  readonly id: ApiKey.ApiKeyId
  readonly token: string
}

/** What is known of a key. */
export type Listed = Omit<ApiKey.ApiKey, "digest">

/** Issues, lists and revokes API keys. */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /**
     * Issues a key. With a token that is a key's already, that key also opens these projects, and
     * expires when it did before. Fails with `ApiKeyRevoked` where that key was revoked.
     */
    readonly issue: (
      issue: Issue,
    ) => Effect.Effect<
      Issued,
      InvalidInput | ProjectNotFound | ApiKey.ApiKeyRevoked | StoreUnavailable
    >

    /**
     * Revokes a key for good: at once in this process, and within `keyCacheLife` in others that share
     * its store.
     */
    readonly revoke: (
      keyId: string,
    ) => Effect.Effect<void, ApiKey.ApiKeyNotFound | StoreUnavailable>

    /** Lists all keys, revoked and expired ones included, oldest first. */
    readonly list: () => Effect.Effect<ReadonlyArray<Listed>, StoreUnavailable>

    /** The key that a token stands for, if it opens anything now. */
    readonly authenticate: (
      token: string,
    ) => Effect.Effect<ApiKey.ApiKey | undefined, StoreUnavailable>
  }
>()("@tenure/core/ApiKeys") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<ApiKeys, InvalidInput, ApiKeyStore> => Layer.effect(ApiKeys, make(options))
}

const make = Effect.fnUntraced(function* (options: Options) {
  const store = yield* ApiKeyStore
  const crypto = yield* WebCrypto
  const life = yield* Setting.millis("keyCacheLife", options.keyCacheLife ?? "10 seconds", {
    least: 0,
    most: 3_600_000,
  })
  const cache = KeyCache.make(life)

  const freshToken = () => `tnr_${Base64.encodeUrl(crypto.getRandomValues(new Uint8Array(32)))}`

  /** Looks a key up in the store, and remembers it. */
  const lookUp = (digest: ApiKey.TokenDigest, now: number) => {
    const remember = cache.begin(digest, now)
    return Effect.tap(store.find(digest), (key) => Effect.sync(() => remember(key)))
  }

  return ApiKeys.of({
    issue: Effect.fnUntraced(function* ({ expiresAt, projects, token = freshToken() }) {
      if (!ApiKey.isToken(token)) {
        return yield* new InvalidInput({
          field: "token",
          message: "token: expected 1 to 1,024 characters of visible ASCII",
        })
      }
      const digest = ApiKey.digest(token)
      const key: ApiKey.ApiKey = {
        id: ApiKey.ApiKeyId(crypto.randomUUID()),
        digest,
        projects: new Set(yield* Effect.forEach(projects, Input.projectId)),
        createdAt: yield* Clock.currentTimeMillis,
        expiresAt:
          expiresAt === undefined ? undefined : yield* Input.instant("expiresAt", expiresAt),
        revokedAt: undefined,
      }
      const { id } = yield* Effect.ensuring(
        store.add(key),
        Effect.sync(() => cache.forget(digest)),
      )
      return { id, token }
    }),

    revoke: Effect.fnUntraced(function* (keyId) {
      const id = ApiKey.ApiKeyId(keyId)
      yield* Effect.ensuring(
        store.revoke(id, yield* Clock.currentTimeMillis),
        Effect.sync(() => cache.forgetKey(id)),
      )
    }),

    list: () => Effect.map(store.list, (keys) => keys.map(({ digest: _, ...listed }) => listed)),

    authenticate: Effect.fnUntraced(function* (token) {
      if (!ApiKey.isToken(token)) return undefined
      const now = yield* Clock.currentTimeMillis
      const digest = ApiKey.digest(token)
      const known = cache.find(digest, now)
      const key = known === undefined ? yield* lookUp(digest, now) : known.key
      return key !== undefined && ApiKey.isLive(key, now) ? key : undefined
    }),
  })
})
