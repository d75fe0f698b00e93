/** What a store and a transport must do together: deliveries over real connections. */

import { describe } from "vitest"
import { deadlineTests } from "./deadlines.ts"
import { deliveriesOn, type DeliveryHarness } from "./DeliveryHarness.ts"
import { endingTests } from "./ending.ts"
import { eventTests } from "./events.ts"
import { flushingTests } from "./flushing.ts"
import { retryTests } from "./retries.ts"

/** Declares the tests that certify deliveries with a store and a transport. */
export const deliverySuite = (name: string, harness: DeliveryHarness): void => {
  describe(name, () => {
    const deliveries = deliveriesOn(harness)
    eventTests(deliveries)
    deadlineTests(deliveries)
    retryTests(deliveries)
    endingTests(deliveries)
    flushingTests(deliveries)
  })
}
