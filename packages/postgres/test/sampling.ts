/** Samples of suites whose tests all run elsewhere. */

import { createHash } from "node:crypto"
import { beforeEach } from "vitest"

/** Skips all tests of a group but one of `every`, which are always the same. */
export const sampled = (every: number): void => {
  beforeEach(({ skip, task }) => {
    const drawn = createHash("sha256").update(task.name).digest().readUInt32LE()
    skip(drawn % every !== 0, "all run in the system suite")
  })
}
