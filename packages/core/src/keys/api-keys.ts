/**
 * The API key service, with a cache: most requests are authenticated without the store. Unknown digests
 * are cached separately, so guessed tokens cannot evict keys.
 */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { encodeBase64Url } from "../base/bytes.ts"
import {
  type ChangeContext,
  type IdempotencyConflict,
  type IdempotencyKeyInput,
  type OriginInput,
  isReplayedResponse,
  notifyReplay,
} from "../base/change-context.ts"
import type { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import { ErrorReporter, makeOutageReporter } from "../base/faults.ts"
import { checkNames } from "../base/field-names.ts"
import { type Repeatable, changingMethod, readingMethod } from "../base/host-method.ts"
import { invalidArgument } from "../base/input.ts"
import { makeLruCache } from "../base/lru-cache.ts"
import type { Decoded, HostInputOf } from "../base/operation-input.ts"
import { ProjectDeletions } from "../base/project-deletions.ts"
import * as Setting from "../base/setting.ts"
import { type Moment, currentMoment, withMoment } from "../base/time.ts"
import { ApiKeyId, type ProjectId, type ProjectNotFound } from "../base/values.ts"
import {
  type ApiKey,
  type ApiKeyConflict,
  ApiKeyIssued,
  ApiKeyNotFound,
  type ApiKeyRevoked,
  type TokenDigest,
  digestToken,
  isToken,
  isUsable,
} from "./api-key.ts"
import { apiKeyNames, keysPage, newKey, revocation } from "./inputs.ts"
import { ApiKeyStore } from "./store.ts"

/** The store's answer. */
interface Entry {
  /** The key, or `undefined` if the store has none. */
  readonly key: ApiKey | undefined
  /** The tick when the store was asked. */
  readonly at: number
}

/** Caches keys by token digest. `now` is by the monotonic clock. */
interface KeyCache {
  /**
   * Returns a digest's entry if it is valid at `now`.
   *
   * @param maxAge - its maximum age in milliseconds, if shorter than an entry's life
   */
  readonly find: (digest: TokenDigest, now: number, maxAge?: number) => Entry | undefined
  /**
   * Call this before the store is asked for a digest, and the returned function with the answer. It
   * caches the answer unless a key was changed meanwhile, since the answer could be older.
   */
  readonly begin: (digest: TokenDigest, now: number) => (key: ApiKey | undefined) => void
  /** Drops a changed key's entry. */
  readonly invalidate: (digest: TokenDigest) => void
  /** Drops a revoked key's entry. */
  readonly invalidateKey: (keyId: ApiKeyId) => void
  /** Drops the entries for a deleted project's keys. */
  readonly invalidateProject: (projectId: ProjectId) => void
}

const maxEntries = 10_000

/** Whether a key names a project. */
const opens = ({ projects }: ApiKey, projectId: ProjectId): boolean =>
  projects !== "all" && projects.has(projectId)

/**
 * Creates an empty cache for at most 10,000 keys and 10,000 unknown digests.
 *
 * @param life - how long an entry is valid, in milliseconds
 */
const makeKeyCache = (life: number): KeyCache => {
  const known = makeLruCache<TokenDigest, Entry>(maxEntries)
  const unknown = makeLruCache<TokenDigest, Entry>(maxEntries)
  let changes = 0

  const remove = (digest: TokenDigest): void => {
    known.delete(digest)
    unknown.delete(digest)
  }

  return {
    find: (digest, now, maxAge = life) => {
      const entry = known.get(digest) ?? unknown.get(digest)
      if (entry === undefined || now < entry.at + Math.min(maxAge, life)) return entry
      remove(digest)
      return undefined
    },
    begin: (digest, now) => {
      const before = changes
      return (key) => {
        if (changes !== before) return
        const entries = key === undefined ? unknown : known
        entries.set(digest, { key, at: now })
      }
    },
    invalidate: (digest) => {
      changes++
      remove(digest)
    },
    invalidateKey: (keyId) => {
      changes++
      known.deleteWhere(({ key }) => key?.id === keyId)
    },
    invalidateProject: (projectId) => {
      changes++
      known.deleteWhere(({ key }) => key !== undefined && opens(key, projectId))
    },
  }
}

/**
 * Notes a key's use at `now`, in milliseconds since the epoch, outside the requests: when the key is looked up in the store,
 * unless the store knows another use in the minute before. All processes together thus write about once a minute for a key,
 * however many requests it sends.
 */
type Note = (key: ApiKey, now: number) => void

const precisionMillis = 60_000

// The maximum number of keys in one write. Others are noted at their next look-up.
const maxKeys = 10_000

/** The pause after a write. Uses noted meanwhile are written together. */
const pause = "1 second"

/** Tells whether a use at `now` is worth a write. */
const isDue = ({ lastUsedAt }: Pick<ApiKey, "lastUsedAt">, now: number): boolean =>
  lastUsedAt === undefined || now - lastUsedAt >= precisionMillis

/** Writes noted uses until the scope closes. Drops those it cannot write. */
const makeLastUsedRecorder = Effect.fnUntraced(function* (store: ApiKeyStore["Service"]) {
  const writing = makeOutageReporter(
    yield* ErrorReporter,
    "The last use of API keys cannot be recorded",
  )
  const isNoted = yield* Latch.make()
  let noted = new Map<ApiKeyId, number>()

  const write = Effect.suspend(() => {
    const uses = noted
    noted = new Map()
    isNoted.closeUnsafe()
    return Effect.map(store.touch(uses), writing.succeeded)
  }).pipe(Effect.catchCause(writing.failed))

  yield* Effect.forkScoped(
    Effect.forever(Effect.andThen(isNoted.await, Effect.andThen(write, Effect.sleep(pause)))),
  )

  const note: Note = (key, now) => {
    if (!isDue(key, now) || noted.size === maxKeys) return
    noted.set(key.id, now)
    isNoted.openUnsafe()
  }
  return note
})

/** Options for API keys. */
export const apiKeysOptions = Setting.object({
  /**
   * How long this process caches an API key; 0 asks the store each time. A key revoked by another
   * process works that much longer. Default: `"10 seconds"`.
   */
  keyCacheTtl: Setting.withDefault(Setting.duration({ least: 0, most: 3_600_000 }), "10 seconds"),
})

/** The options as a host passes them. */
export interface ApiKeysOptions extends Setting.InputOf<typeof apiKeysOptions> {}

/** The options as the library uses them. */
export interface ApiKeysSettings extends Setting.OutputOf<typeof apiKeysOptions> {}

/** The key to issue. */
export interface Issue extends HostInputOf<typeof newKey> {
  /**
   * Issues the key once, however often the call is repeated within 24 hours: 1 to 255 visible ASCII
   * characters. A repetition fails with `ApiKeyIssued`, containing the key's id.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** How a key is revoked. */
export interface Revoking extends Omit<HostInputOf<typeof revocation>, "keyId">, Repeatable {}

/** An issued key. Only its digest is stored, so the token cannot be disclosed again. */
export interface Issued {
  /** The id, to list and revoke the key by. */
  readonly id: ApiKeyId
  /** The token, which requests send as `Authorization: Bearer …`. */
  readonly token: string
}

/** A key without its token's digest. */
export type Listed = Omit<ApiKey, "digest">

/** A page of keys. */
export interface Page extends HostInputOf<typeof keysPage> {}

/**
 * Issues, revokes and lists API keys. Every method fails with `StoreUnavailable` if the store does not
 * answer. Methods with an effect take an origin for the audit trail: who asked for the change, and in
 * which request. They fail with `IdempotencyMismatch` if the idempotency key belongs to another call,
 * and with `IdempotencyInProgress` if the first call with it takes too long.
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { ApiKeys } from "tenure/effect"
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
     * Issues a key. If the token belongs to an existing key, that key also gets the projects, and its
     * name and expiry stay unchanged.
     *
     * Fails with `InvalidInput` if an argument is invalid, with `ProjectNotFound`, with `ApiKeyRevoked`
     * if the token's key is revoked, and with `ApiKeyConflict` if it has another role. With an
     * idempotency key, fails with `ApiKeyIssued` if the key was issued before.
     */
    readonly issue: (
      key: Issue,
      origin?: OriginInput,
    ) => Effect.Effect<
      Issued,
      | InvalidInput
      | ProjectNotFound
      | ApiKeyRevoked
      | ApiKeyConflict
      | ApiKeyIssued
      | IdempotencyConflict
      | StoreUnavailable
    >

    /**
     * Revokes a key permanently: at once in this process, and within `keyCacheTtl` in others on the
     * same store. Fails with `ApiKeyNotFound`, and with `InvalidInput` if an argument is invalid.
     */
    readonly revoke: (
      keyId: string,
      origin?: OriginInput,
      revocation?: Revoking,
    ) => Effect.Effect<void, InvalidInput | ApiKeyNotFound | IdempotencyConflict | StoreUnavailable>

    /**
     * Returns keys, including revoked and expired ones, oldest first. Fails with `InvalidInput` if an
     * argument is invalid.
     */
    readonly list: (
      page?: Page,
    ) => Effect.Effect<ReadonlyArray<Listed>, InvalidInput | StoreUnavailable>

    /** Returns a token's key, or `undefined` if the token is unknown, revoked or expired. */
    readonly authenticate: (token: string) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /**
     * Returns the key by its token's digest, as `authenticate` does.
     *
     * @param maxAge - the maximum age of the store's answer in milliseconds, if shorter than
     *   `keyCacheTtl`
     */
    readonly byDigest: (
      digest: TokenDigest,
      maxAge?: number,
    ) => Effect.Effect<ApiKey | undefined, StoreUnavailable>

    /** Returns a token's key as `authenticate` does, but only from the cache. */
    readonly recall: (token: string) => Effect.Effect<ApiKey | undefined>
  }
>()("@tenure/core/ApiKeys") {
  static readonly layer = (
    settings: ApiKeysSettings = Setting.parse(apiKeysOptions),
  ): Layer.Layer<ApiKeys | ApiKeyActs, never, ApiKeyStore> =>
    Layer.provideMerge(
      Layer.effect(ApiKeys, Effect.map(ApiKeyActs, makeMethods)),
      Layer.effect(ApiKeyActs, makeActs(settings)),
    )
}

/** Returns a key unless it was revoked or has expired. */
const ifLive = (key: ApiKey | undefined, { unix }: Moment): ApiKey | undefined =>
  key !== undefined && isUsable(key, unix) ? key : undefined

const makeActs = Effect.fnUntraced(function* ({ keyCacheTtl }: ApiKeysSettings) {
  const store = yield* ApiKeyStore
  const crypto = yield* WebCrypto
  const cache = makeKeyCache(keyCacheTtl)
  const deletions = yield* ProjectDeletions
  deletions.listen(cache.invalidateProject)
  const noteUse = yield* makeLastUsedRecorder(store)

  const makeToken = () => `tnr_${encodeBase64Url(crypto.getRandomValues(new Uint8Array(32)))}`

  /** Finds a live key in the store, caches the answer, and notes the use. */
  const find = (digest: TokenDigest, now: Moment) => {
    const fill = cache.begin(digest, now.tick)
    return Effect.map(store.find(digest), (found) => {
      fill(found)
      const key = ifLive(found, now)
      if (key !== undefined) noteUse(key, now.unix)
      return key
    })
  }

  const byDigest = (digest: TokenDigest, now: Moment, maxAge?: number) => {
    const cached = cache.find(digest, now.tick, maxAge)
    return cached === undefined ? find(digest, now) : Effect.succeed(ifLive(cached.key, now))
  }

  return {
    issue: Effect.fnUntraced(function* (asked: Decoded<typeof newKey>, context: ChangeContext) {
      const { expiresAt, projects, token = makeToken(), ...others } = asked
      if (expiresAt !== undefined && expiresAt <= context.at) {
        return yield* invalidArgument("expiresAt", "in the future")
      }
      const digest = digestToken(token)
      const key: ApiKey = {
        id: ApiKeyId(crypto.randomUUID()),
        digest,
        ...others,
        projects: projects === "all" ? projects : new Set(projects),
        createdAt: context.at,
        expiresAt,
        revokedAt: undefined,
        lastUsedAt: undefined,
      }
      const added = yield* Effect.ensuring(
        store.add(key, context),
        Effect.sync(() => cache.invalidate(digest)),
      )
      if (!isReplayedResponse(added)) return { id: added.id, token }
      yield* notifyReplay(context, added)
      return yield* new ApiKeyIssued({ keyId: added.answer })
    }),

    revoke: Effect.fnUntraced(function* (
      { keyId, within }: Decoded<typeof revocation>,
      context: ChangeContext,
    ) {
      const replayed = yield* Effect.ensuring(
        store.revoke({ ...context, keyId, within }),
        Effect.sync(() => cache.invalidateKey(keyId)),
      )
      yield* notifyReplay(context, replayed)
    }),

    list: Effect.fnUntraced(function* (page: Decoded<typeof keysPage>) {
      const keys = yield* Effect.catchTag(store.list(page), "ApiKeyNotFound", () =>
        invalidArgument("after", "the id of a key in the list"),
      )
      return keys.map(({ digest: _, ...listed }) => listed)
    }),

    authenticate: (token: string) =>
      withMoment((now) => (isToken(token) ? byDigest(digestToken(token), now) : Effect.undefined)),

    byDigest: (digest: TokenDigest, maxAge?: number) =>
      withMoment((now) => byDigest(digest, now, maxAge)),

    recall: (token: string) =>
      Effect.map(currentMoment, (now) =>
        isToken(token) ? ifLive(cache.find(digestToken(token), now.tick)?.key, now) : undefined,
      ),
  }
})

/** What the methods do once their arguments are read. The HTTP API reads them from requests. */
export class ApiKeyActs extends Context.Service<
  ApiKeyActs,
  Effect.Success<ReturnType<typeof makeActs>>
>()("@tenure/core/ApiKeyActs") {}

const makeMethods = (acts: ApiKeyActs["Service"]): ApiKeys["Service"] => {
  const revoke = changingMethod("revoke", revocation, acts.revoke)
  const list = readingMethod(keysPage, acts.list)
  return checkNames<ApiKeys["Service"]>(apiKeyNames, {
    ...acts,
    issue: changingMethod("issue", newKey, acts.issue),
    revoke: (keyId, origin, given) =>
      ApiKeyId.is(keyId)
        ? Effect.suspend(() => revoke({ ...given, keyId }, origin))
        : Effect.fail(new ApiKeyNotFound({ keyId })),
    list: (page = {}) => list(page),
  })
}
