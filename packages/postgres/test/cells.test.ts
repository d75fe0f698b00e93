/** Cells in two databases: routing, by a sample of the tests of the ports whose statements are certified by themselves. */

import { describe } from "vitest"
import { certifyCells } from "./certifying-cells.ts"
import { sampled } from "./sampling.ts"

describe("a sample", () => {
  sampled(8)
  certifyCells(2)
})
