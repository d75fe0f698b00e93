/** The ports in a folder: a sample of the tests, because the statements are those that are certified on PostgreSQL. */

import { describe } from "vitest"
import { sampled } from "../../postgres/test/sampling.ts"
import { certifyEmbedded } from "./certifying.ts"

describe("a sample", () => {
  sampled(24)
  certifyEmbedded({ runs: 2, withOutbox: false })
})
