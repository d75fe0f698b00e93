/** Waiting for a condition, with a deadline. */

import { expect } from "vitest"

/** Waits until a condition holds. Fails the test if it does not hold within a minute. */
export const eventually = (holds: () => Promise<boolean> | boolean): Promise<unknown> =>
  expect.poll(holds, { timeout: 60_000, interval: 20 }).toBe(true)
