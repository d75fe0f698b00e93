/** What every `MembershipStore` must do. */

import { MembershipStore } from "@tenure/core/MembershipStore"
import { expirySuite } from "../expiry/expirySuite.ts"
import type { StoreTests } from "../storeTests.ts"
import { atomicityTests } from "./atomicity.ts"
import { auditingTests } from "./auditing.ts"
import { bulkTests } from "./bulk.ts"
import { changingTests } from "./changing.ts"
import { countingTests } from "./counting.ts"
import { deletingTests } from "./deleting.ts"
import { endingSoonTests } from "./endingSoon.ts"
import { erasingTests } from "./erasing.ts"
import { eventTests } from "./events.ts"
import { expectingTests } from "./expecting.ts"
import { importingTests } from "./importing.ts"
import { lengtheningTests } from "./lengthening.ts"
import { modelTests } from "./model.ts"
import { onceTests } from "./once.ts"
import { projectTests } from "./projects.ts"
import { readingTests } from "./reading.ts"
import { sequenceTests } from "./sequence.ts"

/** Declares the tests. */
export const membershipStoreSuite = (on: StoreTests): void => {
  on.test("responds to a ping", () => MembershipStore.use((store) => store.ping))
  changingTests(on)
  expectingTests(on)
  lengtheningTests(on)
  importingTests(on)
  bulkTests(on)
  countingTests(on)
  readingTests(on)
  endingSoonTests(on)
  projectTests(on)
  deletingTests(on)
  erasingTests(on)
  auditingTests(on)
  eventTests(on)
  sequenceTests(on)
  atomicityTests(on)
  onceTests(on)
  modelTests(on)
  expirySuite(on)
}
