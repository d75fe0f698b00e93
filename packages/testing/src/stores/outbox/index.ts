/** Certifies an `Outbox`. */

import { Outbox } from "@tenure/core/store"
import type { StoreTests } from "../declare.ts"
import { activityTests } from "./activity.ts"
import { claimingTests, concurrencyTests } from "./claiming.ts"
import { backlogTests, deliveriesTests, findingTests } from "./deliveries.ts"
import { listsTests } from "./lists.ts"
import { orderingTests } from "./ordering.ts"
import { changesTests, publishingTests, transactionTests } from "./publishing.ts"
import { rateTests } from "./rates.ts"
import { replayingTests } from "./replaying.ts"
import { disabledTests, failingTests, settlingTests } from "./settling.ts"

/** Declares the tests. */
export const outboxSuite = (on: StoreTests): void => {
  on.test("responds to a ping", function* () {
    yield* (yield* Outbox).ping
  })
  publishingTests(on)
  claimingTests(on)
  concurrencyTests(on)
  orderingTests(on)
  rateTests(on)
  settlingTests(on)
  disabledTests(on)
  failingTests(on)
  changesTests(on)
  deliveriesTests(on)
  listsTests(on)
  replayingTests(on)
  findingTests(on)
  backlogTests(on)
  activityTests(on)
  transactionTests(on)
}
