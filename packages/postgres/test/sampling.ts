/** Samples from suites whose tests all run elsewhere. */

import { createHash } from "node:crypto"
import { beforeEach, inject } from "vitest"

declare module "vitest" {
  interface ProvidedContext {
    /** The run's seed, which Vitest prints. */
    readonly seed: number
  }
}

/** Skips all tests in a group but one in `every`. The run's seed decides which. */
export const sampled = (every: number): void => {
  beforeEach(({ skip, task }) => {
    const hash = createHash("sha256").update(`${inject("seed")} ${task.name}`)
    skip(hash.digest().readUInt32LE() % every !== 0, "all run in the system suite")
  })
}
