/** Dry runs: their flags, and the result for people. */

import type { EventsPreview, Extended } from "@tenure/client"
import * as Effect from "effect/Effect"
import { usageFailure } from "./failure.ts"
import { booleanFlag } from "./flags.ts"
import { pluralize, printable } from "./text.ts"

/** Asks for a dry run. */
export const dryRunFlag = booleanFlag("dry-run", "Shows what would happen, and changes nothing")

/** Also asks for the webhooks of a dry run. */
export const eventsFlag = booleanFlag(
  "events",
  "With --dry-run, also shows the webhooks that would be sent",
)

/** Fails if webhooks are to be shown without a dry run, which would send them. */
export const requireDryRun = ({
  dryRun,
  events,
}: {
  readonly dryRun: boolean
  readonly events: boolean
}) =>
  events && !dryRun
    ? Effect.fail(usageFailure("--events shows what would be sent: add --dry-run."))
    : Effect.void

/** Describes how many webhooks would be sent, and the first of them. */
const describeEvents = (events: EventsPreview | undefined): ReadonlyArray<string> => {
  if (events === undefined) return []
  const { by_type: byType, first, total } = events
  const counts = Object.entries(byType).map(([type, count]) => `${count} × ${type}`)
  return [
    `${pluralize(total, "webhook")} would be sent${total === 0 ? "" : `: ${counts.join(", ")}`}.`,
    ...first.flatMap(({ body, type, url, webhook_id: id }) => [
      `  ${type} → ${url} (${id})`,
      `    ${JSON.stringify(body)}`,
    ]),
    ...(total > first.length ? [`  … and ${total - first.length} more`] : []),
  ].map(printable)
}

/** How many announcements a change would set off. */
export type Announcements = NonNullable<Extended["announcements"]>

/** Says how many announcements a change would set off, if there are any. */
export const announcementsOf = (
  announcements: Announcements | undefined,
): ReadonlyArray<string> => {
  if (announcements === undefined) return []
  const { expired, expiring, next_24_hours: soon, overdue } = announcements
  const all = `${pluralize(expiring, "reminder")} and ${pluralize(overdue + expired, "end")}`
  return expired + expiring + overdue === 0
    ? []
    : [`In 7 days, ${all} would be announced, ${soon} of these in 24 hours.`]
}

/** What a dry run shows of what would be sent. */
interface Shown {
  readonly announcements?: Announcements | undefined
  readonly events?: EventsPreview | undefined
}

/** Says that nothing was changed, after what would be sent. */
export const describeDryRun = (
  isDry: boolean,
  { announcements, events }: Shown = {},
): ReadonlyArray<string> =>
  isDry
    ? [
        ...announcementsOf(announcements),
        ...describeEvents(events),
        "This was a dry run: nothing was changed.",
      ]
    : []

/** Adds up what several dry runs show. */
export const addEvents = (
  before: EventsPreview | undefined,
  more: EventsPreview | undefined,
): EventsPreview | undefined => {
  if (before === undefined || more === undefined) return before ?? more
  const byType = new Map(Object.entries(before.by_type))
  for (const [type, count] of Object.entries(more.by_type)) {
    byType.set(type, (byType.get(type) ?? 0) + count)
  }
  return {
    total: before.total + more.total,
    by_type: Object.fromEntries(byType),
    first: [...before.first, ...more.first].slice(0, 10),
  }
}
