/** What every adapter must do: the whole API, over real connections. */

import { describe } from "vitest"
import { accessSuite } from "./accessSuite.ts"
import { type AdapterHarness, servingOn } from "./AdapterHarness.ts"
import { connectionsSuite } from "./connectionsSuite.ts"
import { docsSuite } from "./docsSuite.ts"
import { eventsSuite } from "./eventsSuite.ts"
import { feedSuite } from "./feedSuite.ts"
import { hostSuite } from "./hostSuite.ts"
import { limitsSuite } from "./limitsSuite.ts"
import { malformedSuite, parsedSuite } from "./malformedSuite.ts"
import { operationsSuite } from "./operations/operationsSuite.ts"
import { rolesSuite } from "./rolesSuite.ts"
import { standaloneSuite } from "./standaloneSuite.ts"

/**
 * Declares the tests that certify an adapter: one that mounts the API in a host, or one that serves
 * the API alone.
 */
export const adapterSuite = (name: string, harness: AdapterHarness): void => {
  const serving = servingOn(harness)
  describe(name, () => {
    operationsSuite(serving)
    accessSuite(serving)
    rolesSuite(serving)
    limitsSuite(serving)
    malformedSuite(serving)
    eventsSuite(serving)
    feedSuite(serving)
    connectionsSuite(serving)
    docsSuite(serving)
    if (harness.isSameBehindParser === true) parsedSuite(servingOn(harness, true))
    if (harness.isStandalone === true) standaloneSuite(serving)
    else hostSuite(serving)
  })
}
