/** Certifies a hold on announcements after a change of many. */

import { expect } from "@effect/vitest"
import {
  type EndedAgo,
  foresee,
  makeDecideAnnouncement,
  maxBulkExtensions,
  movedEnds,
} from "@tenure/core/internal"
import {
  type BulkMode,
  FeedStore,
  MembershipStore,
  Millis,
  type ProjectSettings,
  type StoredPreview,
  UserId,
  defaultProjectSettings,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, longAgo, p1, u1, u2 } from "../support/fixtures.ts"
import {
  type Announcing,
  announcedBy,
  announcedOn,
  drain,
  eventually,
  inDays,
  leadsOf,
  reminders,
} from "./announcing.ts"
import { HostTransaction, type StoreTests } from "./declare.ts"
import { changeSettings } from "./memberships/every-change.ts"
import { claims } from "./outbox/steps.ts"
import { addWebhook, dayMillis } from "./steps.ts"

const large = { events: 100, bytes: 1_000_000 }

const decide = makeDecideAnnouncement({
  leads: leadsOf(reminders),
  since: -Infinity,
  hold: Millis(dayMillis),
})

/** Sweeps as a process that holds for a day. */
const sweepHeld = ({ expiry }: Pick<Announcing, "expiry">) =>
  Effect.map(drain(expiry, decide), (events) =>
    events.map(announcedBy).toSorted(([, one], [, other]) => (one < other ? -1 : 1)),
  )

const expired = (...users: ReadonlyArray<string>) =>
  users.map((user) => ["membership.expired", user])

const expiry = {
  reminders: reminders.map((days) => Millis(days * dayMillis)),
  late: "skip",
  holdAfterBulk: Millis(dayMillis),
  announcementsPerSecond: 1,
} as const

/** When memberships end, in days from now. */
const ends = [
  -9, -1.25, 0.625, 0.875, 1.25, 2.375, 5.375, 7.25, 7.875, 8.375, 9.25, 13.875, 14.25, 20, 40,
]

const changes: ReadonlyArray<readonly [name: string, days: number, mode: BulkMode | "extendBy"]> = [
  ["a date for all", 3.25, "set"],
  ["a date for all that is over", -0.125, "set"],
  ["a date for those who end earlier", 8.375, "neverShorten"],
  ["a later end for all", 1.5, "extendBy"],
]

