/** Assertions at state transitions. */

/**
 * Throws an `Error` if a condition is violated that every caller must uphold.
 *
 * Call it in code that runs in an Effect, where the error becomes a defect. In a timer, a microtask or a fiber
 * observer, it would end the process.
 *
 * @param message - what was wrong; a constant, because the assertion must cost nothing if it holds
 */
export const invariant: (holds: boolean, message: string) => asserts holds = (holds, message) => {
  if (!holds) throw new Error(message)
}
