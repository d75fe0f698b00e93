/** All checks. */

import type { Check, Run, Violation } from "../history.ts"
import { announcements } from "./announcements.ts"
import { healing, statuses, waits } from "./answers.ts"
import { intrusions, revocations, slots } from "./connections.ts"
import { deletions } from "./deletions.ts"
import { deliveries } from "./deliveries.ts"
import { endDates } from "./end-dates.ts"
import { erasures } from "./erasures.ts"
import { events } from "./events.ts"
import { feed } from "./feed.ts"
import { growth } from "./growth.ts"
import { limits, refusals } from "./limits.ts"
import { exits, logs, sizes } from "./processes.ts"
import { repetitions } from "./repetitions.ts"
import { signatures } from "./signatures.ts"

/** All checks. */
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
