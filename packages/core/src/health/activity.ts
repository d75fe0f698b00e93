/** The last hour's activity by the minute, for operators: all processes' deliveries, and this process's refusals. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ApiKeyId } from "../base/values.ts"
import { type Observer, addObserver } from "../telemetry/observer.ts"
import { type ActivityCell, lastHour } from "../webhooks/delivery-activity.ts"
import { Outbox } from "../webhooks/outbox.ts"

/** A minute's activity. All processes' deliveries count. */
interface Minute extends ActivityCell {
  /** Requests that this process's rate limits refused. */
  readonly refused: number
}

/** How many requests were refused to a key. */
interface Refusals {
  /** `undefined` for requests without a valid key, and for keys beyond the first hundred. */
  readonly keyId: ApiKeyId | undefined
  /** How many requests were refused. */
  readonly refused: number
}

/** The activity in the last hour. */
export interface ActivityReport {
  /** Sixty minutes by the store's clock, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<Minute>
  /** Refused principals, most often first. Each minute distinguishes a hundred keys. */
  readonly refusals: ReadonlyArray<Refusals>
}

const { cellMillis: minuteMillis, cells: minutesKept } = lastHour

// More keys than operators look at, in as much memory as a minute may take.
const maxKeys = 100

const minuteOf = (at: number): number => Math.floor(at / minuteMillis)

/** A minute's refusals. */
interface Slot {
  readonly minute: number
  refused: number
  readonly byKey: Map<ApiKeyId | undefined, number>
}

const emptySlot = (minute: number): Slot => ({
  minute,
  refused: 0,
  byKey: new Map(),
})

/** Counts up to a hundred keys apart, and all others together. */
const countKey = ({ byKey }: Slot, keyId: ApiKeyId | undefined): void => {
  const counted = byKey.has(keyId) || byKey.size < maxKeys ? keyId : undefined
  byKey.set(counted, (byKey.get(counted) ?? 0) + 1)
}

const refusalsIn = (slots: ReadonlyArray<Slot>): ReadonlyArray<Refusals> => {
  const sums = new Map<ApiKeyId | undefined, number>()
  for (const { byKey } of slots) {
    for (const [keyId, count] of byKey) sums.set(keyId, (sums.get(keyId) ?? 0) + count)
  }
  return [...sums]
    .map(([keyId, refused]) => ({ keyId, refused }))
    .toSorted((one, other) => other.refused - one.refused)
}

/** Refusals per minute. Each minute replaces the one an hour before. */
interface Counts {
  /** Returns a minute's refusals. */
  readonly read: (minute: number) => Slot
  /** Returns a minute's refusals, to add to them. */
  readonly at: (minute: number) => Slot
}

const makeCounts = (): Counts => {
  const slots: Array<Slot> = []

  const read = (minute: number): Slot => {
    const slot = slots[minute % minutesKept]
    return slot?.minute === minute ? slot : emptySlot(minute)
  }

  return { read, at: (minute) => (slots[minute % minutesKept] = read(minute)) }
}

/** Reports the activity. */
export class Activity extends Context.Service<
  Activity,
  {
    /** The last hour's activity. */
    readonly report: Effect.Effect<ActivityReport, StoreUnavailable>
    /** Counts refusals. */
    readonly observer: Observer
  }
>()("@tenure/core/Activity") {
  static readonly layer = Layer.suspend(() => Layer.effect(Activity, make))
}

/** Has refusals counted. */
export const activityCounterLayer: Layer.Layer<never, never, Activity> = Layer.unwrap(
  Effect.map(Activity, ({ observer }) => addObserver(observer)),
)

const make = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const outbox = yield* Outbox
  const counts = makeCounts()
  return Activity.of({
    // There is no project that may not exist.
    report: Effect.map(
      Effect.catchTag(outbox.minutes(undefined), "ProjectNotFound", Effect.die),
      (minutes) => {
        const slots = minutes.map(({ at }) => counts.read(minuteOf(at)))
        return {
          minutes: minutes.map((minute, index) => ({
            ...minute,
            refused: slots[index]?.refused ?? 0,
          })),
          refusals: refusalsIn(slots),
        }
      },
    ),
    observer: {
      refused: ({ keyId }) => {
        const slot = counts.at(minuteOf(clock.currentTimeMillisUnsafe()))
        slot.refused++
        countKey(slot, keyId)
      },
    },
  })
})
