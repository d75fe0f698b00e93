/** Events of the host's transactions. */

import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { event, p1 } from "../../support/fixtures.ts"
import { HostTransaction, undone } from "../HostTransaction.ts"
import type { StoreTests } from "../storeTests.ts"
import { deliveriesOf, preparedWebhook, theClaim } from "./steps.ts"

/** Declares the tests. */
export const transactionTests = ({ transactional }: StoreTests): void => {
  transactional("publishes nothing in a transaction of the host that fails", () =>
    Effect.gen(function* () {
      const { outbox, webhook } = yield* preparedWebhook
      const { run } = yield* HostTransaction
      yield* undone(outbox.publish(event(p1)))
      yield* undone(outbox.publishTo(event(p1), webhook.id))
      const published = event(p1)
      yield* run(outbox.publish(published))
      expect((yield* theClaim).event.id).toBe(published.id)
      expect(yield* deliveriesOf(webhook)).toHaveLength(1)
    }),
  )
}
