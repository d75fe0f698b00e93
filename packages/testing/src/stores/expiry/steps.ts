/** Steps that tests of announcements share. */

import { EndDate } from "@tenure/core/EndDate"
import type { Event } from "@tenure/core/Event"
import * as Expiry from "@tenure/core/Expiry"
import type { ExpiryStore } from "@tenure/core/ExpiryStore"
import type { UserId } from "@tenure/core/Membership"
import { MembershipStore } from "@tenure/core/MembershipStore"
import * as Moment from "@tenure/core/Moment"
import { Millis } from "@tenure/core/Units"
import * as Effect from "effect/Effect"
import { change, occasion, p1, p2 } from "../../support/fixtures.ts"

export const dayMillis = 86_400_000

/** The reminders of the tests, in days. */
export const reminders = [7, 1] as const

/** The leads of reminders in days. */
export const leadsOf = (inDays: ReadonlyArray<number>): ReadonlyArray<Millis> =>
  Expiry.leadsOf(inDays.map((days) => Millis(days * dayMillis)))

const leads = leadsOf(reminders)

/**
 * Returns the date a number of days from now. The clock of a database stands still when its harness moves
 * what it stores into the past, so dates are counted from the time at which they are used.
 */
export const inDays = (days: number): Effect.Effect<EndDate> =>
  Effect.map(Moment.unix, (now) => EndDate(now + days * dayMillis))

/** A store of memberships that announces ends, and those steps of the tests that need more than one call. */
export interface Announcing {
  readonly store: MembershipStore["Service"]
  readonly expiry: ExpiryStore
  readonly judge: Expiry.Judge
  /** Grants a membership that ends a number of days from now. */
  readonly grant: (userId: UserId, days: number) => Effect.Effect<unknown, unknown>
  /** Extends a membership until a number of days from now. */
  readonly extend: (userId: UserId, days: number) => Effect.Effect<unknown, unknown>
  /** Sweeps until nothing is due. Returns what was announced, in the order of the users and dates. */
  readonly sweep: Effect.Effect<ReadonlyArray<Announced>, unknown>
}

/** What an event announces: `user` ended, or ends within the days of a reminder. */
type Announced = readonly [type: string, user: string, reminderDays?: number]

const announcedBy = ({ body, type }: Event): Announced => {
  const { data }: { readonly data: { readonly user_id: string; readonly reminder?: number } } =
    JSON.parse(body)
  return data.reminder === undefined
    ? [type, data.user_id]
    : [type, data.user_id, data.reminder / 86_400]
}

/** Sweeps with a limit until nothing is due. Returns the events. */
export const drain = (
  expiry: ExpiryStore,
  judge: Expiry.Judge,
  limit = 100,
): Effect.Effect<ReadonlyArray<Event>, unknown> =>
  Effect.gen(function* () {
    const all: Array<Event> = []
    for (let isMore = true; isMore;) {
      const swept = yield* expiry.sweep(limit, judge)
      all.push(...swept.events)
      isMore = swept.isMore
    }
    return all
  })

/**
 * Repeats a step until it returns something. Stores look at memberships that were there before once all
 * transactions are over that ran then, and other tests may have some on the same server.
 */
export const eventually = <A, E, R>(
  step: Effect.Effect<ReadonlyArray<A>, E, R>,
): Effect.Effect<ReadonlyArray<A>, E, R> =>
  Effect.repeat(step, { until: (found) => found.length > 0, times: 2000 })

/**
 * Runs a test on a store with two projects, unless the store cannot announce ends.
 *
 * @param prepare - what happens before the store watches the dates
 */
export const announcing = <A, E, R>(
  test: (on: Announcing) => Effect.Effect<A, E, R>,
  prepare?: (on: Pick<Announcing, "grant" | "store">) => Effect.Effect<unknown, unknown>,
) =>
  Effect.gen(function* () {
    const store = yield* MembershipStore
    const { expiry } = store
    if (expiry === undefined) return
    yield* store.createProject(p1, occasion)
    yield* store.createProject(p2, occasion)
    const grant = (userId: UserId, days: number) =>
      Effect.flatMap(inDays(days), (endDate) => store.grant({ ...change(p1), userId, endDate }))
    const extend = (userId: UserId, days: number) =>
      Effect.flatMap(inDays(days), (endDate) => store.extend({ ...change(p1), userId, endDate }))
    if (prepare !== undefined) yield* prepare({ store, grant })
    // Asked for before each sweep: a harness may have moved it into the past with all that is stored.
    const watched = expiry.watch(leads)
    let since = yield* watched
    const judge: Expiry.Judge = (candidate, now) => Expiry.judgeBy({ leads, since })(candidate, now)
    const watching: ExpiryStore = {
      ...expiry,
      sweep: Effect.fnUntraced(function* (limit, by) {
        since = yield* watched
        return yield* expiry.sweep(limit, by)
      }),
    }
    const sweep = Effect.map(drain(watching, judge), (events) =>
      events
        .map(announcedBy)
        .toSorted((one, other) => (String(one.slice(1)) < String(other.slice(1)) ? -1 : 1)),
    )
    // A store of several databases watches each of them from its first sweep on.
    if (prepare === undefined) yield* drain(watching, judge)
    yield* test({ store, expiry: watching, judge, grant, extend, sweep })
  })
