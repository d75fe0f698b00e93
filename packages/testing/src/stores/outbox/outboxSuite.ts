/** What every `Outbox` must do. */

import { Outbox } from "@tenure/core/Outbox"
import type { StoreTests } from "../storeTests.ts"
import { backlogTests } from "./backlog.ts"
import { changesTests } from "./changes.ts"
import { claimingTests } from "./claiming.ts"
import { concurrencyTests } from "./concurrency.ts"
import { deliveriesTests } from "./deliveries.ts"
import { disabledTests } from "./disabled.ts"
import { failingTests } from "./failing.ts"
import { findingTests } from "./finding.ts"
import { publishingTests } from "./publishing.ts"
import { settlingTests } from "./settling.ts"
import { transactionTests } from "./transactions.ts"

/** Declares the tests. */
export const outboxSuite = (on: StoreTests): void => {
  on.test("responds to a ping", () => Outbox.use((store) => store.ping))
  publishingTests(on)
  claimingTests(on)
  concurrencyTests(on)
  settlingTests(on)
  disabledTests(on)
  failingTests(on)
  changesTests(on)
  deliveriesTests(on)
  findingTests(on)
  backlogTests(on)
  transactionTests(on)
}
