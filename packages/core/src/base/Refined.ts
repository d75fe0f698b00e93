/**
 * Constructors of branded values. Those of `effect/Brand` load the syntax tree of Schema, which
 * takes a third of the time to import the whole library.
 */

/** A constructor that throws a `TypeError` on an invalid value, with a guard. */
export interface Refined<A, B extends A> {
  (value: A): B
  readonly is: (value: A) => value is B
  /** What a valid value looks like, for error messages. */
  readonly expected: string
}

/**
 * Makes the constructor of a brand that only some values may carry.
 *
 * @param name - what the values are, for error messages
 * @param expected - what a valid value looks like, for error messages
 * @param isValid - tells whether a value may carry the brand
 */
export const refined = <A, B extends A>(
  name: string,
  expected: string,
  isValid: (value: A) => boolean,
): Refined<A, B> => {
  const is = (value: A): value is B => isValid(value)
  const make = (value: A): B => {
    if (!is(value)) throw new TypeError(`invalid ${name}: expected ${expected}`)
    return value
  }
  return Object.assign(make, { is, expected })
}

/** Makes the constructor of a brand that every value may carry. It does nothing at run time. */
export function nominal<A, B extends A>(): (value: A) => B
export function nominal<A>(): (value: A) => A {
  return (value) => value
}
