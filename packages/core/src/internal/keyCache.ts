/**
 * What this process knows of API keys, so that a request need not ask the store whose its token is.
 * Tokens that are nobody's are remembered apart: who guesses tokens pushes out no key.
 */

import type { ApiKey, ApiKeyId, TokenDigest } from "../ApiKey.ts"
import * as Generations from "./generations.ts"

interface Entry {
  readonly key: ApiKey | undefined
  /** Between these two instants it holds: before, the clock has been set back. */
  readonly since: number
  readonly until: number
}

/** Remembers look-ups of keys. */
export interface KeyCache {
  /** What is known of a digest at `now`; nothing if it was never looked up, or too long ago. */
  readonly find: (digest: TokenDigest, now: number) => Entry | undefined
  /**
   * Begins a look-up; the function that it gives remembers the outcome, unless keys have changed
   * meanwhile.
   */
  readonly begin: (digest: TokenDigest, now: number) => (key: ApiKey | undefined) => void
  /** Forgets a digest whose key was changed. */
  readonly forget: (digest: TokenDigest) => void
  /** Forgets a key that was revoked. */
  readonly forgetKey: (keyId: ApiKeyId) => void
}

const maxEntries = 10_000

/**
 * Makes an empty cache of 10,000 keys and as many digests of no key; beyond that those are forgotten
 * that nobody has asked for lately.
 *
 * @param life - how long what was looked up is believed, in milliseconds; 0 for not at all
 */
export const make = (life: number): KeyCache => {
  const known = Generations.make<TokenDigest, Entry>(maxEntries)
  const unknown = Generations.make<TokenDigest, Entry>(maxEntries)
  let changes = 0

  const put = (digest: TokenDigest, entry: Entry): void =>
    (entry.key === undefined ? unknown : known).set(digest, entry)

  const remove = (digest: TokenDigest): void => {
    known.delete(digest)
    unknown.delete(digest)
  }

  return {
    find: (digest, now) => {
      const entry = known.get(digest) ?? unknown.get(digest)
      if (entry === undefined || (now >= entry.since && now < entry.until)) return entry
      remove(digest)
      return undefined
    },
    begin: (digest, now) => {
      const before = changes
      return (key) => {
        if (changes === before) put(digest, { key, since: now, until: now + life })
      }
    },
    forget: (digest) => {
      changes++
      remove(digest)
    },
    forgetKey: (keyId) => {
      changes++
      known.deleteWhere(({ key }) => key?.id === keyId)
    },
  }
}
