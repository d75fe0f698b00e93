/** `tenure extend-all`, and the bulk extensions of a project: lists and undoes them. */

import type { EventsPreview } from "@tenure/client"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import { callApi } from "../support/api.ts"
import {
  type Announcements,
  announcementsOf,
  describeDryRun,
  dryRunFlag,
  eventsFlag,
  requireDryRun,
} from "../support/dry-run.ts"
import {
  type GivenEnd,
  type GoalFlags,
  extendBy,
  findZone,
  goalArgument,
  goalOf,
  parseGoal,
  requireGoal,
  throughFlag,
  timeZoneFlag,
  wholeEnd,
} from "../support/end-dates.ts"
import { usageFailure } from "../support/failure.ts"
import {
  booleanFlag,
  type ProjectPlace,
  projectFlag,
  projectPlace,
  reason,
  requireProject,
} from "../support/flags.ts"
import { requireConfirmation } from "../support/input.ts"
import { connected, printList, printResult } from "../support/output.ts"
import { endText, layOutOne, pluralize } from "../support/text.ts"

/** What a change of all members does, or would do. */
interface ChangeOfAll {
  readonly new_end_date?: string
  readonly extend_by?: string
  readonly would_shorten?: number
  readonly would_reactivate?: number
  readonly would_be_capped?: number
  readonly would_end_lifetime?: number
  readonly announcements?: Announcements
  readonly events?: EventsPreview
  readonly examples?: ReadonlyArray<{
    readonly user_id: string
    readonly end_date: string | null
    readonly would_end: string | null
  }>
}

/** Says how many members for life would not be so any more, if there are any. */
const lifetimesOf = ({ would_end_lifetime = 0 }: ChangeOfAll): ReadonlyArray<string> =>
  would_end_lifetime === 0
    ? []
    : [`${pluralize(would_end_lifetime, "member")} for life would get an end date.`]

/**
 * Prints the result of a bulk change or its dry run.
 *
 * @param end - the new end date, for people
 */
const printChangeOfAll = (
  { data, total }: { readonly data: ChangeOfAll; readonly total: number },
  isDry: boolean,
  end = data.new_end_date,
) =>
  printResult({ total, ...data }, () => {
    const { examples } = data
    const row = {
      total,
      ...Struct.omit(data, ["announcements", "events", "examples", "would_end_lifetime"]),
      ...(end !== undefined && { new_end_date: end }),
      ...(examples !== undefined && {
        examples: examples.map(
          ({ end_date, user_id, would_end }) =>
            `${user_id}: ${endText(end_date)} → ${endText(would_end)}`,
        ),
      }),
    }
    return [...layOutOne(row), ...lifetimesOf(data), ...describeDryRun(isDry, data)]
  })

/** Describes the expected effect in sentences. */
const effectOf = (change: ChangeOfAll): string => {
  const { would_reactivate = 0, would_shorten = 0 } = change
  return [
    would_shorten === 0
      ? "None would end earlier."
      : `${pluralize(would_shorten, "member")} would end earlier.`,
    ...(would_reactivate === 0
      ? []
      : [`${pluralize(would_reactivate, "member")} would be active again.`]),
    ...lifetimesOf(change),
    ...announcementsOf(change.announcements),
  ].join(" ")
}

/** `tenure members bulk-extensions`. */
export const bulkExtensionsCommand = Command.make(
  "bulk-extensions",
  { project: projectFlag },
  (given) =>
    printList(
      ({ memberships }) => memberships.bulkExtensions({ project_id: given.project }),
      ({ at, end_date, extend_by, id, key_id, mode, reason: why, total, undone_at }) => ({
        id,
        at,
        mode,
        to: end_date === null ? extend_by : endText(end_date),
        total,
        by: key_id,
        reason: why,
        undone_at,
      }),
    ),
).pipe(
  Command.withDescription("Lists the extensions of all members, newest first"),
  Command.withExamples([{ command: "tenure members bulk-extensions --project shop" }]),
)

