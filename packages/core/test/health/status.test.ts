import { describe, expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { Status } from "../../src/health/status.ts"
import { tenureLayer } from "../../src/tenure.ts"
import { Outbox } from "../../src/webhooks/outbox.ts"

/** Returns the report on stores in memory that answer a request for the backlog like this. */
const reportWith = (backlog: ReturnType<Outbox["Service"]["backlog"]>) => {
  const outbox = Layer.effect(
    Outbox,
    Effect.map(Outbox, (right) => ({ ...right, backlog: () => backlog })),
  )
  const stores = Layer.provideMerge(outbox, memory())
  return Status.use(({ report }) => report).pipe(
    Effect.provide(Layer.provide(tenureLayer({ expiry: false }), stores)),
  )
}

describe("the status", () => {
  it.effect("has what is left to deliver", () =>
    Effect.gen(function* () {
      const backlog = {
        waiting: 3,
        dueForMillis: 1500,
        lateForMillis: undefined,
        failedDeliveries: 2,
        disabledWebhooks: 1,
      }
      const report = yield* reportWith(Effect.succeed(backlog))
      expect(report).toMatchObject({ backlog, suspendedKeys: [] })
    }),
  )

  it.effect.each([
    Effect.fail(new StoreUnavailable({ cause: "down" })),
    Effect.die("a defect"),
    Effect.never,
  ])("has the rest if the store of deliveries does not answer", (backlog) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(reportWith(backlog))
      yield* TestClock.adjust("5 seconds")
      const report = yield* Fiber.join(fiber)
      expect(report.backlog).toBeUndefined()
      expect(report.webhooksNeedingAttention).toEqual([])
      expect(report.stores.memberships).toBe(true)
    }),
  )
})
