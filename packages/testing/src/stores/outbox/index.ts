/** Certifies an `Outbox`. */

import { Outbox } from "@tenure/core/store"
import type { StoreTests } from "../declare.ts"
import { activityTests } from "./activity.ts"
import { backlogTests } from "./backlog.ts"
import { cancellingTests } from "./cancelling.ts"
import { claimingTests, concurrencyTests, rateTests } from "./claiming.ts"
import { deliveriesTests, findingTests, listsTests } from "./deliveries.ts"
import { orderingTests, replayingTests } from "./ordering.ts"
import { changesTests, publishingTests, transactionTests } from "./publishing.ts"
import { disabledTests, failingTests, settlingTests } from "./settling.ts"

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
  cancellingTests(on)
  findingTests(on)
  backlogTests(on)
  activityTests(on)
  transactionTests(on)
}
