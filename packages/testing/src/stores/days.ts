/** Random changes to members whose end dates are whole days apart, made in a store and in a simple model. */

import { currentUnixMillis } from "@tenure/core/internal"
import {
  type BulkChange,
  EndDate,
  type EventId,
  MembershipStore,
  Millis,
  type UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import fc from "fast-check"
import { expect } from "vitest"
import { change, longAgo, p1, u1, u2, u3 } from "../support/fixtures.ts"
import type { StoreTests } from "./declare.ts"
import { dayMillis, outcomeOf } from "./steps.ts"

const users = [u1, u2, u3]
const user = fc.constantFrom(...users)

/** Returns changes with dates from some days before a test until so many days after its beginning. */
export const dayChanges = (most: number) => {
  // At noon: between two dates, whole days pass.
  const date = fc.integer({ min: -5, max: most }).map((day) => day + 0.5)
  const dated = { user, date }
  const extend = fc.record({ _tag: fc.constant("Extend" as const), ...dated })
  const mode = fc.constantFrom("set" as const, "neverShorten" as const)
  const bulk = [
    fc.record({ _tag: fc.constant("ExtendAll" as const), mode, date }),
    fc.record({
      _tag: fc.constant("ExtendBy" as const),
      days: fc.integer({ min: 1, max: Math.ceil(most / 3) }),
    }),
    fc.record({ _tag: fc.constant("Undo" as const), which: fc.nat() }),
  ] as const
  return {
    date,
    /** Changes to members. */
    meanwhile: fc.oneof(extend, ...bulk),
    any: fc.oneof(
      fc.record({ _tag: fc.constant("Grant" as const), ...dated }),
      fc.record({ _tag: fc.constant("Import" as const), users: fc.subarray(users), date }),
      fc.record({ _tag: fc.constant("End" as const), user }),
      extend,
      ...bulk,
    ),
    days: fc.record({
      _tag: fc.constant("Days" as const),
      days: fc.integer({ min: 1, max: Math.ceil(most / 4) }),
    }),
  }
}

type DayChange = ReturnType<typeof dayChanges>["any"] extends fc.Arbitrary<infer A> ? A : never

/** A bulk extension, in days. */
interface Bulk {
  readonly id: EventId
  readonly apply: (day: number) => number
  isUndone: boolean
}

/** Begins to count days, on a store whose first project has no members yet. */
export const countDays = Effect.fnUntraced(function* ({ advance, settlesAtOnce }: StoreTests) {
  const store = yield* MembershipStore
  const origin = yield* currentUnixMillis
  /** The date set for each member alone, and how many bulk extensions came before. */
  const own = new Map<UserId, { readonly date: number; readonly after: number }>()
  const bulk: Array<Bulk> = []
  let today = 0

  /** How many days stored data was moved into the past, instead of moving the clock. */
  const moved = Effect.map(currentUnixMillis, (now) =>
    now - origin < (today * dayMillis) / 2 ? today : 0,
  )
  const toStored = (day: number) =>
    Effect.map(moved, (days) => EndDate(origin + (day - days) * dayMillis))
  const changeNow = Effect.map(currentUnixMillis, (at) => ({ ...change(p1), at }))

  const set = (userId: UserId, date: number) => void own.set(userId, { date, after: bulk.length })

  const extendAll = Effect.fnUntraced(function* (one: BulkChange, apply: Bulk["apply"]) {
    const extension = { ...(yield* changeNow), bulk: one }
    yield* store.extendAll(extension)
    bulk.push({ id: extension.event.id, apply, isUndone: false })
  })

  const make = Effect.fnUntraced(function* (one: DayChange) {
    const endDate = "date" in one ? yield* toStored(one.date) : EndDate(0)
    switch (one._tag) {
      case "Grant":
        yield* store.grant({ ...change(p1), userId: one.user, endDate })
        return set(one.user, one.date)
      case "Extend":
        if (!own.has(one.user)) return undefined
        yield* store.extend({ ...change(p1), userId: one.user, endDate })
        return set(one.user, one.date)
      case "Import": {
        const memberships = one.users.map((userId) => ({ userId, endDate }))
        yield* store.import({ ...change(p1), memberships })
        return one.users.forEach((userId) => set(userId, one.date))
      }
      case "End":
        if (own.delete(one.user)) yield* store.end({ ...change(p1), userId: one.user })
        return undefined
      case "ExtendAll":
        return yield* extendAll({ endDate, mode: one.mode }, (on) =>
          one.mode === "set" || on < one.date ? one.date : on,
        )
      case "ExtendBy": {
        const by = Millis(one.days * dayMillis)
        return yield* extendAll({ mode: "extendBy", by }, (on) => on + one.days)
      }
      case "Undo": {
        const open = bulk.filter(({ isUndone }) => !isUndone)
        const undone = open[one.which % Math.max(1, open.length)]
        if (undone === undefined) return false
        const target = { bulkExtensionId: undone.id, madeAfter: longAgo }
        const outcome = yield* outcomeOf(
          store.undoBulkExtension({ ...(yield* changeNow), ...target }),
        )
        expect(settlesAtOnce ? ["done", "BulkExtensionSettled"] : ["done"]).toContain(outcome)
        return (undone.isUndone = outcome === "done")
      }
    }
  })

  return {
    store,
    today: () => today,
    pass: Effect.fnUntraced(function* (days: number) {
      yield* advance(days * dayMillis)
      today += days
    }),
    toStored,
    fromStored: (endDate: number) =>
      Effect.map(moved, (days) => (endDate - origin) / dayMillis + days),
    /** The date set for a member alone. */
    own: (userId: UserId) => own.get(userId),
    /** Returns all members' end dates, as if what was undone had never happened. */
    dates: (): ReadonlyMap<UserId, number> =>
      new Map(
        [...own].map(([userId, { after, date }]) => {
          const later = bulk.slice(after).filter(({ isUndone }) => !isUndone)
          return [userId, later.reduce((day, { apply }) => apply(day), date)]
        }),
      ),
    /** Makes a change, if it is possible. Returns `false` if there is nothing to undo. */
    make,
  }
})
