/** The service for API keys: issues, revokes and lists them, and finds the key of a token. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Argument from "../base/Argument.ts"
import * as Base64 from "../base/Base64.ts"
import * as Identifier from "../base/Identifier.ts"
import type * as Instant from "../base/Instant.ts"
import type { InvalidInput } from "../base/InvalidInput.ts"
import * as Moment from "../base/Moment.ts"
import * as Once from "../base/Once.ts"
import * as Origin from "../base/Origin.ts"
import { owned } from "../base/Own.ts"
import { ProjectId, type ProjectNotFound } from "../base/Project.ts"
import { ProjectDeletions } from "../base/ProjectDeletions.ts"
import * as Setting from "../base/Setting.ts"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import * as ApiKey from "./ApiKey.ts"
import { ApiKeyStore, type Within } from "./ApiKeyStore.ts"
import * as KeyCache from "./KeyCache.ts"
import * as LastUse from "./LastUse.ts"
import { type Role, roles } from "./Role.ts"

/** The options of API keys. */
export const options = Setting.struct({
  /**
   * How long this process caches an API key; 0 asks the store each time. A key that another process
   * revokes works that much longer. Default: `"10 seconds"`.
   */
  keyCacheLife: Setting.withDefault(Setting.millis({ least: 0, most: 3_600_000 }), "10 seconds"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** The key to issue. */
export interface Issue {
  /** Ids of the projects that the key opens, at least one; or `"all"` for those there are and will be. */
  readonly projects: ReadonlyArray<string> | "all"
  /** What the holder may do: `"client"` (default), `"operator"` or `"admin"`. */
  readonly role?: Role | undefined
  /** What people call the key: 1 to 255 characters, none of them a control character. */
  readonly name?: string | undefined
  /** A token that clients already use: 1 to 1,024 characters of visible ASCII. By default, a new one is made. */
  readonly token?: string | undefined
  /**
   * When the key expires: a `Date`, text in the form `YYYY-MM-DDTHH:mm:ss.sssZ` or milliseconds since
   * the epoch, in the future. By default, it never does.
   */
  readonly expiresAt?: Instant.Input | undefined
  /**
   * Issues the key once, however often the call is repeated within 24 hours: 1 to 255 visible characters
   * of ASCII. A repetition fails with `ApiKeyIssued`, which has the id of the key.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** How a key is revoked. */
export interface Revoking {
  /**
   * Revokes the key only if it opens at least one of these projects and no other, and otherwise fails as
   * if there were none; `"all"` by default.
   */
  readonly within?: Within | undefined
  /**
   * Revokes the key once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII.
   */
  readonly idempotencyKey?: Once.Input | undefined
}

/** A key that was issued. Only its digest is stored, so the token cannot be shown again. */
export interface Issued {
  readonly id: ApiKey.ApiKeyId
  readonly token: string
}

/** A key without the digest of its token. */
export type Listed = Omit<ApiKey.ApiKey, "digest">

/** Which keys are listed. */
export interface Page {
  /** The id of a key in the list: lists only keys issued after it. */
  readonly after?: string | undefined
  /** The most keys to return, 1 to 10,000; 100 by default. */
  readonly limit?: number | undefined
  /** Lists only keys that open at least one of these projects and no other; `"all"` by default. */
  readonly within?: Within | undefined
}

/**
 * Issues, revokes and lists API keys. Every method fails with `StoreUnavailable` if the store does
 * not answer. The methods that change keys take an origin, which the audit trail keeps: who asked for
 * the change, and in which request. They fail with `IdempotencyMismatch` if the idempotency key was
 * used for another call, and with `IdempotencyInProgress` if the first call with it takes too long.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { ApiKeys } from "tenure/ApiKeys"
 *
 * const rotate = Effect.fn("rotate")(function* (previous: string) {
 *   const keys = yield* ApiKeys
 *   const { token } = yield* keys.issue({
 *     projects: ["p1"],
 *     role: "operator",
 *     name: "nightly import",
 *     expiresAt: new Date("2099-01-01"),
 *   })
 *   yield* keys.revoke(previous)
 *   return token
 * })
 * ```
 */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /**
     * Issues a key. If the token is an existing key's, that key opens the projects as well, and its
     * name and expiry stay as they are.
     *
     * Fails with `InvalidInput` if an argument is invalid, with `ProjectNotFound`, with
     * `ApiKeyRevoked` if the token is a revoked key's, and with `ApiKeyConflict` if it is that of a key
     * with another role. With an idempotency key, it fails with `ApiKeyIssued` if it was made before.
     */
    readonly issue: (
      key: Issue,
      origin?: Origin.Input,
    ) => Effect.Effect<
      Issued,
      | InvalidInput
      | ProjectNotFound
      | ApiKey.ApiKeyRevoked
      | ApiKey.ApiKeyConflict
      | ApiKey.ApiKeyIssued
      | Once.Conflict
      | StoreUnavailable
    >

    /**
     * Revokes a key for good: at once in this process, and within `keyCacheLife` in others that share
     * its store. Fails with `ApiKeyNotFound`, and with `InvalidInput` if an argument is invalid.
     */
    readonly revoke: (
      keyId: string,
      origin?: Origin.Input,
      revocation?: Revoking,
    ) => Effect.Effect<
      void,
      InvalidInput | ApiKey.ApiKeyNotFound | Once.Conflict | StoreUnavailable
    >

    /**
     * Returns keys, including revoked and expired ones, oldest first. Fails with `InvalidInput` if an
     * argument is invalid.
     */
    readonly list: (
      page?: Page,
    ) => Effect.Effect<ReadonlyArray<Listed>, InvalidInput | StoreUnavailable>

    /** Returns the key of a token, or `undefined` if the token is unknown, revoked or expired. */
    readonly authenticate: (
      token: string,
    ) => Effect.Effect<ApiKey.ApiKey | undefined, StoreUnavailable>

    /**
     * Returns the key whose token has a digest, as `authenticate` does.
     *
     * @param mostAge - how old the store's answer may be, in milliseconds, if that is less than
     *   `keyCacheLife`
     */
    readonly byDigest: (
      digest: ApiKey.TokenDigest,
      mostAge?: number,
    ) => Effect.Effect<ApiKey.ApiKey | undefined, StoreUnavailable>

    /** Returns the key of a token as `authenticate` does if it is cached, and never asks the store. */
    readonly recall: (token: string) => Effect.Effect<ApiKey.ApiKey | undefined>
  }
>()("@tenure/core/ApiKeys") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<ApiKeys, never, ApiKeyStore> => Layer.effect(ApiKeys, make(settings))
}

const decodeToken = (token: string) =>
  ApiKey.isToken(token)
    ? Effect.succeed(token)
    : Argument.invalid("token", "1 to 1,024 characters of visible ASCII, with spaces only inside")

const decodeProjects = (
  projects: Issue["projects"],
): Effect.Effect<ApiKey.ApiKey["projects"], InvalidInput> => {
  if (projects === "all") return Effect.succeed(projects)
  if (!Array.isArray(projects) || projects.length === 0) {
    return Argument.invalid("projects", 'an array of at least one project id, or "all"')
  }
  return Effect.map(
    Effect.forEach(projects, (id: string, index) =>
      Argument.decode(`projects[${index}]`, ProjectId, id),
    ),
    (ids) => new Set(ids),
  )
}

const roleSetting = Setting.oneOf(roles)

const nameSetting = Setting.optional(Setting.text(Identifier.expected, Identifier.isIdentifier))

const decodeExpiry = (expiresAt: Instant.Input, now: number) =>
  Effect.flatMap(Argument.instant("expiresAt", expiresAt), (millis) =>
    millis > now ? Effect.succeed(millis) : Argument.invalid("expiresAt", "in the future"),
  )

/** Returns a key unless it was revoked or has expired. */
const ifLive = (
  key: ApiKey.ApiKey | undefined,
  { unix }: Moment.Moment,
): ApiKey.ApiKey | undefined => (key !== undefined && ApiKey.isLive(key, unix) ? key : undefined)

const make = Effect.fnUntraced(function* ({ keyCacheLife }: Settings) {
  const store = yield* ApiKeyStore
  const crypto = yield* WebCrypto
  const cache = KeyCache.make(keyCacheLife)
  const deletions = yield* ProjectDeletions
  deletions.listen(cache.invalidateProject)
  const noteUse = yield* LastUse.make(store)

  const makeToken = () => `tnr_${Base64.encodeUrl(crypto.getRandomValues(new Uint8Array(32)))}`

  /** Finds a live key in the store, caches the answer, and takes note of the use. */
  const find = (digest: ApiKey.TokenDigest, now: Moment.Moment) => {
    const fill = cache.begin(digest, now.tick)
    return Effect.map(store.find(digest), (found) => {
      fill(found)
      const key = ifLive(found, now)
      if (key !== undefined) noteUse(key, now.unix)
      return key
    })
  }

  const byDigest = (digest: ApiKey.TokenDigest, now: Moment.Moment, mostAge?: number) => {
    const cached = cache.find(digest, now.tick, mostAge)
    return cached === undefined ? find(digest, now) : Effect.succeed(ifLive(cached.key, now))
  }

  return ApiKeys.of({
    issue: Effect.fnUntraced(function* (input, origin) {
      const {
        expiresAt,
        idempotencyKey,
        name,
        projects,
        role = "client",
        token: given,
      } = owned(input)
      const now = yield* Origin.occasionOf(origin)
      const request = [projects, role, name, given, expiresAt]
      const occasion = yield* Once.on(now, idempotencyKey, "issue", ...request)
      const token = yield* decodeToken(given ?? makeToken())
      const digest = ApiKey.digest(token)
      const key: ApiKey.ApiKey = {
        id: ApiKey.ApiKeyId(crypto.randomUUID()),
        digest,
        role: yield* Argument.read("role", roleSetting, role),
        name: yield* Argument.read("name", nameSetting, name),
        projects: yield* decodeProjects(projects),
        createdAt: occasion.at,
        expiresAt:
          expiresAt === undefined ? undefined : yield* decodeExpiry(expiresAt, occasion.at),
        revokedAt: undefined,
        lastUsedAt: undefined,
      }
      const added = yield* Effect.ensuring(
        store.add(key, occasion),
        Effect.sync(() => cache.invalidate(digest)),
      )
      if (!Once.isReplayed(added)) return { id: added.id, token }
      yield* Once.tell(occasion, added)
      return yield* new ApiKey.ApiKeyIssued({ keyId: added.answer })
    }),

    revoke: Effect.fnUntraced(function* (keyId, origin, revocation = {}) {
      const { idempotencyKey, within = "all" } = owned(revocation)
      if (!ApiKey.ApiKeyId.is(keyId)) return yield* new ApiKey.ApiKeyNotFound({ keyId })
      const now = yield* Origin.occasionOf(origin)
      const occasion = yield* Once.on(now, idempotencyKey, "revoke", keyId)
      const replayed = yield* Effect.ensuring(
        store.revoke({ ...occasion, keyId, within }),
        Effect.sync(() => cache.invalidateKey(keyId)),
      )
      yield* Once.tell(occasion, replayed)
    }),

    list: Effect.fnUntraced(function* (page = {}) {
      const { after, limit = 100, within = "all" } = owned(page)
      const keys = yield* Effect.catchTag(
        store.list({
          after:
            after === undefined
              ? undefined
              : yield* Argument.decode("after", ApiKey.ApiKeyId, after),
          limit: yield* Argument.pageSize(limit),
          within,
        }),
        "ApiKeyNotFound",
        () => Argument.invalid("after", "the id of a key in the list"),
      )
      return keys.map(({ digest: _, ...listed }) => listed)
    }),

    authenticate: (token) =>
      Moment.nowWith((now) =>
        ApiKey.isToken(token) ? byDigest(ApiKey.digest(token), now) : Effect.undefined,
      ),

    byDigest: (digest, mostAge) => Moment.nowWith((now) => byDigest(digest, now, mostAge)),

    recall: (token) =>
      Effect.map(Moment.now, (now) =>
        ApiKey.isToken(token)
          ? ifLive(cache.find(ApiKey.digest(token), now.tick)?.key, now)
          : undefined,
      ),
  })
})