/** `tenure members undo`. */
export const undoCommand = Command.make(
  "undo",
  {
    id: Argument.String("id").pipe(
      Argument.withDescription(
        "The id of the bulk extension, as tenure members bulk-extensions has it",
      ),
    ),
    project: projectFlag,
    reason,
    dryRun: dryRunFlag,
    events: eventsFlag,
  },
  Effect.fnUntraced(function* (given) {
    yield* requireDryRun(given)
    const undone = (dry_run: boolean) =>
      callApi(({ memberships }, options) =>
        memberships.undoBulkExtension(
          {
            project_id: given.project,
            bulk_extension_id: given.id,
            reason: Option.getOrUndefined(given.reason),
            dry_run,
            ...(given.events && { events: true }),
          },
          options,
        ),
      )
    const preview = yield* undone(true)
    if (given.dryRun) return yield* printChangeOfAll(preview, true)
    const { data, total } = preview
    yield* requireConfirmation(
      `Undo it for ${pluralize(total, "member")} of ${given.project}? ${effectOf(data)}`,
    )
    yield* printChangeOfAll(yield* undone(false), false)
  }),
).pipe(
  Command.withDescription(
    "Undoes an extension of all members, after showing what would change: single changes since then stay",
  ),
  Command.withExamples([{ command: "tenure members undo ID --project shop --dry-run" }]),
)

const neverShorten = booleanFlag("never-shorten", "Leaves members that end later as they are")

/** Describes the effect on members with later end dates, and what it sets off. */
const laterOf = (change: ChangeOfAll, isNeverShortened: boolean): string => {
  const { would_shorten = 0 } = change
  const sentences = isNeverShortened
    ? ["Those that end later stay as they are."]
    : [
        // Those that end later may stay by the server's default.
        would_shorten === 0
          ? "None would end earlier."
          : `${pluralize(would_shorten, "ends", "end")} later and would be shortened.`,
        ...lifetimesOf(change),
      ]
  return [...sentences, ...announcementsOf(change.announcements)].join(" ")
}

interface Placed {
  readonly place: ProjectPlace
  readonly date: Option.Option<GivenEnd>
}

/** Tells the project from the date: a single argument that is a date is no project, unless another flag has the date. */
const placeOf = ({ by, date, place, through }: Placed & GoalFlags): Placed => {
  const isDated = [by, date, through].some((one) => Option.isSome<unknown>(one))
  const goal = isDated ? Option.none<GivenEnd>() : Option.flatMap(place.argument, parseGoal)
  return Option.isSome(goal)
    ? { place: { ...place, argument: Option.none() }, date: goal }
    : { place, date }
}

/** `tenure extend-all`. */
export const extendAllCommand = Command.make(
  "extend-all",
  {
    place: projectPlace,
    date: goalArgument,
    by: extendBy,
    through: throughFlag,
    timeZone: timeZoneFlag.pipe(
      Flag.withDescription("The IANA time zone in which the day ends; by default, the project's"),
    ),
    reason,
    neverShorten,
    dryRun: dryRunFlag,
    events: eventsFlag,
  },
  Effect.fnUntraced(function* (given) {
    yield* requireDryRun(given)
    const { date, place } = placeOf(given)
    const project_id = yield* requireProject(place)
    const end = yield* requireGoal({ ...given, date })
    if (end._tag === "Duration" && Option.isSome(given.timeZone)) {
      return yield* usageFailure(
        "--time-zone is for a day: in an extension of all, a day of a duration has 24 hours.",
      )
    }
    const goal = yield* goalOf(end, { project: project_id, timeZone: given.timeZone })
    const extended = (dry_run: boolean) =>
      callApi(({ memberships }, options) =>
        memberships.extendAll(
          {
            project_id,
            ...goal,
            reason: Option.getOrUndefined(given.reason),
            mode: given.neverShorten ? "never_shorten" : undefined,
            dry_run,
            ...(given.events && { events: true }),
          },
          options,
        ),
      )
    const preview = yield* extended(true)
    const { data, total } = preview
    const shown = { end_date: data.new_end_date ?? null, through: goal.through ?? null }
    const zone = goal.time_zone ?? (yield* findZone(project_id, shown))
    const newEnd = data.new_end_date && wholeEnd(shown, zone)
    if (given.dryRun) return yield* printChangeOfAll(preview, true, newEnd)
    const members = `${pluralize(total, "member")} of ${project_id}`
    const question =
      newEnd === undefined
        ? `Let ${members} end later by ${data.extend_by}? ${effectOf(data)}`
        : `Set the end date of ${members} to ${newEnd}? ${laterOf(data, given.neverShorten)}`
    yield* requireConfirmation(question)
    yield* printChangeOfAll(yield* extended(false), false, newEnd)
  }),
).pipe(
  Command.withDescription(
    "Sets the end date of all members of a project, or adds a duration, after showing what would change",
  ),
  Command.withExamples([
    { command: "tenure extend-all 2027-12-31 --project shop --dry-run" },
    { command: "tenure extend-all shop 2027-12-31 --never-shorten --yes" },
    { command: "tenure extend-all shop --by P3D" },
  ]),
  connected,
)
