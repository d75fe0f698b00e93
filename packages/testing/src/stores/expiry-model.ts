/** Random sequences: changes, sweeps and days, compared with a simple model with a clock. */

import { expect } from "@effect/vitest"
import { type Event, FeedStore, type UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import { p1 } from "../support/fixtures.ts"
import { announcing, drain, reminders } from "./announcing.ts"
import { countDays, dayChanges } from "./days.ts"
import type { StoreTests } from "./declare.ts"
import { together } from "./steps.ts"

const changes = dayChanges(40)

const modelStep = fc.oneof(
  { weight: 6, arbitrary: changes.any },
  { weight: 3, arbitrary: changes.days },
  // Processes sweeping at the same time, and dying after some steps.
  fc.record({
    _tag: fc.constant("Die" as const),
    after: fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 3 }),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constantFrom("Sweep" as const, "SweepOnce" as const),
      limit: fc.integer({ min: 1, max: 5 }),
    }),
  },
)

type Step = typeof modelStep extends fc.Arbitrary<infer A> ? A : never

/** A member, with the last announcement's day and reminder; 0 for the end itself. */
interface Member {
  /** The current date, and the day of its change. */
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
  /** Whether the end of this date is not announced: an earlier one was, and bulk changes have moved it. */
  isSilent: boolean
}

/** Returns the shortest reminder due by a day; 0 for the end itself, `undefined` for none. */
const comeOn = (end: number, day: number): number | undefined =>
  [0, ...reminders.toReversed()].find((reminder) => end - reminder <= day)

/** The members, by the rules in words. */
class Model {
  readonly members = new Map<UserId, Member>()
  readonly today: () => number
  /**
   * The bulk changes that the store is still to look at all members for: when it must, and the day of the first of them, which
   * is one between two if it may have looked.
   */
  #unseen = { check: Infinity, earliest: 0, latest: 0 }

  constructor(today: () => number) {
    this.today = today
  }

  /** Takes note of a date that was set for a member alone. */
  set(userId: UserId, date: number, isSame: boolean): void {
    const before = this.members.get(userId)
    this.members.set(userId, {
      ...before,
      date,
      setOn: isSame && before !== undefined ? before.setOn : this.today(),
      isWatched: "yes",
      isUncertain: false,
      isSilent: false,
    })
  }

  /** Takes note of the dates after a bulk extension, or after one was undone. */
  applyBulk(dates: ReadonlyMap<UserId, number>, check: number): void {
    const today = this.today()
    const { check: before, earliest: first, latest: last } = this.#unseen
    // As long as it must not look, all whom bulk changes have made active are so.
    const isDue = before <= today
    const earliest = isDue ? first : today
    const latest = isDue ? Math.min(last, today) : today
    this.#unseen = { check: Math.min(before, check), earliest, latest }
    for (const [userId, member] of this.members) {
      const date = dates.get(userId) ?? NaN
      if (date !== member.date) member.setOn = this.today()
      member.date = date
      if (member.announced?.[1] !== 0) continue
      // Whose end was told once, and who is over at a bulk change, is silent: also if that leaves the date as it is. Not if
      // an earlier one has made the member active, of which the store has seen nothing yet.
      const isUnwatched = member.isWatched === "no"
      member.isSilent = isUnwatched && date <= earliest
      member.isUncertain =
        date <= latest && (member.isWatched === "maybe" || (isUnwatched && date > earliest))
    }
  }

  /** Takes note: the store has looked at all members due. */
  swept(isComplete: boolean): void {
    if (this.#unseen.check <= this.today()) {
      this.#unseen.latest = Infinity
      if (isComplete) this.#unseen.check = Infinity
    }
    for (const member of this.members.values()) {
      const { date, isWatched } = member
      const isActive = date > this.today()
      const mustLook = !isActive || date - reminders[0] <= this.today()
      if (isComplete && mustLook) member.isWatched = isActive ? "yes" : "no"
      else if (isWatched === (isActive ? "no" : "yes")) member.isWatched = "maybe"
      // If it was not announced now, it never is.
      if (isComplete && member.isUncertain) member.isSilent = member.announced?.[0] !== date
      if (isComplete) member.isUncertain = false
    }
  }

  /**
   * Returns the announcement due for a member: the shortest reminder, unless it or a shorter one was
   * announced, or its time had come when the date was set.
   */
  dueOf({ announced, date, isSilent, setOn }: Member): number | undefined {
    if (isSilent) return undefined
    const reminder = comeOn(date, this.today())
    if (reminder === undefined || date <= 0) return undefined
    if (reminder > 0 && date - reminder <= setOn) return undefined
    return announced?.[0] === date && announced[1] <= reminder ? undefined : reminder
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
export const announcingModelTests = (on: StoreTests): void =>
  on.property(
    "announces each end date once, and only those that hold, for any sequence of changes, days, sweeps and deaths of processes",
    fc.array(modelStep, { maxLength: 30, size: "+1" }),
    (steps) =>
      announcing(function* ({ expiry, judge }) {
        const { dates, fromStored, make, own, pass, today } = yield* countDays(on)
        const model = new Model(today)
        const feed = yield* FeedStore
        let { cursor } = yield* feed.read([p1], "now", { events: 1, bytes: 1000 })

        const noteAnnouncements = Effect.gen(function* () {
          const page = yield* feed.read([p1], cursor, { events: 1000, bytes: 1_000_000 })
          cursor = page.cursor
          for (const event of page.events) {
            if (!event.type.startsWith("membership.exp")) continue
            const { end_date, reminder = 0, user_id } = saidBy(event)
            // Events say the dates as they were when they were published.
            const endDate = yield* fromStored(Date.parse(end_date))
            model.announced(user_id, endDate, reminder / 86_400)
          }
        })

        /** Starts to sweep, and dies after some steps. */
        const sweepUntil = Effect.fnUntraced(function* (after: number) {
          const fiber = yield* Effect.forkChild(drain(expiry, judge, 1))
          for (let left = after; left > 0; left--) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
        })

        const perform = Effect.fnUntraced(function* (one: Step) {
          switch (one._tag) {
            case "Days":
              return yield* pass(one.days)
            case "Die":
              yield* together(one.after.map(sweepUntil))
              yield* noteAnnouncements
              return model.swept(false)
            case "SweepOnce":
              yield* expiry.sweep(one.limit, judge)
              yield* noteAnnouncements
              return model.swept(false)
            case "Sweep":
              yield* drain(expiry, judge, one.limit)
              yield* noteAnnouncements
              expect(model.due()).toEqual([])
              return model.swept(true)
            case "End":
              yield* make(one)
              return void model.members.delete(one.user)
            case "Grant":
            case "Extend":
            case "Import": {
              const users = "users" in one ? one.users : [one.user]
              const before = users.map(own)
              yield* make(one)
              for (const [index, userId] of users.entries()) {
                const set = own(userId)
                if (set === undefined) continue
                // The same date again is no new one, unless a bulk extension came between.
                const { after, date } = before[index] ?? {}
                model.set(userId, set.date, set.date === date && set.after === after)
              }
              return undefined
            }
            default: {
              if ((yield* make(one)) === false) return undefined
              const check = "mode" in one ? one.date - reminders[0] : -Infinity
              return model.applyBulk(dates(), check)
            }
          }
        })

        yield* Effect.forEach(steps, perform, { discard: true })
        yield* perform({ _tag: "Sweep", limit: 5 })
      }),
  )
