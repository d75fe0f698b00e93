/** Certifies announcements in a `MembershipStore`: each once. */

import { expect } from "@effect/vitest"
import { currentUnixMillis, makeDecideAnnouncement } from "@tenure/core/internal"
import {
  type Event,
  FeedStore,
  MembershipStore,
  Millis,
  Outbox,
  UserId,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, longAgo, occasion, p1, p2, u1, u2, u3, makeWebhook } from "../support/fixtures.ts"
import {
  type Announced,
  type Announcing,
  announcedOn,
  announcing,
  dayMillis,
  drain,
  eventually,
  inDays,
  leadsOf,
  reminders,
} from "./announcing.ts"
import type { StoreTests } from "./declare.ts"
import { announcingModelTests } from "./expiry-model.ts"

const users = Array.from({ length: 23 }, (_, index) => UserId(String(5000 + index)))

/** Declares the tests. */
const announcingTests = (tests: StoreTests): void => {
  const { advance, describe, test } = tests
  const announced = announcedOn(tests)
  const days = (count: number) => advance(count * dayMillis)

  const extendAll = (
    { store }: Pick<Announcing, "store">,
    count: number,
    mode: "set" | "neverShorten",
  ) =>
    Effect.flatMap(inDays(count), (endDate) =>
      store.extendAll({ ...change(p1), bulk: { endDate, mode } }),
    )

  describe("announcements", () => {
    announced("come at each reminder and at the end, once", function* ({ grant, sweep }) {
      yield* grant(u1, 8)
      expect(yield* sweep).toEqual([])
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
      expect(yield* sweep).toEqual([])
      yield* days(5)
      expect(yield* sweep).toEqual([])
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 1]])
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
      yield* days(100)
      expect(yield* sweep).toEqual([])
    })

    announced(
      "come at the next checks that a store names, and none before",
      function* ({ expiry: { nextCheckAt }, grant, store, sweep }) {
        if (nextCheckAt === undefined) return
        const start = yield* currentUnixMillis
        const found: Array<readonly [day: number, ...announced: Announced]> = []
        yield* grant(u1, 8)
        yield* grant(u2, 30)
        yield* extendAll({ store }, 10, "neverShorten")
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
      },
    )

    announced(
      "come in the time that a sweep names, if it names one",
      function* ({ expiry, grant, judge, sweep }) {
        yield* grant(u1, 8)
        yield* sweep
        const { nextDueMillis } = yield* expiry.sweep(100, judge)
        if (nextDueMillis === undefined) return
        yield* advance(nextDueMillis)
        expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
        const swept = yield* expiry.sweep(100, judge)
        expect(swept.nextDueMillis).toBeGreaterThan(5 * dayMillis)
      },
    )

    test("come for what ends after the clock is right, if it was ahead when it was first watched", function* () {
      yield* days(1)
      yield* announcing(function* ({ grant, sweep }) {
        yield* days(-1)
        expect(yield* sweep).toEqual([])
        yield* grant(u1, 0.5)
        yield* sweep
        yield* days(0.75)
        expect(yield* sweep).toEqual([["membership.expired", u1]])
      })
    })

    test("come also for members that were looked at while the clock was ahead", function* () {
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

    announced(
      "have an event for the feed and every webhook, and an audit row",
      function* ({ expiry, grant, judge, store }) {
        const outbox = yield* Outbox
        yield* grant(u1, 1.5)
        yield* days(1)
        const { endDate } = yield* store.find(p1, u1)
        yield* (yield* WebhookStore).add(makeWebhook(p1), 50, occasion)
        const [event, ...others] = yield* drain(expiry, judge)
        expect(others).toEqual([])
        const { data, timestamp, type } = JSON.parse(event?.body ?? "")
        expect({ data, type }).toEqual({
          type: "membership.expiring",
          data: {
            project_id: p1,
            user_id: u1,
            end_date: new Date(endDate).toISOString(),
            reminder: 86_400,
            sequence: expect.any(Number),
          },
        })
        expect(Date.parse(timestamp)).toBe(event?.at)
        const feed = yield* FeedStore
        const read = yield* feed.read([p1], "start", { events: 10, bytes: 100_000 })
        expect(read.events.at(-1)).toMatchObject({ ...event })
        const found = event && (yield* outbox.find(p1, event.id))
        expect(found?.deliveries).toMatchObject([{ state: "waiting" }])
        const [row] = yield* store.history(p1, { userId: u1, limit: 1 })
        expect(row).toMatchObject({
          action: "expiring",
          userId: u1,
          from: endDate,
          to: endDate,
          origin: { keyId: undefined, requestId: undefined },
          reason: undefined,
          at: event?.at,
        })
      },
    )

    announced(
      "of a sweep are in the order of their ids, in the feed and in the audit trail",
      function* ({ expiry, grant, judge, store }) {
        for (const user of users) yield* grant(user, 10)
        yield* days(9.5)
        const swept = yield* drain(expiry, judge)
        const ids = swept.map(({ id }) => id).toSorted()
        expect(ids).toHaveLength(users.length)
        const feed = yield* FeedStore
        const { events } = yield* feed.read([p1], "start", { events: 100, bytes: 100_000 })
        const last = events.slice(-users.length)
        expect(last.map(({ id }) => id)).toEqual(ids)
        const rows = yield* store.history(p1, { userId: undefined, limit: users.length })
        const announcedTo = last.map(({ body }) => JSON.parse(body).data.user_id)
        expect(rows.map(({ userId }) => userId).toReversed()).toEqual(announcedTo)
      },
    )

    announced("are only the latest of what is due at once", function* ({ grant, sweep }) {
      yield* grant(u1, 10)
      yield* grant(u2, 20)
      yield* days(9.5)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 1]])
      yield* days(11)
      expect(yield* sweep).toEqual([
        ["membership.expired", u1],
        ["membership.expired", u2],
      ])
    })

    announced(
      "come for members who were there before, but not for ends before",
      function* ({ sweep }) {
        yield* days(2.5)
        expect(yield* eventually(sweep)).toEqual([["membership.expiring", u2, 1]])
        yield* days(1.5)
        expect(yield* sweep).toEqual([["membership.expired", u2]])
      },
      ({ grant }) => Effect.all([grant(u1, -1), grant(u2, 3), grant(u3, 30)], { discard: true }),
    )

    announced("come for ends before the change that sets them", function* ({ grant, sweep }) {
      yield* days(2)
      yield* grant(u1, -1)
      expect(yield* sweep).toEqual([["membership.expired", u1]])
    })

    announced(
      "are no reminders whose time had come when the date was set",
      function* ({ extend, grant, store, sweep }) {
        yield* grant(u1, 7)
        yield* grant(u2, 100)
        yield* extend(u2, 1)
        const memberships = [{ userId: u3, endDate: yield* inDays(6) }]
        yield* store.import({ ...change(p1), memberships })
        expect(yield* sweep).toEqual([])
        yield* days(5.5)
        expect(yield* sweep).toEqual([
          ["membership.expired", u2],
          ["membership.expiring", u3, 1],
        ])
        yield* days(1)
        expect(yield* sweep).toEqual([
          ["membership.expiring", u1, 1],
          ["membership.expired", u3],
        ])
      },
    )

    for (const mode of ["set", "neverShorten"] as const) {
      announced(
        `are no reminders whose time had come when a bulk extension was made or undone: ${mode}`,
        function* ({ grant, store, sweep }) {
          yield* grant(u1, 1.5)
          yield* grant(u2, 8)
          const endDate = yield* inDays(6)
          const near = { ...change(p1), bulk: { mode, endDate } }
          yield* store.extendAll(near)
          expect(yield* sweep).toEqual([])
          const by = { mode: "extendBy", by: Millis(90 * dayMillis) } as const
          const far = { ...change(p1), bulk: by }
          yield* store.extendAll(far)
          yield* days(3)
          expect(yield* sweep).toEqual([])
          for (const { event } of [far, near]) {
            const target = { bulkExtensionId: event.id, madeAfter: longAgo }
            yield* store.undoBulkExtension({ ...change(p1), ...target })
          }
          expect(yield* sweep).toEqual([["membership.expired", u1]])
          yield* days(4.5)
          expect(yield* sweep).toEqual([["membership.expiring", u2, 1]])
        },
      )
    }

    announced(
      "are reminders that are late for another reason, whatever was changed but the date",
      function* (on) {
        const { extend, grant, store, sweep } = on
        yield* grant(u1, 8)
        yield* grant(u2, 20)
        yield* grant(u3, 8)
        yield* extendAll(on, 8, "neverShorten")
        yield* extend(u2, 8)
        yield* days(2)
        // The same dates again, and a bulk extension without an effect.
        const { endDate } = yield* store.find(p1, u2)
        yield* store.grant({ ...change(p1), userId: u2, endDate })
        yield* store.extend({ ...change(p1), userId: u2, endDate, expectedEndDate: endDate })
        yield* store.extend({ ...change(p1), userId: u2, endDate, mode: "neverShorten" })
        const bulk = { mode: "neverShorten", endDate: yield* inDays(3) } as const
        const without = { ...change(p1), bulk }
        yield* store.extendAll(without)
        const target = { bulkExtensionId: without.event.id, madeAfter: longAgo }
        yield* store.undoBulkExtension({ ...change(p1), ...target })
        expect(yield* sweep).toEqual([
          ["membership.expiring", u1, 7],
          ["membership.expiring", u2, 7],
          ["membership.expiring", u3, 7],
        ])
      },
    )

    announced(
      "are for the date that holds: not for one that was extended, or ended",
      function* ({ extend, grant, store, sweep }) {
        for (const user of [u1, u2, u3]) yield* grant(user, 8)
        yield* extend(u1, 100)
        yield* store.end({ ...change(p1), userId: u2 })
        yield* store.erase({ ...change(p1), userId: u3 })
        yield* days(9)
        expect(yield* sweep).toEqual([])
      },
    )

    announced(
      "come in time for a date that was brought forward",
      function* ({ extend, grant, sweep }) {
        yield* grant(u1, 100)
        yield* grant(u2, 100)
        yield* extend(u1, 8)
        yield* grant(u2, 8)
        yield* days(1)
        expect(yield* sweep).toEqual([
          ["membership.expiring", u1, 7],
          ["membership.expiring", u2, 7],
        ])
      },
    )

    announced("come again for a membership that was renewed", function* (on) {
      yield* on.grant(u1, 1.5)
      yield* days(1)
      expect(yield* on.sweep).toEqual([["membership.expiring", u1, 1]])
      yield* days(1)
      expect(yield* on.sweep).toEqual([["membership.expired", u1]])
      yield* on.extend(u1, 20)
      expect(yield* on.sweep).toEqual([])
      yield* days(30)
      expect(yield* on.sweep).toEqual([["membership.expired", u1]])
    })

    announced("do not come again for the same date", function* ({ grant, store, sweep }) {
      yield* grant(u1, 1.5)
      yield* days(1)
      expect(yield* sweep).toEqual([["membership.expiring", u1, 1]])
      const { endDate } = yield* store.find(p1, u1)
      yield* store.grant({ ...change(p1), userId: u1, endDate })
      expect(yield* sweep).toEqual([])
    })

    for (const mode of ["set", "neverShorten"] as const) {
      announced(`come at the dates of bulk extensions: ${mode}`, function* (on) {
        for (const user of users) yield* on.grant(user, 1)
        yield* extendAll(on, 30, mode)
        yield* on.extend(users[0] ?? u1, 50)
        yield* days(24)
        const { expiry, judge } = on
        const reminded = yield* drain(expiry, judge, 5)
        expect(reminded).toHaveLength(users.length - 1)
        yield* days(7)
        expect(yield* drain(expiry, judge, 5)).toHaveLength(users.length - 1)
        expect(yield* on.sweep).toEqual([])
      })
    }

    announced(
      "come for a bulk extension that brings dates forward, while the members are gone through",
      function* (on) {
        const { expiry, judge } = on
        for (const user of users) yield* on.grant(user, 100)
        yield* extendAll(on, 20, "set")
        yield* days(14)
        yield* expiry.sweep(5, judge)
        yield* extendAll(on, 2, "set")
        yield* days(3)
        yield* drain(expiry, judge, 5)
        expect(yield* on.sweep).toEqual([])
        const ended = yield* on.store.history(p1, { userId: undefined, limit: 1000 })
        expect(ended.filter(({ action }) => action === "expired")).toHaveLength(users.length)
      },
    )

    announced(
      "do not come at the dates of bulk extensions that others have followed",
      function* (on) {
        for (const user of users) yield* on.grant(user, 100)
        yield* extendAll(on, 20, "set")
        yield* extendAll(on, 40, "set")
        yield* days(30)
        expect(yield* on.sweep).toEqual([])
        yield* days(4)
        expect(yield* on.sweep).toHaveLength(users.length)
      },
    )

    announced("come for a bulk extension of memberships that have ended", function* (on) {
      yield* on.grant(u1, 1)
      yield* days(2)
      expect(yield* on.sweep).toEqual([["membership.expired", u1]])
      yield* extendAll(on, 20, "neverShorten")
      expect(yield* on.sweep).toEqual([])
      yield* days(20)
      expect(yield* on.sweep).toEqual([["membership.expired", u1]])
    })

    announced(
      "come for a bulk extension to a date that is over only by the clock of the store",
      function* (on) {
        yield* on.grant(u1, 1)
        yield* days(2)
        expect(yield* on.sweep).toEqual([["membership.expired", u1]])
        const bulk = { endDate: yield* inDays(-0.1), mode: "set" } as const
        yield* on.store.extendAll({ ...change(p1), at: yield* inDays(-0.2), bulk })
        expect(yield* on.sweep).toEqual([["membership.expired", u1]])
      },
    )

    announced(
      "come for an undo to a date that is over only by the clock of the store",
      function* (on) {
        yield* on.grant(u1, 1.9)
        const bulk = { endDate: yield* inDays(1), mode: "set" } as const
        const extension = { ...change(p1), bulk }
        yield* on.store.extendAll(extension)
        yield* days(2)
        expect(yield* on.sweep).toEqual([["membership.expired", u1]])
        const target = { bulkExtensionId: extension.event.id, madeAfter: longAgo }
        yield* on.store.undoBulkExtension({ ...change(p1), at: yield* inDays(-0.2), ...target })
        expect(yield* on.sweep).toEqual([["membership.expired", u1]])
      },
    )

    announced(
      "come at a longer reminder as soon as somebody watches for it",
      function* ({ expiry, grant, judge, sweep }) {
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
      },
    )

    announced(
      "come at a reminder that is added between others",
      function* ({ expiry, grant, sweep }) {
        yield* grant(u1, 8)
        yield* grant(u2, 6.5)
        yield* days(1)
        expect(yield* sweep).toEqual([["membership.expiring", u1, 7]])
        const more = leadsOf([3, ...reminders])
        const judge = makeDecideAnnouncement({ leads: more, since: 0 })
        yield* days(3)
        yield* expiry.watch(more)
        const swept = yield* eventually(drain(expiry, judge))
        expect(swept.map(({ body }) => JSON.parse(body).data)).toMatchObject([
          { user_id: u2, reminder: 3 * 86_400 },
        ])
        yield* days(1)
        const later = yield* drain(expiry, judge)
        expect(later.map(({ body }) => JSON.parse(body).data)).toMatchObject([
          { user_id: u1, reminder: 3 * 86_400 },
        ])
        expect(yield* sweep).toEqual([])
      },
    )

    announced("do not come for projects that were deleted", function* ({ grant, store, sweep }) {
      yield* grant(u1, 1)
      yield* extendAll({ store }, 1, "set")
      yield* store.deleteProject(p1, occasion)
      yield* store.createProject(p1, occasion)
      yield* days(2)
      expect(yield* sweep).toEqual([])
    })

    announced("have a sequence among those of the changes", function* (on) {
      const sequenceOf = (event: Event | undefined) =>
        Number(JSON.parse(event?.body ?? "{}").data.sequence)
      const { expiry, judge } = on
      yield* on.grant(u1, 100)
      yield* extendAll(on, 1.5, "set")
      yield* days(1)
      const [reminder] = yield* drain(expiry, judge)
      yield* on.extend(u1, 100)
      yield* extendAll(on, 0.5, "set")
      const feed = yield* FeedStore
      const { events } = yield* feed.read([p1], "start", { events: 10, bytes: 100_000 })
      const sequences = events.map(sequenceOf)
      expect(sequences).toHaveLength(5)
      expect(sequences).toEqual(sequences.toSorted((one, other) => one - other))
      expect(new Set(sequences).size).toBe(5)
      expect(sequences[2]).toBe(sequenceOf(reminder))
    })

    announced(
      "are of no more members than asked for, and tell whether there are more",
      function* ({ expiry, grant, judge }) {
        for (const user of users) yield* grant(user, 1.5)
        yield* days(1)
        const first = yield* expiry.sweep(5, judge)
        expect(first.events).toHaveLength(5)
        expect(first.isMore).toBe(true)
        expect(yield* drain(expiry, judge, 5)).toHaveLength(users.length - 5)
      },
    )

    announced(
      "are not held up by those of another project, however many that has",
      function* ({ expiry, grant, judge, store }) {
        for (const user of users) yield* grant(user, 1.25)
        const endDate = yield* inDays(1.5)
        for (const userId of [u1, u2]) yield* store.grant({ ...change(p2), userId, endDate })
        yield* days(1)
        const sweeps = yield* Effect.replicateEffect(expiry.sweep(5, judge), 3)
        const events = sweeps.flatMap((swept) => swept.events)
        expect(events.filter(({ projectId }) => projectId === p2)).toHaveLength(2)
        expect(yield* drain(expiry, judge, 5)).toHaveLength(users.length + 2 - events.length)
      },
    )

    announced(
      "come once if many sweep at the same time",
      function* ({ expiry, grant, judge, sweep }) {
        for (const user of users) yield* grant(user, 1.5)
        yield* days(1)
        const sweeps = Array.from({ length: 5 }, () => drain(expiry, judge, 7))
        const events = (yield* Effect.all(sweeps, { concurrency: "unbounded" })).flat()
        yield* sweep
        const feed = yield* FeedStore
        const read = yield* feed.read([p1], "start", { events: 1000, bytes: 1_000_000 })
        const reminded = read.events.filter(({ type }) => type === "membership.expiring")
        expect(reminded).toHaveLength(users.length)
        expect(new Set(reminded.map(({ id }) => id)).size).toBe(users.length)
        expect(events.length).toBeLessThanOrEqual(users.length)
      },
    )

    announced("are never of a date that was replaced before", function* (on) {
      const { expiry, extend, grant, judge, store } = on
      // Ends before the first sweep are not announced.
      yield* days(1)
      for (let round = 0; round < 5; round++) {
        for (const user of users) yield* grant(user, round / 8 - 0.75)
        const renewals = users.map((user) => extend(user, 50))
        const sweeps = [drain(expiry, judge, 5), drain(expiry, judge, 5)]
        yield* Effect.all([...sweeps, ...renewals], { concurrency: "unbounded" })
      }
      const rows = yield* store.history(p1, { userId: undefined, limit: 1000 })
      const dates = new Map<string | undefined, number | undefined>()
      for (const { action, from, to, userId } of rows.toReversed()) {
        if (action === "expired") expect([userId, from]).toEqual([userId, dates.get(userId)])
        dates.set(userId, to)
      }
    })
  })
}

/** Declares the tests. */
export const expirySuite = (on: StoreTests): void => {
  if (!on.announcesEnds) {
    return on.test("announces no ends, as the harness says", function* () {
      expect((yield* MembershipStore).expiry).toBeUndefined()
    })
  }
  announcingTests(on)
  announcingModelTests(on)
}
