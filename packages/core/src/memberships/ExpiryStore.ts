/** The part of a store of memberships that announces their ends. */

import type * as Effect from "effect/Effect"
import type { StoreUnavailable } from "../base/StoreUnavailable.ts"
import type { Millis } from "../base/Units.ts"
import type { Event } from "../events/Event.ts"
import type { Judge } from "./Expiry.ts"

/** What a sweep has done. */
export interface Swept {
  /** The events that it has published. */
  readonly events: ReadonlyArray<Event>
  /** Whether there may be more to do at once. */
  readonly isMore: boolean
}

/**
 * Finds the memberships whose end is to be announced.
 *
 * It keeps two things with each membership: the last announcement, and an alarm, the time at which to
 * decide what to announce next. The alarm may be too early, but never too late: whatever changes an end date
 * sees to it, in the same step, that there is an alarm at the new date less the longest reminder, or before.
 * For all members of a project, an alarm of the project will do. So an extension need not touch the alarm
 * that is there.
 */
export interface ExpiryStore {
  /**
   * Has end dates watched from now on, and forever: those that memberships have already, and those that they
   * get. Returns since when they are watched, in milliseconds since the epoch: since the first call on this
   * storage, by any process. If that is in the future, because the clock was ahead, they are watched from now on, and
   * each membership gets an alarm as if it were new.
   *
   * A reminder that the call before did not have is not lost for those that are near their end: each
   * membership gets an alarm as if it were new.
   *
   * @param leads - how long before the end something is announced, longest first. Of those of several calls,
   *   the longest counts for the alarms
   */
  readonly watch: (leads: ReadonlyArray<Millis>) => Effect.Effect<number, StoreUnavailable>

  /**
   * Looks at memberships whose alarms have come, by the clock of the store: those of a project earliest
   * first, and if more have come than are asked for, those of each project in turn within a few sweeps,
   * however many another one has. It has `judge` decide what to announce of each and when to look at it again, and does so in one step, if the membership
   * still has the end date and the last announcement by which it was decided. The step stores the alarm, the
   * announcement, an audit row from and to the end date, the event with a sequence as of a change of the
   * membership, and a delivery for each webhook.
   * Memberships of which others hold a lock are left for the next sweep. The feed and the audit trail of a
   * project have the announcements of a sweep in the order of the ids of their events.
   *
   * Sweeps may run at the same time, in several processes.
   *
   * @param limit - the most memberships to look at
   */
  readonly sweep: (limit: number, judge: Judge) => Effect.Effect<Swept, StoreUnavailable>
}
