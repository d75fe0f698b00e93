/**
 * Feed cursors. A position counts events in all projects, and readers in one project must not learn
 * this number. Cursors are therefore encrypted, with a different text each time even for the same
 * position: comparing two does not reveal whether anything happened in between.
 */

import { FeedCursor } from "@tenure/core/store"

/** Prints and reads cursors. */
export interface CursorCipher {
  readonly print: (place: number) => FeedCursor
  /** Returns a cursor's position; `undefined` if it belongs to another history. */
  readonly read: (cursor: FeedCursor) => number | undefined
}

/** 64 bits. */
export type CipherBlock = readonly [high: number, low: number]

const rounds = 32
const delta = 0x9e3779b9

const mixed = (half: number): number => ((half << 4) ^ (half >>> 5)) + half

/** Encrypts a block with XTEA: its output is as short as a position, and it needs no promise. */
export const encryptBlock = (key: Uint32Array, [high, low]: CipherBlock): CipherBlock => {
  let sum = 0
  for (let round = 0; round < rounds; round++) {
    high = (high + (mixed(low) ^ (sum + (key[sum & 3] ?? 0)))) >>> 0
    sum = (sum + delta) >>> 0
    low = (low + (mixed(high) ^ (sum + (key[(sum >>> 11) & 3] ?? 0)))) >>> 0
  }
  return [high, low]
}

const decrypt = (key: Uint32Array, [high, low]: CipherBlock): CipherBlock => {
  let sum = Math.imul(delta, rounds) >>> 0
  for (let round = 0; round < rounds; round++) {
    low = (low - (mixed(high) ^ (sum + (key[(sum >>> 11) & 3] ?? 0)))) >>> 0
    sum = (sum - delta) >>> 0
    high = (high - (mixed(low) ^ (sum + (key[sum & 3] ?? 0)))) >>> 0
  }
  return [high, low]
}

const pattern = /^([0-9a-f-]{36})\.([0-9a-z]{1,7})-([0-9a-z]{1,7})$/

const word = 2 ** 32
const nonces = 2 ** 16

/** Creates cursors for a new history. */
export const makeCursorCipher = (
  crypto: Pick<typeof globalThis.crypto, "getRandomValues" | "randomUUID">,
): CursorCipher => {
  const epoch = crypto.randomUUID()
  const key = crypto.getRandomValues(new Uint32Array(4))
  // In bulk, because each call to `getRandomValues` takes longer than all the rest.
  const random = new Uint16Array(1024)
  let used = random.length
  const nonce = (): number => {
    if (used === random.length) {
      crypto.getRandomValues(random)
      used = 0
    }
    return random[used++] ?? 0
  }

  return {
    print: (place) => {
      // 48 bits for the place: more events than a process ever stores.
      const upper = Math.floor(place / word) * nonces + nonce()
      const [high, low] = encryptBlock(key, [upper, place % word])
      return FeedCursor(`${epoch}.${high.toString(36)}-${low.toString(36)}`)
    },
    read: (cursor) => {
      const [, before, high = "", low = ""] = pattern.exec(cursor) ?? []
      if (before !== epoch) return undefined
      const block = [Number.parseInt(high, 36) >>> 0, Number.parseInt(low, 36) >>> 0] as const
      const [upper, place] = decrypt(key, block)
      return Math.floor(upper / nonces) * word + place
    },
  }
}
