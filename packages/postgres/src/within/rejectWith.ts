import * as Predicate from "effect/Predicate"

/**
 * Runs a statement. If it rejects, then with the error of the driver, which is a property of the error
 * of the library.
 */
export const rejectWith = async <A>(property: string, run: () => Promise<A>): Promise<A> => {
  try {
    return await run()
  } catch (error) {
    throw Predicate.hasProperty(error, property) ? error[property] : error
  }
}
