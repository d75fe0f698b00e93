import { expect, it } from "@effect/vitest"
import type { TenureOptions } from "@tenure/core"
import {
  ApiKeys,
  Events,
  Memberships,
  type Services,
  Webhooks,
  tenureLayer,
} from "@tenure/core/effect"
import { type TransportResponse, WebhookTransport } from "@tenure/core/transport"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { memory } from "../src/index.ts"

const projectId = "p1"
const hour = 3_600_000

/** Makes receivers that answer with the next status, and records notification times. */
const receivers = (statuses: ReadonlyArray<number>) => {
  const seen: Array<number> = []
  const layer = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: false,
    send: () =>
      Clock.clockWith((clock) => {
        const status = statuses[seen.length] ?? 200
        seen.push(Number(clock.monotonicTimeNanosUnsafe() / 1_000_000_000n))
        return Effect.succeed<TransportResponse>({ status, retryAfter: undefined, body: "" })
      }),
  })
  return { seen, layer }
}

/** Runs a test on a clock with monotonic time, and wall time a test can set back by an hour. */
const onClock = <A, E>(
  statuses: ReadonlyArray<number>,
  test: (tools: {
    readonly pass: (duration: Duration.Input) => Effect.Effect<void>
    readonly setBack: () => void
    /** When each notification came, in seconds since the beginning. */
    readonly seen: ReadonlyArray<number>
  }) => Effect.Effect<A, E, Services>,
  options: TenureOptions = {},
) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(10 * hour)
    const testClock = yield* Clock.Clock
    let offset = 0
    const clock: Clock.Clock = {
      ...testClock,
      currentTimeMillisUnsafe: () => testClock.currentTimeMillisUnsafe() - offset,
      currentTimeMillis: Effect.sync(() => testClock.currentTimeMillisUnsafe() - offset),
    }
    const { layer, seen } = receivers(statuses)
    const start = 10 * (hour / 1000)
    return yield* test({
      pass: (duration) => Effect.provideService(TestClock.adjust(duration), Clock.Clock, testClock),
      setBack: () => {
        offset = hour
      },
      get seen() {
        return seen.map((second) => second - start)
      },
    }).pipe(
      Effect.provide(Layer.provide(tenureLayer({ transport: layer, ...options }), memory())),
      Effect.provideService(Clock.Clock, clock),
    )
  })

const publish = Effect.flatMap(Events, (events) =>
  events.publish({ projectId, type: "test", data: {} }),
)

const prepare = Effect.gen(function* () {
  yield* (yield* Memberships).createProject(projectId)
  const webhooks = yield* Webhooks
  return yield* webhooks.create({ projectId, url: "https://receiver.example/" })
})

it.effect("a delivery is retried on time after the clock was set back", () =>
  onClock([503], (tools) =>
    Effect.gen(function* () {
      const { id } = yield* prepare
      yield* publish
      yield* tools.pass("1 second")
      tools.setBack()
      yield* tools.pass("7 seconds")
      expect(tools.seen).toHaveLength(2)
      expect(tools.seen[1]).toBeLessThanOrEqual(7)
      yield* publish
      yield* tools.pass("1 second")
      expect(tools.seen).toHaveLength(3)
      const webhooks = yield* Webhooks
      const deliveries = yield* webhooks.deliveries({ projectId, webhookId: id })
      expect(deliveries.map(({ state }) => state)).toEqual(["delivered", "delivered"])
      expect(deliveries[0]?.dueAt).toBe(9 * hour + 8000)
    }),
  ),
)

it.effect("a cached key is found as long as before after the clock was set back", () =>
  onClock([], (tools) =>
    Effect.gen(function* () {
      yield* prepare
      const keys = yield* ApiKeys
      const { token } = yield* keys.issue({ projects: [projectId] })
      yield* keys.authenticate(token)
      tools.setBack()
      yield* tools.pass("9 seconds")
      expect(yield* keys.recall(token)).toBeDefined()
      yield* tools.pass("1 second")
      expect(yield* keys.recall(token)).toBeUndefined()
    }),
  ),
)

it.effect("ends are announced after the clock was ahead when they were first watched", () =>
  onClock(
    [],
    (tools) =>
      Effect.gen(function* () {
        yield* prepare
        tools.setBack()
        yield* tools.pass("1 second")
        const memberships = yield* Memberships
        yield* memberships.grant({
          projectId,
          userId: "1001",
          endDate: new Date(9 * hour + 10_000),
        })
        yield* tools.pass("5 seconds")
        expect(tools.seen).toHaveLength(1)
        yield* tools.pass("6 seconds")
        expect(tools.seen).toHaveLength(2)
      }),
    { expiry: { reminders: [] } },
  ),
)
