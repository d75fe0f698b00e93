/** A bounded map that evicts the least recently used entries. */

/** A bounded map. Keys that were neither read nor set recently are evicted. */
export interface LruCache<Key, Value> {
  readonly get: (key: Key) => Value | undefined
  readonly set: (key: Key, value: Value) => void
  readonly delete: (key: Key) => void
  /** Returns all entries. */
  readonly entries: () => ReadonlyArray<readonly [Key, Value]>
  /** Deletes every entry with a matching value. Takes time in proportion to the number of entries. */
  readonly deleteWhere: (matches: (value: Value) => boolean) => void
}

/**
 * Makes an empty cache.
 *
 * Entries live in two generations. Reading or setting a key puts it into the young one. At half the
 * limit, it becomes the old generation, and the previous old one is dropped as a whole.
 *
 * A single `Map` in insertion order would evict more precisely, but finding its first key takes time in
 * proportion to the keys deleted before, so every insertion at the limit would be slow.
 *
 * @param limit - the greatest entry count
 */
export const makeLruCache = <Key, Value>(limit: number): LruCache<Key, Value> => {
  const width = Math.max(1, Math.floor(limit / 2))
  let young = new Map<Key, Value>()
  let old = new Map<Key, Value>()

  const set = (key: Key, value: Value): void => {
    old.delete(key)
    young.set(key, value)
    if (young.size < width) return
    old = young
    young = new Map()
  }

  return {
    get: (key) => {
      const value = young.get(key)
      if (value !== undefined || old.size === 0) return value
      const kept = old.get(key)
      if (kept !== undefined) set(key, kept)
      return kept
    },
    set,
    delete: (key) => {
      young.delete(key)
      old.delete(key)
    },
    entries: () => [...old, ...young],
    deleteWhere: (matches) => {
      for (const generation of [young, old]) {
        for (const [key, value] of generation) if (matches(value)) generation.delete(key)
      }
    },
  }
}
