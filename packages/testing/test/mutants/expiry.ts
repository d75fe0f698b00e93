/** Stores of memberships whose announcements are wrong. */

import {
  type DecideAnnouncement,
  EndDate,
  type ExpiryStore,
  MembershipStore,
  Millis,
  Outbox,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = MembershipStore["Service"]

/** Changes how a store announces ends. */
const announcing =
  (change: (right: ExpiryStore, store: Store) => Partial<ExpiryStore>) =>
  (store: Store): Partial<Store> => ({
    expiry: store.expiry && { ...store.expiry, ...change(store.expiry, store) },
  })

/** Changes what a store does with what is decided. */
const deciding = (change: (judge: DecideAnnouncement) => DecideAnnouncement) =>
  announcing(({ sweep }) => ({ sweep: (limit, judge) => sweep(limit, change(judge)) }))

/** Stores of memberships whose announcements are wrong. */
export const expiring = mutantsOf(MembershipStore, {
  "forgets what it has announced": deciding(
    (judge) => (candidate, now) => judge({ ...candidate, announced: undefined }, now),
  ),

  "announces nothing": deciding((judge) => (candidate, now) => ({
    ...judge(candidate, now),
    announcement: undefined,
  })),

  "forgets the next alarm": deciding((judge) => (candidate, now) => ({
    ...judge(candidate, now),
    alarm: undefined,
  })),

  "takes any announcement for one of the date that holds": deciding(
    (judge) => (candidate, now) =>
      judge(
        {
          ...candidate,
          announced: candidate.announced && { ...candidate.announced, endDate: candidate.endDate },
        },
        now,
      ),
  ),

  "announces ends in the order of their alarms": announcing(({ sweep }) => ({
    sweep: (limit, judge) =>
      Effect.map(
        Effect.forEach(Array.from({ length: limit }), () => sweep(1, judge)),
        (swept) => ({ events: swept.flatMap(({ events }) => events), isMore: false }),
      ),
  })),

  "announces one project after the other": announcing(({ sweep }) => {
    let first: string | undefined
    return {
      sweep: (limit, judge) =>
        Effect.tap(
          sweep(limit, (candidate, now) => {
            first ??= candidate.projectId
            return candidate.projectId === first
              ? judge(candidate, now)
              : { announcement: undefined, alarm: now }
          }),
          ({ isMore }) => Effect.sync(() => (first = isMore ? first : undefined)),
        ),
    }
  }),

  "looks at more members than asked for": announcing(({ sweep }) => ({
    sweep: (limit, judge) => sweep(10 * limit, judge),
  })),

  "says that nothing more is due": announcing(({ sweep }) => ({
    sweep: (limit, judge) =>
      Effect.map(sweep(limit, judge), (swept) => ({ ...swept, isMore: false })),
  })),

  "watches for the first reminder only": announcing(({ watch }) => {
    let since: number | undefined
    return {
      watch: (leads) =>
        Effect.suspend(() =>
          since === undefined
            ? Effect.tap(watch(leads), (at) => Effect.sync(() => void (since = at)))
            : Effect.succeed(since),
        ),
    }
  }),

  "watches for the end itself only": announcing(({ watch }) => ({
    watch: () => watch([Millis(0)]),
  })),

  "tells that it has watched forever": announcing(({ watch }) => ({
    watch: (leads) => Effect.as(watch(leads), -1e15),
  })),

  "announces the date before the last extension": ({ expiry, extend }) => {
    const replaced = new Map<string, EndDate>()
    return {
      extend: (extension) => {
        replaced.set(extension.userId, EndDate(Date.UTC(2000, 0)))
        return extend(extension)
      },
      expiry: expiry && {
        ...expiry,
        sweep: (limit, judge) =>
          expiry.sweep(limit, (candidate, now) =>
            judge(
              { ...candidate, endDate: replaced.get(candidate.userId) ?? candidate.endDate },
              now,
            ),
          ),
      },
    }
  },

  "decides on one extension after another has been made": ({ expiry, extend }) => {
    let stale = new Set<string>()
    return {
      extend: (extension) =>
        Effect.tap(extend(extension), () => Effect.sync(() => stale.add(extension.userId))),
      expiry: expiry && {
        ...expiry,
        sweep: (limit, judge) =>
          Effect.tap(
            expiry.sweep(limit, (candidate, now) =>
              judge(
                stale.has(candidate.userId) ? { ...candidate, endDate: EndDate(now) } : candidate,
                now,
              ),
            ),
            () => Effect.sync(() => (stale = new Set())),
          ),
      },
    }
  },

  "misses the members of bulk extensions": ({ expiry, extendAll }) => {
    const bulk = new Set<number>()
    return {
      extendAll: (extension) =>
        Effect.tap(extendAll(extension), () => Effect.sync(() => bulk.add(extension.endDate))),
      expiry: expiry && {
        ...expiry,
        sweep: (limit, judge) =>
          expiry.sweep(limit, (candidate, now) => ({
            ...judge(candidate, now),
            ...(bulk.has(candidate.endDate) && { announcement: undefined }),
          })),
      },
    }
  },
})

/** Announcements that are published twice. */
export const announcedTwice = mutantsOf(MembershipStore, {
  "publishes an announcement again": ({ expiry }, context) => {
    const outbox = Context.get(context, Outbox)
    return {
      expiry: expiry && {
        ...expiry,
        sweep: (limit, judge) =>
          Effect.tap(expiry.sweep(limit, judge), ({ events }) =>
            Effect.orDie(Effect.forEach(events, (event) => outbox.publish(event))),
          ),
      },
    }
  },
})
