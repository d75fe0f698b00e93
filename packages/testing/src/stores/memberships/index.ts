/** Certifies a `MembershipStore`. */

import { MembershipStore } from "@tenure/core/store"
import type { StoreTests } from "../declare.ts"
import { expirySuite } from "../expiry.ts"
import { bulkExtensionTests } from "./bulk-extensions.ts"
import { changingTests, expectingTests } from "./changing.ts"
import { countingEndsTests } from "./counting-ends.ts"
import { endingListTests } from "./ending-lists.ts"
import { erasingTests } from "./erasing.ts"
import { farDatesTests } from "./far-dates.ts"
import { onceTests } from "./idempotency.ts"
import { importingTests } from "./importing.ts"
import { metadataTests } from "./metadata.ts"
import { modelTests } from "./model.ts"
import { movedTests } from "./moving.ts"
import { previewingTests } from "./previewing.ts"
import { countingTests, deletingTests, projectTests } from "./projects.ts"
import { readingTests } from "./reading.ts"
import { atomicityTests, auditingTests, eventTests, sequenceTests } from "./recording.ts"

/** Declares the tests. */
export const membershipStoreSuite = (on: StoreTests): void => {
  on.test("responds to a ping", function* () {
    yield* (yield* MembershipStore).ping
  })
  changingTests(on)
  expectingTests(on)
  farDatesTests(on)
  metadataTests(on)
  importingTests(on)
  bulkExtensionTests(on)
  countingTests(on)
  readingTests(on)
  endingListTests(on)
  countingEndsTests(on)
  previewingTests(on)
  projectTests(on)
  deletingTests(on)
  movedTests(on)
  erasingTests(on)
  auditingTests(on)
  eventTests(on)
  sequenceTests(on)
  atomicityTests(on)
  onceTests(on)
  modelTests(on)
  expirySuite(on)
}
