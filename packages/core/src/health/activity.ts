/** This process's activity in each minute of the last hour, for operators. Nothing is stored. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ApiKeyId } from "../base/values.ts"
import { type Observer, addObserver } from "../telemetry/observer.ts"

/** A minute's activity. */
interface Minute {
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  /** Successful attempts. */
  readonly delivered: number
  /** Failed attempts. */
  readonly failed: number
  /** Requests refused by a rate limit. */
  readonly refused: number
}

/** How many requests were refused to a key. */
interface Refusals {
  /** `undefined` for requests without a valid key, and for keys beyond the first hundred. */
  readonly keyId: ApiKeyId | undefined
  readonly refused: number
}

/** A process's activity in the last hour. */
export interface ActivityReport {
  /** Sixty minutes, oldest first; the last one goes on. */
  readonly minutes: ReadonlyArray<Minute>
  /** Refused principals, most often first. Each minute distinguishes a hundred keys. */
  readonly refusals: ReadonlyArray<Refusals>
}

const minuteMillis = 60_000

const minutesKept = 60

// More keys than operators look at, in as much memory as a minute may take.
const mostKeys = 100

/** A minute's counts. */
interface Slot {
  readonly minute: number
  delivered: number
  failed: number
  refused: number
  readonly byKey: Map<ApiKeyId | undefined, number>
}

const emptySlot = (minute: number): Slot => ({
  minute,
  delivered: 0,
  failed: 0,
  refused: 0,
  byKey: new Map(),
})

/** Counts up to a hundred keys apart, and all others together. */
const countKey = ({ byKey }: Slot, keyId: ApiKeyId | undefined): void => {
  const counted = byKey.has(keyId) || byKey.size < mostKeys ? keyId : undefined
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

/** Counts per minute. Each minute replaces the one an hour before. */
interface Counts {
  /** Returns a minute's counts, to add to them. */
  readonly at: (minute: number) => Slot
  /** Returns the counts for the hour up to a minute. */
  readonly upTo: (minute: number) => ActivityReport
}

const makeCounts = (): Counts => {
  const slots: Array<Slot> = []

  const read = (minute: number): Slot => {
    const slot = slots[minute % minutesKept]
    return slot?.minute === minute ? slot : emptySlot(minute)
  }

  return {
    at: (minute) => (slots[minute % minutesKept] = read(minute)),
    upTo: (last) => {
      const hour = Array.from({ length: minutesKept }, (_, index) =>
        read(last - minutesKept + 1 + index),
      )
      return {
        minutes: hour.map(({ delivered, failed, minute, refused }) => ({
          at: minute * minuteMillis,
          delivered,
          failed,
          refused,
        })),
        refusals: refusalsIn(hour),
      }
    },
  }
}

/** Reports this process's activity. */
export class Activity extends Context.Service<
  Activity,
  {
    /** The last hour's activity. */
    readonly report: Effect.Effect<ActivityReport>
    /** Counts activity. */
    readonly observer: Observer
  }
>()("@tenure/core/Activity") {
  static readonly layer = Layer.suspend(() => Layer.effect(Activity, make))
}

/** Has the activity counted. */
export const activityCounterLayer: Layer.Layer<never, never, Activity> = Layer.unwrap(
  Effect.map(Activity, ({ observer }) => addObserver(observer)),
)

const make = Effect.map(Clock.Clock, (clock) => {
  const counts = makeCounts()
  const minute = () => Math.floor(clock.currentTimeMillisUnsafe() / minuteMillis)
  return Activity.of({
    report: Effect.sync(() => counts.upTo(minute())),
    observer: {
      attempted: ({ outcome }) => {
        counts.at(minute())[outcome === "Delivered" ? "delivered" : "failed"]++
      },
      refused: ({ keyId }) => {
        const slot = counts.at(minute())
        slot.refused++
        countKey(slot, keyId)
      },
    },
  })
})
