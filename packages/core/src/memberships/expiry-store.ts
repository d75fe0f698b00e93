/** The part of the storage port that announces ends. */

import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/errors.ts"
import type { Millis } from "../base/time.ts"
import type { Event } from "../events/event.ts"
import type { DecideAnnouncement } from "./expiry.ts"

/** A sweep's result. */
export interface SweepResult {
  /** The published events. */
  readonly events: ReadonlyArray<Event>
  /** Whether there may be more to do at once. */
  readonly isMore: boolean
  /**
   * The milliseconds until the first next check, unless a change brings one forward; `Infinity` for
   * never. Missing if the store does not know it, or has left a check that is due.
   */
  readonly nextDueMillis?: number | undefined
}

/**
 * Finds memberships with an announcement due.
 *
 * It keeps three things with each membership: when and by what its date was set (`changeTime`, `dateOrigin`), the
 * last announcement, and the next check, the time to decide on the next announcement. A change to the
 * same date keeps the time, if the member's own date holds. The next check may be too early, but never
 * too late: each change to an end date ensures, in the same step, a check at the new date less the
 * longest reminder, or before. One check for the whole project is enough for all its members. So an
 * extension need not touch the existing check.
 */
export interface ExpiryStore {
  /**
   * Starts to watch end dates, forever: present and future ones. Returns when the watch began, in
   * milliseconds since the epoch: at the first call on this storage, by any process. If that is in the
   * future, because the clock was ahead, it begins now, and each membership gets a next check as if it
   * were new.
   *
   * A reminder missing from the previous call is not lost for memberships near their end: each
   * membership gets a next check as if it were new.
   *
   * @param leads - the reminders' times before the end, longest first. If calls differ, the longest
   *   counts for the next checks
   */
  readonly watch: (leads: ReadonlyArray<Millis>) => Effect.Effect<number, StoreUnavailable>

  /** Returns when the watch began, and changes nothing; `undefined` if it never has. */
  readonly watchedSince: Effect.Effect<number | undefined, StoreUnavailable>

  /**
   * Looks at memberships with a check due, by the store's clock: earliest first within a project. If
   * more than `limit` are due, every project gets its turn within a few sweeps, however many another
   * one has. `decide` decides on each membership's announcement and next check. Both are stored in one
   * step, if the membership still has the end date and the last announcement the decision was based on.
   * The step stores the next check, the announcement, an audit row from and to the end date, the event
   * with a sequence as for a membership change, and a delivery for each webhook. If the announcement is
   * that a pause has ended, the member gets the later date as an own date in the same step, unless an
   * operation before has done so; the row is from the date that stood, the event has the own date and its
   * sequence, and the last announcement stays. Memberships locked by
   * others are left for the next sweep. A project's feed and audit trail have a sweep's announcements
   * ordered by event id.
   *
   * Sweeps may run at the same time, in several processes.
   *
   * @param limit - the most memberships to look at
   */
  readonly sweep: (
    limit: number,
    decide: DecideAnnouncement,
  ) => Effect.Effect<SweepResult, StoreUnavailable>

  /**
   * Returns when the first next check is due, or earlier, in milliseconds since the epoch; `Infinity` for
   * never. Only a store in this process can know.
   */
  readonly nextCheckAt?: (() => number) | undefined
}
