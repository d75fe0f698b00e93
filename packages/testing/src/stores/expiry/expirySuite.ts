/** What every `MembershipStore` must do that announces ends. */

import type { StoreTests } from "../storeTests.ts"
import { announcingTests } from "./announcing.ts"
import { announcingModelTests } from "./model.ts"

/** Declares the tests, which pass a store that declares itself without. */
export const expirySuite = (on: StoreTests): void => {
  announcingTests(on)
  announcingModelTests(on)
}
