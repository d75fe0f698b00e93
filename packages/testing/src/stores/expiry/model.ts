/** Random sequences of changes, sweeps and days, compared with a simple model that has a clock. */

import { expect } from "@effect/vitest"
import { EndDate } from "@tenure/core/EndDate"
import type { Event } from "@tenure/core/Event"
import { FeedStore } from "@tenure/core/FeedStore"
import type { UserId } from "@tenure/core/Membership"
import * as Moment from "@tenure/core/Moment"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import { change, p1, u1, u2, u3 } from "../../support/fixtures.ts"
import type { StoreTests } from "../storeTests.ts"
import { announcing, dayMillis, drain, reminders } from "./steps.ts"

const user = fc.constantFrom(u1, u2, u3)

/** A date as the number of days since the beginning, at noon: whole days are over between two dates. */
const date = fc.integer({ min: -5, max: 40 }).map((day) => day + 0.5)

const step = fc.oneof(
  fc.record({ _tag: fc.constant("Grant" as const), user, date }),
  fc.record({ _tag: fc.constant("Extend" as const), user, date }),
  fc.record({
    _tag: fc.constant("ExtendAll" as const),
    mode: fc.constantFrom("set" as const, "neverShorten" as const),
    date,
  }),
  fc.record({ _tag: fc.constant("End" as const), user }),
  fc.record({ _tag: fc.constant("Days" as const), days: fc.integer({ min: 1, max: 10 }) }),
  // Processes that sweep at the same time, and die after some steps.
  fc.record({
    _tag: fc.constant("Die" as const),
    after: fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ _tag: fc.constant("Sweep" as const), limit: fc.integer({ min: 1, max: 5 }) }),
)

type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

/** A member, and the day and the reminder of the last announcement; 0 for the end itself. */
interface Member {
  date: number
  announced?: readonly [date: number, reminder: number]
}

/** Returns the shortest reminder that has come on a day; 0 for the end itself, `undefined` for none. */
const comeOn = (end: number, day: number): number | undefined =>
  [0, ...reminders.toReversed()].find((reminder) => end - reminder <= day)

/** The members, by the rules in words. */
class Model {
  day = 0
  readonly members = new Map<UserId, Member>()

  set(userId: UserId, to: number): void {
    this.members.set(userId, { ...this.members.get(userId), date: to })
  }

  /** What has to be announced of a member: the shortest reminder, unless it was or a shorter one was. */
  dueOf({ announced, date: at }: Member): number | undefined {
    const reminder = comeOn(at, this.day)
    if (reminder === undefined || at <= 0) return undefined
    return announced?.[0] === at && announced[1] <= reminder ? undefined : reminder
  }

  due(): ReadonlyArray<UserId> {
    return [...this.members].flatMap(([id, member]) =>
      this.dueOf(member) === undefined ? [] : [id],
    )
  }

  /** Takes note of an announcement, which must be due. */
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
    fc.array(step, { maxLength: 30 }),
    (steps) =>
      announcing(({ expiry, judge, store }) =>
        Effect.gen(function* () {
          const model = new Model()
          const feed = yield* FeedStore
          const origin = yield* Moment.unix
          let { cursor } = yield* feed.read([p1], "now", { events: 1, bytes: 1000 })

          /** The days by which what is stored was moved into the past, in place of the clock. */
          const moved = Effect.map(Moment.unix, (now) =>
            now - origin < (model.day * dayMillis) / 2 ? model.day : 0,
          )
          const toStored = (day: number) =>
            Effect.map(moved, (days) => EndDate(origin + (day - days) * dayMillis))
          /** Events say the dates as they were when they were published. */
          const fromStored = (endDate: string) =>
            Effect.map(moved, (days) => (Date.parse(endDate) - origin) / dayMillis + days)

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
                  yield* store.extendAll({ ...change(p1), endDate, mode: one.mode })
                }
                for (const [userId, member] of model.members) {
                  if (one.mode === "set" || member.date < one.date) model.set(userId, one.date)
                }
                return undefined
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
                return yield* noteAnnouncements
              case "Sweep":
                yield* drain(expiry, judge, one.limit)
                yield* noteAnnouncements
                expect(model.due()).toEqual([])
                return undefined
            }
          })

          yield* Effect.forEach(steps, perform, { discard: true })
          yield* perform({ _tag: "Sweep", limit: 5 })
        }),
      ),
  )
