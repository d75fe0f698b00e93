/** API keys: issuing, revoking, and telling whose a token is. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ApiKey from "./ApiKey.ts"
import { ApiKeyStore } from "./ApiKeyStore.ts"
import * as Base64 from "./internal/base64.ts"
import * as Input from "./internal/input.ts"
import { InvalidInput } from "./InvalidInput.ts"
import type { ProjectNotFound } from "./Project.ts"
import * as Setting from "./Setting.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

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

// The last instant that a Date can hold.
const instant = (field: string, millis: number) =>
  Setting.count(field, millis, { least: 0, most: 8_640_000_000_000_000 })

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

    /** Revokes a key, at once and for good. */
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
  static readonly layer: Layer.Layer<ApiKeys, never, ApiKeyStore> = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const store = yield* ApiKeyStore
      const crypto = yield* WebCrypto

      const freshToken = () => `tnr_${Base64.encodeUrl(crypto.getRandomValues(new Uint8Array(32)))}`

      return {
        issue: Effect.fnUntraced(function* ({ expiresAt, projects, token = freshToken() }) {
          if (!ApiKey.isToken(token)) {
            return yield* new InvalidInput({
              field: "token",
              message: "token: expected 1 to 1,024 characters of visible ASCII",
            })
          }
          const key = yield* store.add({
            id: ApiKey.ApiKeyId(crypto.randomUUID()),
            digest: ApiKey.digest(token),
            projects: new Set(yield* Effect.forEach(projects, Input.projectId)),
            createdAt: yield* Clock.currentTimeMillis,
            expiresAt: expiresAt === undefined ? undefined : yield* instant("expiresAt", expiresAt),
            revokedAt: undefined,
          })
          return { id: key.id, token }
        }),

        revoke: Effect.fnUntraced(function* (keyId) {
          yield* store.revoke(ApiKey.ApiKeyId(keyId), yield* Clock.currentTimeMillis)
        }),

        list: () =>
          Effect.map(store.list, (keys) => keys.map(({ digest: _, ...listed }) => listed)),

        authenticate: Effect.fnUntraced(function* (token) {
          if (!ApiKey.isToken(token)) return undefined
          const key = yield* store.find(ApiKey.digest(token))
          const now = yield* Clock.currentTimeMillis
          return key !== undefined && ApiKey.isLive(key, now) ? key : undefined
        }),
      }
    }),
  )
}
