/** Cells in two databases: a sample, because the ports' statements are certified elsewhere. */

import { describe } from "vitest"
import { certifyCells } from "./certifying.ts"
import { sampled } from "./sampling.ts"

describe("a sample", () => {
  sampled(8)
  certifyCells(2)
})
