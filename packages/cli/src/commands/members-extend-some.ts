/** `tenure members extend-some`: extends the members that match some flags. */

import { createHash } from "node:crypto"
import type { Membership } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { callApi } from "../support/api.ts"
import {
  type Announcements,
  announcementsOf,
  describeDryRun,
  dryRunFlag,
} from "../support/dry-run.ts"
import {
  extendBy,
  goalArgument,
  goalOf,
  requireGoal,
  throughFlag,
  timeZoneFlag,
} from "../support/end-dates.ts"
import { usageFailure } from "../support/failure.ts"
import {
  booleanFlag,
  dateFlag,
  projectFlag,
  reason,
  stateFlag,
  textPairs,
} from "../support/flags.ts"
import { requireConfirmation } from "../support/input.ts"
import { printResult } from "../support/output.ts"
import { makeProgress } from "../support/progress.ts"
import { endText, pluralize } from "../support/text.ts"

const metadata = textPairs("metadata", "Only members with this metadata, such as plan=gold")

const user = Flag.String("user").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("Only members with these ids; may be repeated"),
  Flag.atLeast(0),
)

const neverShorten = booleanFlag("never-shorten", "Leaves members that end later as they are")

interface Preview {
  readonly total: number
  readonly would_shorten?: number
  readonly announcements?: Announcements
  readonly examples?: ReadonlyArray<{
    readonly user_id: string
    readonly end_date: Membership["end_date"]
    readonly would_end: Membership["end_date"]
  }>
}

const shortened = ({ would_shorten = 0 }: Preview): string =>
  would_shorten === 0
    ? "None would end earlier."
    : `${pluralize(would_shorten, "member")} would end earlier.`

const printPreview = (preview: Preview) =>
  printResult(preview, () => [
    `${pluralize(preview.total, "member")} would be extended. ${shortened(preview)}`,
    ...(preview.examples ?? []).map(
      ({ end_date, user_id, would_end }) =>
        `  ${user_id}: ${endText(end_date)} → ${endText(would_end)}`,
    ),
    ...describeDryRun(true, preview),
  ])

/** `tenure members extend-some`. */
export const extendSomeCommand = Command.make(
  "extend-some",
  {
    project: projectFlag,
    date: goalArgument,
    by: extendBy,
    through: throughFlag,
    timeZone: timeZoneFlag,
    metadata,
    state: stateFlag,
    endingAfter: dateFlag("ending-after", "Only members whose end date comes after this one"),
    endingBefore: dateFlag("ending-before", "Only members whose end date comes before this one"),
    user,
    reason,
    neverShorten,
    dryRun: dryRunFlag,
  },
  Effect.fnUntraced(function* (given) {
    const { project } = given
    const where = {
      ...(given.metadata.length > 0 && { metadata: Object.fromEntries(given.metadata) }),
      ...(Option.isSome(given.state) && { state: given.state.value }),
      ...(Option.isSome(given.endingAfter) && { ending_after: given.endingAfter.value }),
      ...(Option.isSome(given.endingBefore) && { ending_before: given.endingBefore.value }),
      ...(given.user.length > 0 && { user_ids: given.user }),
    }
    if (Object.keys(where).length === 0) {
      return yield* usageFailure(
        "Say which members: --metadata, --state, --ending-after, --ending-before or --user. For all, use tenure extend-all.",
      )
    }
    const goal = yield* goalOf(yield* requireGoal(given), { project, timeZone: given.timeZone })
    const extension = {
      project_id: project,
      where,
      ...goal,
      reason: Option.getOrUndefined(given.reason),
      mode: given.neverShorten ? ("never_shorten" as const) : undefined,
    }
    const { data: preview } = yield* callApi(({ memberships }, options) =>
      memberships.extendSome({ ...extension, dry_run: true }, options),
    )
    if (given.dryRun) return yield* printPreview(preview)
    yield* requireConfirmation(
      [
        `Extend ${pluralize(preview.total, "member")} of ${project}?`,
        shortened(preview),
        ...announcementsOf(preview.announcements),
      ].join(" "),
    )
    const display = makeProgress(process.stderr, "members")
    const start = yield* Clock.currentTimeMillis
    let total = 0
    let after: string | undefined
    do {
      // The same in another run: what was extended before an interruption is not extended again.
      const idempotencyKey = createHash("sha256")
        .update(JSON.stringify([extension, after]))
        .digest("hex")
      const { data } = yield* callApi(({ memberships }, options) =>
        memberships.extendSome({ ...extension, after }, { ...options, idempotencyKey }),
      )
      total += data.total
      after = data.next ?? undefined
      const millis = (yield* Clock.currentTimeMillis) - start
      display.show({ done: total, of: preview.total, items: total, millis })
    } while (after !== undefined)
    display.end()
    yield* printResult({ total }, () => [`Extended ${pluralize(total, "member")}.`])
  }),
).pipe(
  Command.withDescription(
    "Extends the members that match all given flags, after showing what would change. Within a day, the same command goes on where it was interrupted",
  ),
  Command.withExamples([
    { command: "tenure members extend-some --by P7D --metadata plan=gold --state active -p shop" },
    {
      command: "tenure members extend-some 2027-12-31 --ending-before 2027-07-01 --dry-run -p shop",
    },
  ]),
)