/** Certifies the announcements in previews. */
const foreseeingTests = (tests: StoreTests): void => {
  const { advance, describe, settlesAtOnce, transactional } = tests
  const test = announcedOn(tests)

  /** Counts announcements in a week. */
  const countAnnounced = Effect.fnUntraced(function* (
    world: Announcing,
    isCounted: (user: UserId, type: string) => boolean,
  ) {
    const counts = { expiring: 0, overdue: 0, expired: 0, next24Hours: 0 }
    for (let passed = 0; passed <= 7; passed += 0.5) {
      for (const [type, user] of yield* sweepHeld(world)) {
        if (!isCounted(UserId(user), type)) continue
        if (type === "membership.expiring") counts.expiring++
        if (type === "membership.overdue") counts.overdue++
        if (type === "membership.expired") counts.expired++
        if (passed <= 1) counts.next24Hours++
      }
      yield* advance(dayMillis / 2)
    }
    return counts
  })

  const grantEach = Effect.fnUntraced(function* ({ store }: Announcing) {
    for (const end of ends) {
      const userId = UserId(`in_${end}`)
      yield* store.grant({ ...change(p1), userId, endDate: yield* inDays(end) })
    }
  })

  /** Compares a preview's counts with the announcements for changed members in the next week. */
  const expectForeseen = Effect.fnUntraced(function* (
    world: Announcing,
    grace: Millis,
    preview: (
      offsets: ReadonlyArray<number>,
    ) => Effect.Effect<Pick<StoredPreview, "moved">, unknown>,
    changing: Effect.Effect<unknown, unknown>,
  ) {
    const { store } = world
    const datesNow = Effect.map(store.list(p1, { after: undefined, limit: 100 }), (all) =>
      all.map(({ endDate, userId }) => [userId, endDate] as const),
    )
    const { count, offsets } = foresee(expiry, {
      grace,
      isSetWithOthers: true,
      sinceFromNow: -1000 * dayMillis,
    })
    const { moved } = yield* preview(offsets)
    const before = new Map(yield* datesNow)
    yield* changing
    const after = yield* datesNow
    const changed = new Set(
      after.flatMap(([user, date]) => (before.get(user) === date ? [] : [user])),
    )
    expect(count(moved ?? [])).toEqual(yield* countAnnounced(world, (user) => changed.has(user)))
  })

  describe("the beginning of the watch", () => {
    tests.test("is unknown before, and then what the watch says", function* () {
      const store = yield* MembershipStore
      if (store.expiry === undefined) return yield* Effect.die("the store announces no ends")
      expect(yield* store.expiry.watchedSince).toBeUndefined()
      const since = yield* store.expiry.watch(leadsOf(reminders))
      expect(yield* store.expiry.watchedSince).toBe(since)
    })

    transactional("can be read in a transaction of the host", function* () {
      const store = yield* MembershipStore
      const since = yield* store.expiry?.watch(leadsOf(reminders)) ?? Effect.undefined
      const { run } = yield* HostTransaction
      const joined = MembershipStore.use(({ expiry: one }) => one?.watchedSince ?? Effect.undefined)
      expect(yield* run(joined)).toBe(since)
    })
  })

  describe("the announcements that a preview counts", () => {
    for (const [days, newDays] of [
      [0, 2],
      [2, 0],
      [3, 1],
      [1, 3],
      [1, 30],
    ] as const)
      test(`are ends that come by a grace for ${newDays} days in place of ${days}`, function* (world) {
        const { store } = world
        const settings = (inGrace: number) => ({
          ...defaultProjectSettings,
          grace: Millis(inGrace * dayMillis),
        })
        const [before, after] = [settings(days), settings(newDays)]
        yield* changeSettings(store, change(p1), before)
        yield* grantEach(world)
        yield* advance(1.5 * dayMillis)
        yield* sweepHeld(world)
        const count = ({ from, to }: EndedAgo) =>
          from < to ? store.countEndedBetween(p1, { from, to }) : Effect.succeed(0)
        const foreseen = Effect.fnUntraced(function* (within: number) {
          const { expired: expiries, overdue } = movedEnds(
            before,
            after,
            Millis(within * dayMillis),
          )
          return { overdue: yield* count(overdue), expired: yield* count(expiries) }
        })
        const [soon, all] = [yield* foreseen(1), yield* foreseen(7)]
        yield* changeSettings(store, change(p1), after, before)
        const told = yield* countAnnounced(world, (_, type) => type !== "membership.expiring")
        expect({ expiring: 0, ...all, next24Hours: soon.overdue + soon.expired }).toEqual(told)
      })

    for (const graceDays of [0, 2])
      for (const [name, days, mode] of changes)
        test(`are those that come by ${name}, with grace for ${graceDays} days`, function* (world) {
          const { store } = world
          const grace = Millis(graceDays * dayMillis)
          yield* changeSettings(store, change(p1), { grace })
          yield* advance(2 * dayMillis)
          yield* grantEach(world)
          yield* sweepHeld(world)
          const bulk =
            mode === "extendBy"
              ? { mode, by: Millis(days * dayMillis) }
              : { mode, endDate: yield* inDays(days) }
          const extension = { ...change(p1), at: yield* inDays(0), bulk }
          yield* expectForeseen(
            world,
            grace,
            (offsets) => store.previewBulkExtension(p1, bulk, offsets),
            store.extendAll(extension),
          )
          if (settlesAtOnce) return
          // Undone soon. With a later date, a store need not have looked at anybody meanwhile.
          const late = { mode: "set", endDate: yield* inDays(6) } as const
          const undone = { ...change(p1), at: yield* inDays(0), bulk: late }
          yield* store.extendAll(undone)
          yield* sweepHeld(world)
          for (const bulkExtensionId of [undone.event.id, extension.event.id]) {
            const target = { bulkExtensionId, madeAfter: longAgo }
            yield* expectForeseen(
              world,
              grace,
              (offsets) => store.previewUndo(p1, target, offsets),
              store.undoBulkExtension({ ...change(p1), at: yield* inDays(0), ...target }),
            )
          }
        })
  })
}

