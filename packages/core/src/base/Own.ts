/** Reads own properties of objects that others made: what a prototype has says nothing about them. */

/** Returns the value of an own property, or `undefined` if the object has none of this name. */
export const own = <A extends object, Name extends keyof A>(
  object: A,
  name: Name,
): A[Name] | undefined => (Object.hasOwn(object, name) ? object[name] : undefined)

// A literal without a prototype would be a dictionary, which is slow to fill and to read.
const bare: object = { __proto__: null }

/**
 * Copies an object without its prototype, so that only its own properties are read. What is no object,
 * such as a missing argument in plain JavaScript, has none.
 */
export const owned = <A extends object>(object: A): A => Object.assign(Object.create(bare), object)
