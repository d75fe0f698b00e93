/** Certifies announcements in a `MembershipStore`: single promises, and random sequences compared with a model. */

import { expect } from "@effect/vitest"
import { currentUnixMillis, makeDecideAnnouncement } from "@tenure/core/internal"
import { type Event, FeedStore, MembershipStore, Millis, Outbox, UserId } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import fc from "fast-check"
import { change, context, p1, p2, sequenceOf, u1, u2, u3 } from "../support/fixtures.ts"
import {
  type Announced,
  announcedOn,
  announcing,
  drain,
  eventually,
  inDays,
  leadsOf,
  reminders,
} from "./announcing.ts"
import { countDays, dayChanges } from "./days.ts"
import type { StoreTests } from "./declare.ts"
import { holdingTests } from "./holding.ts"
import { addWebhook, dayMillis, firstOf, idsOf, together } from "./steps.ts"

const users = Array.from({ length: 23 }, (_, index) => UserId(String(5000 + index)))

const large = { events: 1000, bytes: 1_000_000 }

const announcingTests = (tests: StoreTests): void => {
  const { advance, describe } = tests
  const test = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)

  describe("announcements", () => {
    test("come at each reminder and at the end, once", function* ({ grant, sweep }) {
      yield* grant(u1, 8)
      const found: Array<readonly [day: number, ...Announced]> = []
      for (let day = 0; day <= 100; day += day < 10 ? 1 : 45) {
        for (const one of yield* sweep) found.push([day, ...one])
        expect(yield* sweep).toEqual([])
        yield* days(day < 10 ? 1 : 45)
      }
      expect(found).toEqual([
        [1, "membership.expiring", u1, 7],
        [7, "membership.expiring", u1, 1],
        [8, "membership.expired", u1],
      ])
    })

    test("come at the next checks that a store names, and none before", function* (world) {
      const {
        expiry: { nextCheckAt },
        extendAll,
        grant,
        sweep,
      } = world
      if (nextCheckAt === undefined) return
      const start = yield* currentUnixMillis
      const found: Array<readonly [day: number, ...announced: Announced]> = []
      yield* grant(u1, 8)
      yield* grant(u2, 30)
      yield* extendAll("neverShorten", 10)
      for (let jump = 0; jump < 20 && nextCheckAt() < Infinity; jump++) {
        yield* advance(Math.max(0, nextCheckAt() - (yield* currentUnixMillis)))
        const day = ((yield* currentUnixMillis) - start) / dayMillis
        for (const one of yield* sweep) found.push([day, ...one])
      }
      expect(found).toEqual([
        [3, "membership.expiring", u1, 7],
        [9, "membership.expiring", u1, 1],
        [10, "membership.expired", u1],
        [23, "membership.expiring", u2, 7],
        [29, "membership.expiring", u2, 1],
        [30, "membership.expired", u2],
      ])
    })

    test("come in the time that a sweep names, if it names one", function* (world) {
      const { expiry, grant, judge, sweep } = world
      yield* grant(u1, 8)
      yield* sweep
      const { nextDueMillis } = yield* expiry.sweep(100, judge)
      if (nextDueMillis === undefined) return
      yield* advance(nextDueMillis)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      const named = Effect.map(expiry.sweep(100, judge), ({ nextDueMillis: next }) =>
        next === undefined ? [] : [next],
      )
      expect(firstOf(yield* eventually(named))).toBeGreaterThan(5 * dayMillis)
    })

    tests.test(
      "come for what ends after the clock is right, if it was ahead when it was first watched",
      function* () {
        yield* days(1)
        yield* announcing(function* ({ grant, sweep }) {
          yield* days(-1)
          expect(yield* sweep).toEqual([])
          yield* grant(u1, 0.5)
          yield* sweep
          yield* days(0.75)
          expect(yield* sweep).toEqual([["membership.expired", u1]])
        })
      },
    )

    tests.test("come also for members that were looked at while the clock was ahead", function* () {
      yield* days(1)
      yield* announcing(
        function* ({ expiry, sweep }) {
          expect(yield* sweep).toEqual([])
          yield* days(-1)
          yield* expiry.watch(leadsOf(reminders))
          yield* sweep
          yield* days(0.75)
          expect(yield* eventually(sweep)).toEqual([["membership.expired", u1]])
        },
        ({ grant }) => grant(u1, -0.5),
      )
    })

    test("have an event for the feed and every webhook, and an audit row", function* (world) {
      const { drain: drained, grant, store } = world
      yield* grant(u1, 1.5)
      yield* days(1)
      const { endDate } = yield* store.find(p1, u1)
      yield* addWebhook()
      const events = yield* drained()
      expect(events).toHaveLength(1)
      const event = firstOf(events)
      const { data, timestamp, type } = JSON.parse(event.body)
      expect({ data, type, at: Date.parse(timestamp) }).toEqual({
        type: "membership.expiring",
        at: event.at,
        data: {
          project_id: p1,
          user_id: u1,
          end_date: new Date(endDate).toISOString(),
          reminder: 86_400,
          sequence: expect.any(Number),
        },
      })
      const read = yield* (yield* FeedStore).read([p1], "start", large)
      expect(read.events.at(-1)).toMatchObject({ ...event })
      const { deliveries } = yield* (yield* Outbox).find(p1, event.id)
      expect(deliveries).toMatchObject([{ state: "waiting" }])
      expect(yield* store.history(p1, { userId: u1, limit: 1 })).toMatchObject([
        {
          action: "expiring",
          userId: u1,
          from: endDate,
          to: endDate,
          origin: { keyId: undefined, requestId: undefined },
          reason: undefined,
          at: event.at,
        },
      ])
    })

    test("of a sweep are in the order of their ids, in the feed and in the audit trail", function* (world) {
      const { drain: drained, grant, store } = world
      for (const user of users) yield* grant(user, 10)
      yield* days(9.5)
      const ids = idsOf(yield* drained()).toSorted()
      expect(ids).toHaveLength(users.length)
      const { events } = yield* (yield* FeedStore).read([p1], "start", large)
      const last = events.slice(-users.length)
      expect(idsOf(last)).toEqual(ids)
      const rows = yield* store.history(p1, { userId: undefined, limit: users.length })
      const announcedTo = last.map(({ body }) => JSON.parse(body).data.user_id)
      expect(rows.map(({ userId }) => userId).toReversed()).toEqual(announcedTo)
    })

    test(
      "come for members who were there before, but not for ends before",
      function* ({ sweep }) {
        yield* days(2.5)
        expect(yield* eventually(sweep)).toEqual([["membership.expiring", u2, 1]])
        yield* days(1.5)
        expect(yield* sweep).toEqual([["membership.expired", u2]])
      },
      ({ grant }) => Effect.all([grant(u1, -1), grant(u2, 3), grant(u3, 30)], { discard: true }),
    )

    for (const mode of ["set", "neverShorten"] as const) {
      test(`are no reminders whose time had come when a bulk extension was made or undone: ${mode}`, function* (world) {
        const { extendAll, grant, store, sweep, undo } = world
        yield* grant(u1, 1.5)
        yield* grant(u2, 8)
        const near = yield* extendAll(mode, 6)
        expect(yield* sweep).toEqual([])
        const by = Millis(90 * dayMillis)
        const far = { ...change(p1), bulk: { mode: "extendBy", by } as const }
        yield* store.extendAll(far)
        yield* days(3)
        expect(yield* sweep).toEqual([])
        yield* undo(far)
        yield* undo(near)
        expect(yield* sweep).toEqual([["membership.expired", u1]])
        yield* days(4.5)
        expect(yield* sweep).toEqual([["membership.expiring", u2, 1]])
      })
    }

    test("are reminders that are late for another reason, whatever was changed but the date", function* (world) {
      const { extend, extendAll, grant, store, sweep, undo } = world
      yield* grant(u1, 8)
      yield* grant(u2, 20)
      yield* extendAll("neverShorten", 8)
      yield* extend(u2, 8)
      yield* days(2)
      // The same date again, and a bulk extension without an effect.
      const { endDate } = yield* store.find(p1, u2)
      const same = () => ({ ...change(p1), userId: u2, endDate })
      yield* store.grant(same())
      yield* store.extend({ ...same(), expectedEndDate: endDate })
      yield* store.extend({ ...same(), mode: "neverShorten" })
      yield* undo(yield* extendAll("neverShorten", 3))
      expect(yield* sweep).toEqual([
        ["membership.expiring", u1, 7],
        ["membership.expiring", u2, 7],
      ])
      // Nor does it come again for the same date.
      yield* store.grant(same())
      expect(yield* sweep).toEqual([])
    })

    test("come for bulk extensions, and when they are undone, to a date that is over only by the clock of the store", function* (world) {
      const { extendAll, grant, sweep, undo } = world
      yield* grant(u1, 1.9)
      const extension = yield* extendAll("set", 1)
      yield* days(2)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* undo(extension, yield* inDays(-0.2))
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* extendAll("set", -0.05, yield* inDays(-0.08))
      expect(yield* sweep).toEqual([["membership.expired", u1]])
    })

    test("come at a longer reminder as soon as somebody watches for it", function* (world) {
      const { expiry, grant, judge, sweep } = world
      yield* grant(u1, 20)
      expect(yield* sweep).toEqual([])
      yield* expiry.watch(leadsOf([30, ...reminders]))
      const seen: Array<number> = []
      const looking = drain(expiry, (candidate, now) => {
        seen.push(candidate.endDate - now)
        return judge(candidate, now)
      })
      // A store looks again at locked memberships, whether a pass or another test's transaction
      // locked them.
      expect(yield* eventually(Effect.as(looking, seen))).not.toHaveLength(0)
      yield* days(13)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
    })

    test("come at a reminder that is added between others", function* ({ expiry, grant, sweep }) {
      yield* grant(u1, 8)
      yield* grant(u2, 6.5)
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      const more = leadsOf([3, ...reminders])
      const judge = makeDecideAnnouncement({ leads: more, since: 0 })
      for (const [passed, user] of [
        [3, u2],
        [1, u1],
      ] as const) {
        yield* days(passed)
        if (user === u2) yield* expiry.watch(more)
        const swept = yield* eventually(drain(expiry, judge))
        const reminded = { user_id: user, reminder: 3 * 86_400 }
        expect(swept.map(({ body }) => JSON.parse(body).data)).toMatchObject([reminded])
      }
      expect(yield* sweep).toEqual([])
    })

    test("do not come for persons that were erased, nor for projects that were deleted", function* (world) {
      const { extendAll, grant, store, sweep } = world
      const erased = UserId("erased")
      yield* store.grant({ ...change(p2), userId: erased, endDate: yield* inDays(1) })
      yield* store.erase({ ...change(p2), userId: erased })
      yield* grant(u1, 1)
      yield* extendAll("set", 1)
      yield* store.deleteProject(p1, context)
      yield* store.createProject(p1, context)
      yield* days(2)
      expect(yield* sweep).toEqual([])
    })

    test("have a sequence among those of the changes", function* (world) {
      const { drain: drained, extend, extendAll, grant } = world
      yield* grant(u1, 100)
      yield* extendAll("set", 1.5)
      yield* days(1)
      const [reminder] = yield* drained()
      yield* extend(u1, 100)
      yield* extendAll("set", 0.5)
      const { events } = yield* (yield* FeedStore).read([p1], "start", large)
      expect(events[2]?.id).toBe(reminder?.id)
      const sequences = events.map(sequenceOf)
      expect(sequences).toHaveLength(5)
      expect(sequences).toEqual([...new Set(sequences)].toSorted((one, other) => one - other))
    })

    test("are of no more members than asked for, and tell whether there are more", function* (world) {
      const { drain: drained, expiry, grant, judge } = world
      for (const user of users) yield* grant(user, 1.5)
      yield* days(1)
      const first = yield* expiry.sweep(5, judge)
      expect([first.events.length, first.isMore]).toEqual([5, true])
      expect(yield* drained(5)).toHaveLength(users.length - 5)
    })

    test("are not held up by those of another project, however many that has", function* (world) {
      const { drain: drained, expiry, grant, judge, store } = world
      for (const user of users) yield* grant(user, 1.25)
      const endDate = yield* inDays(1.5)
      for (const userId of [u1, u2]) yield* store.grant({ ...change(p2), userId, endDate })
      yield* days(1)
      const sweeps = yield* Effect.replicateEffect(expiry.sweep(5, judge), 3)
      const events = sweeps.flatMap((swept): ReadonlyArray<Event> => swept.events)
      expect(events.filter(({ projectId }) => projectId === p2)).toHaveLength(2)
      expect(yield* drained(5)).toHaveLength(users.length + 2 - events.length)
    })

    test("come once if many sweep at the same time", function* ({ drain: drained, grant, sweep }) {
      for (const user of users) yield* grant(user, 1.5)
      yield* days(1)
      const events = yield* together(Array.from({ length: 5 }, () => drained(7)))
      yield* sweep
      const read = yield* (yield* FeedStore).read([p1], "start", large)
      const reminded = read.events.filter(({ type }) => type === "membership.expiring")
      expect(reminded).toHaveLength(users.length)
      expect(new Set(idsOf(reminded)).size).toBe(users.length)
      expect(events.flat().length).toBeLessThanOrEqual(users.length)
    })

    test("are never of a date that was replaced before", function* (on) {
      // Ends before the first sweep are not announced.
      yield* days(1)
      for (let round = 0; round < 5; round++) {
        for (const user of users) yield* on.grant(user, round / 8 - 0.75)
        const renewals = users.map((user) => on.extend(user, 50))
        yield* together<unknown, unknown, never>([on.drain(5), on.drain(5), ...renewals])
      }
      const rows = yield* on.store.history(p1, { userId: undefined, limit: 1000 })
      const dates = new Map<string | undefined, number | undefined>()
      for (const { action, from, to, userId } of rows.toReversed()) {
        if (action === "expired") expect([userId, from]).toEqual([userId, dates.get(userId)])
        dates.set(userId, to)
      }
    })
  })
}

export const expirySuite = (on: StoreTests): void => {
  if (!on.announcesEnds) {
    return on.test("announces no ends, as the harness says", function* () {
      expect((yield* MembershipStore).expiry).toBeUndefined()
    })
  }
  announcingTests(on)
  holdingTests(on)
  announcingModelTests(on)
}

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
  /** The current date, and the day on which it changed. */
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
   * The bulk changes that the store is still to look at all members for: when it must, and when the first was made,
   * which is one between two if it may have looked.
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

const announcingModelTests = (on: StoreTests): void =>
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
              const concerned = "users" in one ? one.users : [one.user]
              const before = concerned.map(own)
              yield* make(one)
              for (const [index, userId] of concerned.entries()) {
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
