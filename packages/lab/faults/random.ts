/** Random choices that a seed repeats. */

export interface Random {
  /** A number from 0 up to, but not including, 1. */
  readonly next: () => number
  /** A number between two others. */
  readonly between: (least: number, most: number) => number
  /** A whole number from 0 to `count - 1`. */
  readonly below: (count: number) => number
  readonly pick: <A>(from: readonly [A, ...ReadonlyArray<A>]) => A
  /** Whether something happens that has this probability. */
  readonly chance: (probability: number) => boolean
  /** The items in another order. */
  readonly shuffle: <A>(items: ReadonlyArray<A>) => ReadonlyArray<A>
}

/** The generator "mulberry32", whose state is one 32-bit number. */
const mulberry32 = (seed: number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Mixes a seed's parts to a number. */
const hash = (parts: ReadonlyArray<number | string>): number => {
  let sum = 0x811c9dc5
  for (const character of parts.join("/")) {
    sum = Math.imul(sum ^ character.charCodeAt(0), 0x01000193)
  }
  return sum
}

/** Makes a source. The same seed makes the same choices; different purposes need different parts. */
export const random = (...seed: ReadonlyArray<number | string>): Random => {
  const next = mulberry32(hash(seed))
  const below = (count: number) => Math.floor(next() * count)
  return {
    next,
    below,
    between: (least, most) => least + next() * (most - least),
    pick: (from) => from[below(from.length)] ?? from[0],
    chance: (probability) => next() < probability,
    shuffle: (items) =>
      items
        .map((item) => ({ item, place: next() }))
        .toSorted((a, b) => a.place - b.place)
        .map(({ item }) => item),
  }
}
