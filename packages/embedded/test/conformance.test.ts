/** The ports in a folder: a sample, because PostgreSQL's tests certify the same statements. */

import { describe } from "vitest"
import { sampled } from "../../postgres/test/sampling.ts"
import { certifyEmbedded } from "./certifying.ts"

describe("a sample", () => {
  sampled(24)
  certifyEmbedded({ runs: 2, withOutbox: false })
})
