/** Random sequences: changes, sweeps and days, compared with a simple model with a clock. */

import { expect } from "@effect/vitest"
import { currentUnixMillis } from "@tenure/core/internal"
import {
  EndDate,
  type Event,
  type EventId,
  FeedStore,
  Millis,
  type UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import { change, longAgo, p1, u1, u2, u3 } from "../support/fixtures.ts"
import { announcing, dayMillis, drain, reminders } from "./announcing.ts"
import type { StoreTests } from "./declare.ts"

const modelUser = fc.constantFrom(u1, u2, u3)

/** A date in days since the beginning, at noon: between two dates, whole days pass. */
const date = fc.integer({ min: -5, max: 40 }).map((day) => day + 0.5)

const modelStep = fc.oneof(
  fc.record({ _tag: fc.constant("Grant" as const), user: modelUser, date }),
  fc.record({ _tag: fc.constant("Extend" as const), user: modelUser, date }),
  fc.record({
    _tag: fc.constant("ExtendAll" as const),
    mode: fc.constantFrom("set" as const, "neverShorten" as const),
    date,
  }),
  fc.record({ _tag: fc.constant("ExtendBy" as const), days: fc.integer({ min: 1, max: 15 }) }),
  fc.record({ _tag: fc.constant("Undo" as const), which: fc.nat() }),
  fc.record({ _tag: fc.constant("End" as const), user: modelUser }),
  fc.record({ _tag: fc.constant("Days" as const), days: fc.integer({ min: 1, max: 10 }) }),
  // Processes sweeping at the same time, and dying after some steps.
  fc.record({
    _tag: fc.constant("Die" as const),
    after: fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ _tag: fc.constant("Sweep" as const), limit: fc.integer({ min: 1, max: 5 }) }),
)

type Step = typeof modelStep extends fc.Arbitrary<infer A> ? A : never

/** A member, with the last announcement's day and reminder; 0 for the end itself. */
interface Member {
  /** The date set for this member alone, and how many bulk changes came before. */
  readonly own: number
  readonly after: number
  /** The current date, and the day on which it was set. */
  date: number
  setOn: number
  announced?: readonly [date: number, reminder: number]
  /**
   * Whether the store has looked at the member since it was made active, so that it looks again at the end. A store may
   * look at members before it must.
   */
  isWatched: "yes" | "no" | "maybe"
  /** Whether nobody can tell if the date is announced: it was over before the store looked at it. */
  isUncertain: boolean
}

/** A bulk extension, in days. */
interface Bulk {
  readonly apply: (date: number) => number
  readonly id: EventId
  isUndone: boolean
}

/** Returns the shortest reminder due by a day; 0 for the end itself, `undefined` for none. */
const comeOn = (end: number, day: number): number | undefined =>
  [0, ...reminders.toReversed()].find((reminder) => end - reminder <= day)

/** The members, by the rules in words. */
class Model {
  day = 0
  readonly members = new Map<UserId, Member>()

  readonly bulk: Array<Bulk> = []

  set(userId: UserId, to: number): void {
    const before = this.members.get(userId)
    // The same date again is no new one, unless a bulk extension came between.
    const isSame = before?.own === to && before.after === this.bulk.length
    this.members.set(userId, {
      ...before,
      own: to,
      after: this.bulk.length,
      date: to,
      setOn: isSame ? before.setOn : this.day,
      isWatched: "yes",
      isUncertain: false,
    })
  }

  /** Applies the bulk extensions to the dates of all members. */
  applyBulk(): void {
    for (const member of this.members.values()) {
      const before = member.date
      member.date = this.bulk
        .slice(member.after)
        .reduce((at, { apply, isUndone }) => (isUndone ? at : apply(at)), member.own)
      if (member.date === before) continue
      member.setOn = this.day
      if (member.announced?.[1] !== 0) continue
      // Who has ended and stays ended is silent.
      const isOver = member.date <= this.day
      if (isOver && member.isWatched === "no") member.announced = [member.date, 0]
      member.isUncertain = isOver && member.isWatched === "maybe"
    }
  }

  /** Takes note that the store has looked at all members that it must look at. */
  swept(isComplete: boolean): void {
    for (const member of this.members.values()) {
      const { date: at, isWatched } = member
      const isActive = at > this.day
      const mustLook = !isActive || at - reminders[0] <= this.day
      if (isComplete && mustLook) member.isWatched = isActive ? "yes" : "no"
      else if (isWatched === (isActive ? "no" : "yes")) member.isWatched = "maybe"
      if (isComplete) member.isUncertain = false
    }
  }

  /**
   * Returns the announcement due for a member: the shortest reminder, unless it or a shorter one was
   * announced, or its time had come when the date was set.
   */
  dueOf({ announced, date: at, setOn }: Member): number | undefined {
    const reminder = comeOn(at, this.day)
    if (reminder === undefined || at <= 0) return undefined
    if (reminder > 0 && at - reminder <= setOn) return undefined
    return announced?.[0] === at && announced[1] <= reminder ? undefined : reminder
  }

  due(): ReadonlyArray<UserId> {
    return [...this.members].flatMap(([id, member]) =>
      member.isUncertain || this.dueOf(member) === undefined ? [] : [id],
    )
  }

  /** Records an announcement. It must be due. */
  announced(userId: UserId, endDate: number, reminder: number): void {
    const member = this.members.get(userId)
    expect([userId, member?.date, member && this.dueOf(member)]).toEqual([
      userId,
      endDate,
      reminder,
    ])
    if (member !== undefined) member.announced = [endDate, reminder]
  }
}

interface Said {
  readonly user_id: UserId
  readonly end_date: string
  readonly reminder?: number
}

const saidBy = ({ body }: Event): Said => {
  const { data }: { readonly data: Said } = JSON.parse(body)
  return data
}

/** Declares the tests. */
export const announcingModelTests = ({ advance, property }: StoreTests): void =>
  property(
    "announces each end date once, and only those that hold, for any sequence of changes, days, sweeps and deaths of processes",
    fc.array(modelStep, { maxLength: 30 }),
    (steps) =>
      announcing(function* ({ expiry, judge, store }) {
        const model = new Model()
        const feed = yield* FeedStore
        const origin = yield* currentUnixMillis
        let { cursor } = yield* feed.read([p1], "now", { events: 1, bytes: 1000 })

        /** The days by which stored data was moved into the past, instead of moving the clock. */
        const moved = Effect.map(currentUnixMillis, (now) =>
          now - origin < (model.day * dayMillis) / 2 ? model.day : 0,
        )
        const toStored = (day: number) =>
          Effect.map(moved, (days) => EndDate(origin + (day - days) * dayMillis))
        /** Events say the dates as they were when they were published. */
        const fromStored = (endDate: string) =>
          Effect.map(moved, (days) => (Date.parse(endDate) - origin) / dayMillis + days)

        const changeNow = Effect.map(currentUnixMillis, (at) => ({ ...change(p1), at }))

        const noteAnnouncements = Effect.gen(function* () {
          const page = yield* feed.read([p1], cursor, { events: 1000, bytes: 1_000_000 })
          cursor = page.cursor
          for (const event of page.events) {
            if (!event.type.startsWith("membership.exp")) continue
            const { end_date, reminder = 0, user_id } = saidBy(event)
            model.announced(user_id, yield* fromStored(end_date), reminder / 86_400)
          }
        })

        /** Starts to sweep, and dies after some steps. */
        const sweepUntil = Effect.fnUntraced(function* (after: number) {
          const fiber = yield* Effect.forkChild(drain(expiry, judge, 1))
          for (let left = after; left > 0; left--) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
        })

        const perform = Effect.fnUntraced(function* (one: Step) {
          const endDate = "date" in one ? yield* toStored(one.date) : undefined
          switch (one._tag) {
            case "Grant":
              if (endDate !== undefined) {
                yield* store.grant({ ...change(p1), userId: one.user, endDate })
              }
              return model.set(one.user, one.date)
            case "Extend":
              if (endDate !== undefined && model.members.has(one.user)) {
                yield* store.extend({ ...change(p1), userId: one.user, endDate })
                model.set(one.user, one.date)
              }
              return undefined
            case "ExtendAll":
              if (endDate !== undefined) {
                const bulk = { endDate, mode: one.mode }
                const extension = { ...(yield* changeNow), bulk }
                yield* store.extendAll(extension)
                const isSet = one.mode === "set"
                model.bulk.push({
                  id: extension.event.id,
                  apply: (at) => (isSet || at < one.date ? one.date : at),
                  isUndone: false,
                })
              }
              return model.applyBulk()
            case "ExtendBy": {
              const by = Millis(one.days * dayMillis)
              const bulk = { mode: "extendBy", by } as const
              const extension = { ...(yield* changeNow), bulk }
              yield* store.extendAll(extension)
              model.bulk.push({
                id: extension.event.id,
                apply: (at) => at + one.days,
                isUndone: false,
              })
              return model.applyBulk()
            }
            case "Undo": {
              const open = model.bulk.filter(({ isUndone }) => !isUndone)
              const undone = open[one.which % Math.max(1, open.length)]
              if (undone === undefined) return undefined
              const target = { bulkExtensionId: undone.id, madeAfter: longAgo }
              yield* store.undoBulkExtension({ ...(yield* changeNow), ...target })
              undone.isUndone = true
              return model.applyBulk()
            }
            case "End":
              if (model.members.delete(one.user)) {
                yield* store.end({ ...change(p1), userId: one.user })
              }
              return undefined
            case "Days":
              yield* advance(one.days * dayMillis)
              model.day += one.days
              return undefined
            case "Die":
              yield* Effect.forEach(one.after, sweepUntil, { concurrency: "unbounded" })
              yield* noteAnnouncements
              return model.swept(false)
            case "Sweep":
              yield* drain(expiry, judge, one.limit)
              yield* noteAnnouncements
              expect(model.due()).toEqual([])
              return model.swept(true)
          }
        })

        yield* Effect.forEach(steps, perform, { discard: true })
        yield* perform({ _tag: "Sweep", limit: 5 })
      }),
  )
