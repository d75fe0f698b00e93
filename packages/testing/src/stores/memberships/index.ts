/** Certifies a `MembershipStore`. */

import { MembershipStore } from "@tenure/core/store"
import type { StoreTests } from "../declare.ts"
import { expirySuite } from "../expiry.ts"
import { bulkExtensionTests } from "./bulk-extensions.ts"
import { changingEachTests } from "./changing-each.ts"
import {
  changingTests,
  expectingTests,
  farDatesTests,
  importingTests,
  metadataTests,
} from "./changing.ts"
import { formTests } from "./forms.ts"
import { graceTests } from "./grace.ts"
import { absentTests } from "./granting.ts"
import { onceTests } from "./idempotency.ts"
import { modelTests } from "./model.ts"
import { erasingTests, movedTests } from "./moving.ts"
import { pausingTests } from "./pausing.ts"
import { countingTests, deletingTests, projectTests } from "./projects.ts"
import { countingEndsTests, endingListTests, previewingTests, readingTests } from "./reading.ts"
import { atomicityTests, auditingTests, eventTests, sequenceTests } from "./recording.ts"
import { searchTests } from "./searching.ts"
import { selectingChangesTests } from "./selecting-changes.ts"

export const membershipStoreSuite = (on: StoreTests): void => {
  on.test("responds to a ping", function* () {
    yield* (yield* MembershipStore).ping
  })
  changingTests(on)
  expectingTests(on)
  farDatesTests(on)
  formTests(on)
  absentTests(on)
  graceTests(on)
  pausingTests(on)
  metadataTests(on)
  importingTests(on)
  changingEachTests(on)
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
  searchTests(on)
  selectingChangesTests(on)
  eventTests(on)
  sequenceTests(on)
  atomicityTests(on)
  onceTests(on)
  modelTests(on)
  expirySuite(on)
}