export const holdingTests = (tests: StoreTests): void => {
  const { advance, describe, settlesAtOnce } = tests
  const test = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)

  foreseeingTests(tests)

  describe("a hold", () => {
    test("keeps back what a bulk extension sets off, for as long as it lasts", function* (world) {
      const { extendAll, grant } = world
      yield* grant(u1, 30)
      yield* grant(u2, 30)
      yield* extendAll("set", -0.1)
      expect(yield* sweepHeld(world)).toEqual([])
      yield* days(0.9)
      expect(yield* sweepHeld(world)).toEqual([])
      yield* days(0.2)
      expect(yield* sweepHeld(world)).toEqual(expired(u1, u2))
    })

    if (!settlesAtOnce)
      test("has an undo take back what was not said, and keeps back what that sets off", function* (world) {
        const { extendAll, grant, undo } = world
        yield* grant(u1, 30)
        yield* grant(u2, 0.5)
        const mistake = yield* extendAll("set", -0.1)
        expect(yield* sweepHeld(world)).toEqual([])
        yield* days(0.7)
        yield* undo(mistake)
        expect(yield* sweepHeld(world)).toEqual([])
        yield* days(0.9)
        expect(yield* sweepHeld(world)).toEqual([])
        yield* days(0.2)
        expect(yield* sweepHeld(world)).toEqual(expired(u2))
      })

    if (!settlesAtOnce)
      test("has nothing go out but two events if a wrong date for many is undone in time", function* (world) {
        const { extendAll, store, undo } = world
        const endDate = yield* inDays(30)
        const memberships = Array.from({ length: 600 }, (_, index) => ({
          userId: UserId(`many-${index}`),
          endDate,
        }))
        yield* store.import({ ...change(p1), at: yield* inDays(0), memberships })
        yield* days(1.1)
        for (let webhooks = 0; webhooks < 4; webhooks++) yield* addWebhook()
        const mistake = yield* extendAll("set", -0.1)
        yield* days(0.1)
        expect(yield* sweepHeld(world)).toEqual([])
        yield* undo(mistake)
        for (const passed of [0.1, 1, 1]) {
          yield* days(passed)
          expect(yield* sweepHeld(world)).toEqual([])
        }
        const { events } = yield* (yield* FeedStore).read([p1], "start", large)
        // That of the import came before.
        expect(events).toHaveLength(1 + 2)
        expect(yield* claims()).toHaveLength(2 * 4)
      })

    test("keeps back what an import sets off, but not for members whose date it leaves", function* (world) {
      const { grant, store } = world
      yield* grant(u1, 0.5)
      yield* grant(u2, 30)
      const { endDate } = yield* store.find(p1, u1)
      const memberships = [
        { userId: u1, endDate },
        { userId: u2, endDate },
      ]
      yield* store.import({ ...change(p1), at: yield* inDays(0), memberships })
      yield* days(0.6)
      expect(yield* sweepHeld(world)).toEqual(expired(u1))
      yield* days(0.5)
      expect(yield* sweepHeld(world)).toEqual(expired(u2))
    })

    test("keeps nothing back that a later change of one membership sets off", function* (world) {
      const { extend, extendAll, grant, store } = world
      yield* grant(u1, 30)
      yield* grant(u2, 30)
      yield* extendAll("set", 20)
      yield* extend(u1, -0.2)
      expect(yield* sweepHeld(world)).toEqual(expired(u1))
      const memberships = [{ userId: u2, endDate: yield* inDays(10) }]
      yield* store.import({ ...change(p1), at: yield* inDays(0), memberships })
      yield* extend(u2, -0.2)
      expect(yield* sweepHeld(world)).toEqual(expired(u2))
    })

    test("lasts when the bulk extension can no longer be undone", function* (world) {
      const { extend, extendAll, grant } = world
      yield* grant(u1, 30)
      yield* grant(u2, 30)
      yield* extendAll("set", -0.1)
      for (let more = 0; more <= 1.5 * maxBulkExtensions; more++) {
        yield* extend(u2, 30)
        yield* extendAll("neverShorten", -0.2)
      }
      expect(yield* sweepHeld(world)).toEqual([])
      yield* days(1.1)
      expect(yield* sweepHeld(world)).toEqual(expired(u1))
    })

    test("keeps back the ends that a new grace moves, and no reminders", function* (world) {
      const { grant } = world
      const store = yield* MembershipStore
      const week = { ...defaultProjectSettings, grace: Millis(7 * dayMillis) }
      const set = (settings: Partial<ProjectSettings>, before: ProjectSettings) =>
        changeSettings(store, change(p1), settings, before)
      yield* set(week, defaultProjectSettings)
      yield* days(1.1)
      yield* grant(u1, 0.1)
      yield* grant(u2, 7.5)
      yield* days(0.4)
      expect(yield* sweepHeld(world)).toEqual([["membership.overdue", u1]])
      yield* set({ grace: Millis(0) }, week)
      expect(yield* sweepHeld(world)).toEqual([])
      yield* days(0.3)
      expect(yield* eventually(sweepHeld(world))).toEqual([["membership.expiring", u2, 7]])
      expect(yield* sweepHeld(world)).toEqual([])
      yield* days(0.8)
      expect(yield* eventually(sweepHeld(world))).toEqual(expired(u1))
    })
  })
}
