/** What every adapter has to do: the whole of the API in a host, over real connections. */

import { describe } from "vitest"
import { accessSuite } from "./accessSuite.ts"
import { type AdapterHarness, servingOn } from "./AdapterHarness.ts"
import { connectionsSuite } from "./connectionsSuite.ts"
import { eventsSuite } from "./eventsSuite.ts"
import { hostSuite } from "./hostSuite.ts"
import { limitsSuite } from "./limitsSuite.ts"
import { malformedSuite } from "./malformedSuite.ts"
import { operationsSuite } from "./operationsSuite.ts"

/** Declares the suite. */
export const adapterSuite = (name: string, harness: AdapterHarness): void => {
  const serving = servingOn(harness)
  describe(name, () => {
    operationsSuite(serving)
    accessSuite(serving)
    limitsSuite(serving)
    malformedSuite(serving)
    eventsSuite(serving)
    connectionsSuite(serving)
    hostSuite(serving)
  })
}
