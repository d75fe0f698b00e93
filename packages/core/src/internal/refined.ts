/**
 * Constructors of branded values. `effect/Brand` has their like, but loads Schema's syntax tree
 * with it: a third of what importing the whole library costs at start.
 */

/** A constructor that throws on a value that is not refined, and a guard that tells. */
export interface Refined<A, B extends A> {
  (value: A): B
  readonly is: (value: A) => value is B
}

/** Makes the constructor of the values that `holds` is true of. */
export const refined = <A, B extends A>(
  name: string,
  holds: (value: A) => boolean,
): Refined<A, B> => {
  const is = (value: A): value is B => holds(value)
  const make = (value: A): B => {
    if (!is(value)) throw new TypeError(`not a valid ${name}`)
    return value
  }
  return Object.assign(make, { is })
}

/** Makes the constructor of a brand that every value may bear. */
export const nominal = <A, B extends A>(): ((value: A) => B) => refined<A, B>("value", () => true)
