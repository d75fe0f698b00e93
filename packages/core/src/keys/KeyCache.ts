/**
 * A cache of API keys, so that most requests are authenticated without the store. Digests without a
 * key are cached apart: guessed tokens cannot evict keys.
 */

import * as LruCache from "../base/LruCache.ts"
import type { ProjectId } from "../base/Project.ts"
import type { ApiKey, ApiKeyId, TokenDigest } from "./ApiKey.ts"

/** What the store answered. */
interface Entry {
  /** The key, or `undefined` if the store has none. */
  readonly key: ApiKey | undefined
  /** The tick at which the store was asked. */
  readonly at: number
}

/** A cache of keys by the digests of their tokens. `now` is by the monotonic clock. */
export interface KeyCache {
  /**
   * Returns the entry of a digest, if there is one that is valid at `now`.
   *
   * @param mostAge - how old it may be, in milliseconds, if that is less than the life of an entry
   */
  readonly find: (digest: TokenDigest, now: number, mostAge?: number) => Entry | undefined
  /**
   * Call this before the store is asked for a digest, and the returned function with the answer. It
   * caches the answer unless a key was changed meanwhile, since the answer could be older.
   */
  readonly begin: (digest: TokenDigest, now: number) => (key: ApiKey | undefined) => void
  /** Drops the entry of a digest whose key was changed. */
  readonly invalidate: (digest: TokenDigest) => void
  /** Drops the entry of a key that was revoked. */
  readonly invalidateKey: (keyId: ApiKeyId) => void
  /** Drops the entries of the keys that open a project which was deleted. */
  readonly invalidateProject: (projectId: ProjectId) => void
}

const maxEntries = 10_000

/** Whether a key names a project. */
const opens = ({ projects }: ApiKey, projectId: ProjectId): boolean =>
  projects !== "all" && projects.has(projectId)

/**
 * Makes an empty cache of at most 10,000 keys and 10,000 digests without a key.
 *
 * @param life - how long an entry is valid, in milliseconds
 */
export const make = (life: number): KeyCache => {
  const known = LruCache.make<TokenDigest, Entry>(maxEntries)
  const unknown = LruCache.make<TokenDigest, Entry>(maxEntries)
  let changes = 0

  const remove = (digest: TokenDigest): void => {
    known.delete(digest)
    unknown.delete(digest)
  }

  return {
    find: (digest, now, mostAge = life) => {
      const entry = known.get(digest) ?? unknown.get(digest)
      if (entry === undefined || now < entry.at + Math.min(mostAge, life)) return entry
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
