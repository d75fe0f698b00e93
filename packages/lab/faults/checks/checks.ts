/** All checks. */

import type { Check, Run, Violation } from "../history.ts"
import { announcements } from "./announcements.ts"
import { healing, limits, refusals, statuses, waits } from "./answers.ts"
import { deletions, deliveries, signatures } from "./deliveries.ts"
import { endDates } from "./end-dates.ts"
import { erasures, events, repetitions } from "./events.ts"
import { feed } from "./feed.ts"
import { exits, growth, intrusions, logs, revocations, sizes, slots } from "./processes.ts"

export const checks: ReadonlyArray<Check> = [
  endDates,
  repetitions,
  erasures,
  events,
  announcements,
  deliveries,
  deletions,
  signatures,
  feed,
  slots,
  revocations,
  intrusions,
  limits,
  refusals,
  statuses,
  waits,
  healing,
  exits,
  logs,
  sizes,
  growth,
]

/** Returns all that must not be in a run. */
export const violationsOf = (run: Run): ReadonlyArray<Violation> =>
  checks.flatMap(({ find, name }) => find(run).map((found) => ({ ...found, check: name })))
