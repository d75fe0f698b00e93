/** Sharing among shards that take turns. */

/** Divides a number into shares that differ by one at most, the larger ones first. */
export const shares = (total: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => Math.ceil((total - index) / count))

/** Returns the items in their order, beginning with the item after `turn` others. */
export const rotated = <A>(items: ReadonlyArray<A>, turn: number): ReadonlyArray<A> => {
  const first = items.length === 0 ? 0 : turn % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
