/** Services on memory stores, with feed reads controlled by a test. */

import { it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { expect } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { FeedStore } from "../../src/events/feed-store.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, type TenureOptions, tenureLayer } from "../../src/tenure.ts"
import { Events } from "../../src/webhooks/published-events.ts"

export const projectId = "p1"
export const otherId = "p2"

type Read = FeedStore["Service"]["read"]

/** Feed reads. */
export interface Reads {
  /** The projects in each read. */
  readonly asked: Array<ReadonlyArray<string>>
  /** Changes how the feed is read from now on. */
  by: (right: Read) => Read
}

export const right = (read: Read): Read => read

export const unavailable = (): Read => () => Effect.fail(new StoreUnavailable({ cause: "down" }))

const observed = (reads: Reads) =>
  Layer.effect(
    FeedStore,
    Effect.map(FeedStore, (store) => ({
      ...store,
      read: (...query) =>
        Effect.suspend(() => {
          reads.asked.push(query[0])
          return reads.by(store.read)(...query)
        }),
    })),
  )

/** Returns a function to declare tests for a service, with two projects. */
export const testsOf =
  <A>(service: Effect.Effect<A, never, Services>) =>
  (
    name: string,
    body: (service: A, reads: Reads) => Effect.fn.Return<void, unknown, Services | Scope.Scope>,
    options?: TenureOptions,
  ): void => {
    const reads: Reads = { asked: [], by: right }
    const stores = Layer.provideMerge(observed(reads), memory())
    const services = Layer.provide(tenureLayer({ expiry: false, ...options }), stores)
    const run = Effect.gen(function* () {
      const { createProject } = yield* Memberships
      yield* createProject(projectId)
      yield* createProject(otherId)
      const tested = yield* service
      return yield* Effect.gen(() => body(tested, reads))
    })
    it.effect(name, () => Effect.provide(Effect.scoped(run), services))
  }

export const publish = (type: string, project = projectId, data: unknown = {}) =>
  Effect.flatMap(Events, (events) => events.publish({ projectId: project, type, data }))

export const publishAll = (...types: ReadonlyArray<string>) =>
  Effect.forEach(types, (type) => publish(type))

/** Starts to wait, and returns when nothing else happens at this time. */
export const waiting = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkChild(effect, { startImmediately: true })
  yield* TestClock.adjust(1)
  expect(fiber.pollUnsafe()).toBeUndefined()
  return fiber
})

/** Lets seconds pass one by one, so that work due each second is done each time. */
export const passSeconds = (count: number) => Effect.replicateEffect(TestClock.adjust(1000), count)
