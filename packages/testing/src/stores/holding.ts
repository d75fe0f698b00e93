/** Certifies a hold on announcements after a change of many. */

import { expect } from "@effect/vitest"
import { makeDecideAnnouncement, maxBulkExtensions } from "@tenure/core/internal"
import {
  FeedStore,
  MembershipStore,
  Millis,
  type ProjectSettings,
  UserId,
  defaultProjectSettings,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, p1, u1, u2 } from "../support/fixtures.ts"
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
import type { StoreTests } from "./declare.ts"
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

export const holdingTests = (tests: StoreTests): void => {
  const { advance, describe, settlesAtOnce } = tests
  const test = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)

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
