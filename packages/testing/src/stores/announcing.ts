/** Stores that announce ends, and steps in their tests. */

import { currentUnixMillis, makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import {
  type BulkMode,
  type Change,
  type DecideAnnouncement,
  EndDate,
  type Event,
  type ExpiryStore,
  MembershipStore,
  Millis,
  type StorePorts,
  type UserId,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { change, longAgo, p1 } from "../support/fixtures.ts"
import type { Steps, StoreTests } from "./declare.ts"
import { createProjects, dayMillis } from "./steps.ts"

/** The reminders in these tests, in days. */
export const reminders = [7, 1] as const

/** Converts reminders' leads from days. */
export const leadsOf = (inDays: ReadonlyArray<number>): ReadonlyArray<Millis> =>
  reminderLeads(inDays.map((days) => Millis(days * dayMillis)))

const leads = leadsOf(reminders)

/**
 * Returns the date so many days from now. Dates are calculated when used: some harnesses move stored data into the
 * past, while the database's clock stands still.
 */
export const inDays = (days: number): Effect.Effect<EndDate> =>
  Effect.map(currentUnixMillis, (now) => EndDate(now + days * dayMillis))

/** A membership store with announcements, and the tests' longer steps. */
export interface Announcing {
  readonly store: MembershipStore["Service"]
  readonly expiry: ExpiryStore
  readonly judge: DecideAnnouncement
  /** Grants a membership that ends so many days from now. */
  readonly grant: (userId: UserId, days: number) => Effect.Effect<unknown, unknown>
  /** Extends a membership until so many days from now. */
  readonly extend: (userId: UserId, days: number) => Effect.Effect<unknown, unknown>
  /** Extends all memberships until so many days from now. Returns the change. */
  readonly extendAll: (mode: BulkMode, days: number, at?: EndDate) => Effect.Effect<Change, unknown>
  /** Undoes a bulk extension. */
  readonly undo: (extension: Change, at?: EndDate) => Effect.Effect<unknown, unknown>
  /** Sweeps with a limit until nothing is due. Returns the events. */
  readonly drain: (limit?: number) => Effect.Effect<ReadonlyArray<Event>, unknown>
  /** Sweeps until nothing is due. Returns the announcements, ordered by user and date. */
  readonly sweep: Effect.Effect<ReadonlyArray<Announced>, unknown>
}

/** An announcement: `user` has ended, or ends within the reminder's days. */
export type Announced = readonly [type: string, user: string, reminderDays?: number]

export const announcedBy = ({ body, type }: Event): Announced => {
  const { data }: { readonly data: { readonly user_id: string; readonly reminder?: number } } =
    JSON.parse(body)
  return data.reminder === undefined
    ? [type, data.user_id]
    : [type, data.user_id, data.reminder / 86_400]
}

/** Sweeps with a limit until nothing is due. Returns the events. */
export const drain = Effect.fnUntraced(function* (
  expiry: ExpiryStore,
  judge: DecideAnnouncement,
  limit = 100,
) {
  const all: Array<Event> = []
  for (let isMore = true; isMore;) {
    const swept = yield* expiry.sweep(limit, judge)
    all.push(...swept.events)
    isMore = swept.isMore
  }
  return all
})

// Ten milliseconds in real time, whatever clock the test has.
const pause = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 10)))

/**
 * Repeats a step until it returns something. A store first waits for all older transactions before it
 * looks at existing memberships, and other tests may run some on the same server.
 */
export const eventually = <A, E, R>(
  step: Effect.Effect<ReadonlyArray<A>, E, R>,
): Effect.Effect<ReadonlyArray<A>, E, R> =>
  Effect.repeat(
    Effect.tap(step, (found) => (found.length > 0 ? Effect.void : pause)),
    { until: (found) => found.length > 0, times: 2000 },
  )

type AnnouncingSteps = Steps<StorePorts, [on: Announcing]>
type Prepare = (on: Pick<Announcing, "grant" | "store">) => Effect.Effect<unknown, unknown>

/**
 * Runs a test on a store with two projects.
 *
 * @param prepare - runs before the store watches the dates
 */
export const announcing = (steps: AnnouncingSteps, prepare?: Prepare) =>
  Effect.gen(function* () {
    const store = yield* MembershipStore
    const { expiry } = store
    if (expiry === undefined)
      return yield* Effect.die("the harness has not said `announcesEnds: false`")
    yield* createProjects
    const grant = (userId: UserId, days: number) =>
      Effect.flatMap(inDays(days), (endDate) => store.grant({ ...change(p1), userId, endDate }))
    const extend = (userId: UserId, days: number) =>
      Effect.flatMap(inDays(days), (endDate) => store.extend({ ...change(p1), userId, endDate }))
    const extendAll = Effect.fnUntraced(function* (mode: BulkMode, days: number, at = EndDate(0)) {
      const extension = { ...change(p1), at, bulk: { mode, endDate: yield* inDays(days) } }
      yield* store.extendAll(extension)
      return extension
    })
    const undo = ({ event }: Change, at = EndDate(0)) =>
      store.undoBulkExtension({
        ...change(p1),
        at,
        bulkExtensionId: event.id,
        madeAfter: longAgo,
      })
    if (prepare !== undefined) yield* prepare({ store, grant })
    // Requested before each sweep, because a harness may have moved it into the past with all stored
    // data.
    const watched = expiry.watch(leads)
    let since = yield* watched
    const judge: DecideAnnouncement = (candidate, now) =>
      makeDecideAnnouncement({ leads, since })(candidate, now)
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
    // A store over several databases watches each from its first sweep.
    if (prepare === undefined) yield* drain(watching, judge)
    return yield* Effect.gen(() =>
      steps({
        store,
        expiry: watching,
        judge,
        grant,
        extend,
        extendAll,
        undo,
        drain: (limit) => drain(watching, judge, limit),
        sweep,
      }),
    )
  })

/** Returns a function to declare tests on a store with two projects, with the effect to prepare it at the end. */
export const announcedOn =
  ({ test }: StoreTests) =>
  (name: string, steps: AnnouncingSteps, prepare?: Prepare): void =>
    test(name, function* () {
      yield* announcing(steps, prepare)
    })
