/** Changes in a project: how each is drawn, made in a store, and answered by the model. */

import { isEndsLater, isReplayedResponse, lastEndDate } from "@tenure/core/internal"
import {
  type BulkChange,
  EndDate,
  type EndsLater,
  type Event,
  EventId,
  MembershipStore,
  Millis,
  type ReplayedResponse,
  type UserId,
  joinMemberships,
  noMetadata,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import fc from "fast-check"
import { change, longAgo, p1 } from "../../support/fixtures.ts"
import { eventOfGrant } from "../steps.ts"

/** A change, or the question for one date. */
export type MembershipChange =
  | { readonly _tag: "Grant"; readonly userId: UserId; readonly endDate: EndDate }
  | { readonly _tag: "Import"; readonly endDates: ReadonlyMap<UserId, EndDate> }
  | {
      readonly _tag: "Extend"
      readonly userId: UserId
      readonly endDate: EndDate
      readonly expectedEndDate?: EndDate
      readonly mode?: "neverShorten"
    }
  | { readonly _tag: "End" | "Find"; readonly userId: UserId }
  | { readonly _tag: "Move"; readonly userId: UserId; readonly to: UserId }
  | { readonly _tag: "ExtendAll"; readonly bulk: BulkChange }
  /** Undoes an earlier bulk extension. */
  | { readonly _tag: "Undo"; readonly which: number }

/** `Done` or a failure's tag, with its date or number. */
export type Answer = readonly [outcome: string, told?: number]

/** An answer, and the event if the change was made. */
export interface Made {
  readonly answer: Answer
  readonly event?: Event
}

type Entry =
  | { readonly _tag: "Own"; readonly userId: UserId; readonly endDate: EndDate | undefined }
  | {
      readonly _tag: "Bulk"
      readonly id: EventId | undefined
      readonly bulk: BulkChange
      readonly isUndone: boolean
    }

/** Everything that has happened to a project's memberships. */
export type Ledger = ReadonlyArray<Entry>

const own = (userId: UserId, endDate: EndDate | undefined): Entry => ({
  _tag: "Own",
  userId,
  endDate,
})

/** A project's end dates by user id. */
export type EndDates = ReadonlyMap<UserId, EndDate>

/** Returns a ledger with granted memberships. */
export const ledgerOf = (endDates: EndDates): Ledger => [...endDates].map((one) => own(...one))

/** Returns a date after a bulk extension. */
export const bulkDate = (before: EndDate, bulk: BulkChange): EndDate => {
  switch (bulk.mode) {
    case "set":
      return bulk.endDate
    case "neverShorten":
      return before < bulk.endDate ? bulk.endDate : before
    case "extendBy":
      return EndDate(Math.min(before + bulk.by, lastEndDate))
  }
}

/** Returns a project's end dates, as if what was undone had never happened. */
export const datesOf = (ledger: Ledger): EndDates => {
  const dates = new Map<UserId, EndDate>()
  for (const entry of ledger) {
    if (entry._tag === "Bulk") {
      if (entry.isUndone) continue
      for (const [userId, before] of dates) dates.set(userId, bulkDate(before, entry.bulk))
    } else if (entry.endDate === undefined) dates.delete(entry.userId)
    else dates.set(entry.userId, entry.endDate)
  }
  return dates
}

/** Returns the place in the ledger to undo, or -1 if it has no bulk extensions. */
const placeOf = (ledger: Ledger, which: number): number => {
  const places = ledger.flatMap(({ _tag }, place) => (_tag === "Bulk" ? [place] : []))
  return places[which % Math.max(1, places.length)] ?? -1
}

const unknownId = EventId("00000000-0000-4000-8000-000000000000")

/** Returns the bulk extension to undo, or one with an unknown id if the ledger has none. */
export const undoOf = (ledger: Ledger, which: number) => {
  const entry = ledger[placeOf(ledger, which)]
  const bulkExtensionId = (entry?._tag === "Bulk" ? entry.id : undefined) ?? unknownId
  return { bulkExtensionId, madeAfter: longAgo }
}

/** Returns the date after a move, and the expected ones before it. */
const joined = (dates: EndDates, { to, userId }: { userId: UserId; to: UserId }) => {
  const [from, replaced] = [userId, to].map((one) => {
    const endDate = dates.get(one)
    return endDate && { endDate, metadata: noMetadata }
  })
  return from && { expected: { from, to: replaced }, ...(joinMemberships(from, replaced) ?? from) }
}

/**
 * The model: returns the ledger after a change, and the answer.
 *
 * @param id - the id of the change's event, to undo a bulk extension by
 */
export const applyChange = (
  ledger: Ledger,
  made: MembershipChange,
  id?: EventId,
): readonly [Ledger, Answer] => {
  const dates = datesOf(ledger)
  const absent = [ledger, ["MembershipNotFound"]] as const
  switch (made._tag) {
    case "Grant":
      return [[...ledger, own(made.userId, made.endDate)], ["Done"]]
    case "Import":
      return [[...ledger, ...ledgerOf(made.endDates)], ["Done"]]
    case "Extend": {
      const { endDate, expectedEndDate, mode, userId } = made
      const current = dates.get(userId)
      if (current === undefined) return absent
      if (expectedEndDate !== undefined && current !== expectedEndDate)
        return [ledger, ["EndDateConflict", current]]
      if (mode === "neverShorten" && current > endDate) return [ledger, ["EndsLater", current]]
      return [[...ledger, own(userId, endDate)], ["Done"]]
    }
    case "End":
      return dates.has(made.userId) ? [[...ledger, own(made.userId, undefined)], ["Done"]] : absent
    case "Find": {
      const current = dates.get(made.userId)
      return current === undefined ? absent : [ledger, ["Done", current]]
    }
    case "Move": {
      const kept = joined(dates, made)
      if (kept === undefined) return [ledger, ["MoveConflict"]]
      return [[...ledger, own(made.userId, undefined), own(made.to, kept.endDate)], ["Done"]]
    }
    case "ExtendAll":
      return [
        [...ledger, { _tag: "Bulk", id, bulk: made.bulk, isUndone: false }],
        ["Done", dates.size],
      ]
    case "Undo": {
      const place = placeOf(ledger, made.which)
      const entry = ledger[place]
      if (entry?._tag !== "Bulk") return [ledger, ["BulkExtensionNotFound"]]
      if (entry.isUndone) return [ledger, ["BulkExtensionUndone"]]
      return [ledger.with(place, { ...entry, isUndone: true }), ["Done", dates.size]]
    }
  }
}

/** No change here has an idempotency key. */
const first = <A>(changed: A | ReplayedResponse): A => {
  if (isReplayedResponse(changed)) throw new Error("a first request was answered as a repeated one")
  return changed
}

const madeBy = (changed: Event | EndsLater | ReplayedResponse): Made => {
  const one = first(changed)
  return isEndsLater(one)
    ? { answer: ["EndsLater", one.endDate] }
    : { answer: ["Done"], event: one }
}

const refused = (failure: { readonly _tag: string }): Made => {
  const current = Predicate.hasProperty(failure, "currentEndDate") && failure.currentEndDate
  return { answer: typeof current === "number" ? [failure._tag, current] : [failure._tag] }
}

const answered = Effect.match({ onSuccess: madeBy, onFailure: refused })

/**
 * Makes a change in the store.
 *
 * @param ledger - everything before the change, with the dates and bulk extensions to name
 */
export const makeChange = Effect.fnUntraced(function* (made: MembershipChange, ledger: Ledger) {
  const store = yield* MembershipStore
  const context = change(p1)
  switch (made._tag) {
    case "Grant":
      return yield* answered(Effect.map(store.grant({ ...context, ...made }), eventOfGrant))
    case "Import": {
      const memberships = [...made.endDates].map(([userId, endDate]) => ({ userId, endDate }))
      return yield* answered(store.import({ ...context, memberships }))
    }
    case "Extend":
      return yield* answered(store.extend({ ...context, ...made }))
    case "End":
      return yield* answered(store.end({ ...context, ...made }))
    case "Find":
      return yield* Effect.match(store.find(p1, made.userId), {
        onSuccess: ({ endDate }): Made => ({ answer: ["Done", endDate] }),
        onFailure: refused,
      })
    case "Move": {
      const nobody = { endDate: EndDate(0), metadata: noMetadata }
      const kept = joined(datesOf(ledger), made) ?? {
        ...nobody,
        expected: { from: nobody, to: undefined },
      }
      const moving = { ...context, ...made, ...kept, granted: change(p1).event }
      return yield* Effect.match(store.move(moving), {
        onSuccess: (events): Made => ({ answer: ["Done"], event: first(events)[1] }),
        onFailure: refused,
      })
    }
    case "ExtendAll":
    case "Undo": {
      const extended =
        made._tag === "ExtendAll"
          ? store.extendAll({ ...context, bulk: made.bulk })
          : store.undoBulkExtension({ ...context, ...undoOf(ledger, made.which) })
      return yield* Effect.match(Effect.map(extended, first), {
        onSuccess: ({ event, total }): Made => ({ answer: ["Done", total], event }),
        onFailure: refused,
      })
    }
  }
})

/** Returns how each change is drawn, with these users and dates. */
export const drawChanges = (users: fc.Arbitrary<UserId>, endDates: fc.Arbitrary<EndDate>) => {
  const extension = { _tag: fc.constant("Extend" as const), userId: users, endDate: endDates }
  const bulk: fc.Arbitrary<BulkChange> = fc.oneof(
    fc.record({
      mode: fc.constantFrom("set" as const, "neverShorten" as const),
      endDate: endDates,
    }),
    fc.record({
      mode: fc.constant("extendBy" as const),
      by: fc.integer({ min: 1, max: 2 }).map((years) => Millis(years * yearMillis)),
    }),
  )
  return {
    bulk,
    grant: fc.record({ ...extension, _tag: fc.constant("Grant" as const) }),
    import: fc
      .array(fc.tuple(users, endDates))
      .map((rows) => ({ _tag: "Import" as const, endDates: new Map(rows) })),
    extend: fc.record(extension),
    extendIf: fc.record({ ...extension, expectedEndDate: endDates }),
    lengthen: fc.record({ ...extension, mode: fc.constant("neverShorten" as const) }),
    end: fc.record({ _tag: fc.constant("End" as const), userId: users }),
    find: fc.record({ _tag: fc.constant("Find" as const), userId: users }),
    move: fc
      .record({ _tag: fc.constant("Move" as const), userId: users, to: users })
      .filter(({ to, userId }) => to !== userId),
    extendAll: bulk.map((one) => ({ _tag: "ExtendAll" as const, bulk: one })),
    undo: fc.nat().map((which) => ({ _tag: "Undo" as const, which })),
  }
}

const yearMillis = 365 * 86_400_000
