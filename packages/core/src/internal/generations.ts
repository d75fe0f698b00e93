/** A bounded map in two generations, so that what nobody asks for goes without being looked for. */

/** Remembers values. */
export interface Generations<Key, Value> {
  readonly get: (key: Key) => Value | undefined
  readonly set: (key: Key, value: Value) => void
  readonly delete: (key: Key) => void
  /** Forgets every value that matches; this looks at all of them. */
  readonly deleteWhere: (matches: (value: Value) => boolean) => void
}

/**
 * Makes a map of at most `limit` entries. When the young generation is half of that, it becomes the
 * old one, and what was old and nobody has asked for since is forgotten at one blow.
 *
 * One map in the order of insertion would forget more exactly, but the first key of a `Map` is found
 * by walking over all that were deleted: at the limit every addition would take that walk.
 */
export const make = <Key, Value>(limit: number): Generations<Key, Value> => {
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
    deleteWhere: (matches) => {
      for (const generation of [young, old]) {
        for (const [key, value] of generation) if (matches(value)) generation.delete(key)
      }
    },
  }
}
