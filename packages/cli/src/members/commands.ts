/** `tenure members`, for one member at a time, and `tenure extend-all`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { call } from "../connection/Api.ts"
import { connected } from "../connection/connected.ts"
import { confirm, yes } from "../input/Confirmation.ts"
import * as flags from "../input/flags.ts"
import { toggle } from "../input/toggle.ts"
import { changeOf } from "../output/change.ts"
import { counted } from "../output/counted.ts"
import * as Output from "../output/Output.ts"
import { exportMembers } from "./export.ts"
import { importMembers } from "./import/command.ts"

const { endDate, project, reason, userId } = flags

const { getOrUndefined } = Option

const state = Flag.Literals("state", ["active", "expired"]).pipe(
  Flag.withDescription("Only members whose end date is not over, or those whose end date is"),
  Flag.optional,
)

const dryRun = toggle("dry-run", "Shows what would happen, and changes nothing")

const endingBefore = flags.date(
  "ending-before",
  "Only members whose end date is not over and comes before this one, soonest first",
)

const list = Command.make("list", { project, state, endingBefore }, (given) =>
  Output.list(
    ({ memberships }) =>
      memberships.list({
        project_id: given.project,
        state: getOrUndefined(given.state),
        ending_before: getOrUndefined(given.endingBefore),
        limit: 1000,
      }),
    (member) => ({ ...member }),
  ),
).pipe(
  Command.withDescription("Lists the members of a project, in the order of their ids"),
  Command.withExamples([
    { command: "tenure members list --project shop --state expired" },
    { command: "tenure members list --project shop --ending-before 2027-12-31" },
  ]),
)

const get = Command.make("get", { user: userId, project }, (given) =>
  Output.callAndRecord(
    ({ memberships }, options) =>
      memberships.get({ project_id: given.project, user_id: given.user }, options),
    (member) => ({ ...member }),
  ),
).pipe(
  Command.withDescription("Shows a member"),
  Command.withExamples([{ command: "tenure members get 1001 --project shop" }]),
)

const grant = Command.make("grant", { user: userId, date: endDate, project, reason }, (given) =>
  Output.callAndRecord(
    ({ memberships }, options) =>
      memberships.grant(
        {
          project_id: given.project,
          user_id: given.user,
          end_date: given.date,
          reason: getOrUndefined(given.reason),
        },
        options,
      ),
    (member) => ({ ...member }),
  ),
).pipe(
  Command.withDescription("Makes a user a member, or sets the end date of a member"),
  Command.withExamples([{ command: "tenure members grant 1001 2027-12-31 --project shop" }]),
)

const expected = flags.date(
  "expected",
  "Changes the end date only if it is this one now, so that nobody else's change is undone",
)

const keepLater = toggle("never-shorten", "Leaves the end date as it is if it is later")

const extend = Command.make(
  "extend",
  { user: userId, date: endDate, project, reason, expected, neverShorten: keepLater, dryRun },
  (given) =>
    Output.callAndRecord(
      ({ memberships }, options) =>
        memberships.extend(
          {
            project_id: given.project,
            user_id: given.user,
            extend: given.date,
            reason: getOrUndefined(given.reason),
            expected_end_date: getOrUndefined(given.expected),
            mode: given.neverShorten ? "never_shorten" : undefined,
            dry_run: given.dryRun,
          },
          options,
        ),
      (extended) => ({ ...extended }),
    ),
).pipe(
  Command.withDescription("Sets the end date of a member to a future one"),
  Command.withExamples([
    { command: 'tenure members extend 1001 2027-12-31 --project shop --reason "invoice 117"' },
    {
      command:
        "tenure members extend 1001 2027-12-31 --project shop --expected 2026-12-31 --dry-run",
    },
  ]),
)

const erase = toggle("erase", "Also removes the user id from the history and from events")

const end = Command.make(
  "end",
  { user: userId, project, erase, yes },
  Effect.fnUntraced(function* (given) {
    if (given.erase) yield* confirm(`Erase every trace of ${given.user}?`, given.yes)
    yield* Output.callAndSay(
      ({ memberships }, options) =>
        memberships.end(
          {
            project_id: given.project,
            user_id: given.user,
            erase: given.erase ? "true" : undefined,
          },
          options,
        ),
      `${given.user} is no member any more.`,
    )
  }),
).pipe(
  Command.withDescription("Ends a membership"),
  Command.withExamples([
    { command: "tenure members end 1001 --project shop" },
    { command: "tenure members end 1001 --project shop --erase --yes" },
  ]),
)

const history = Command.make("history", { user: userId, project }, (given) =>
  Output.list(
    ({ memberships }) => memberships.history({ project_id: given.project, user_id: given.user }),
    changeOf,
  ),
).pipe(
  Command.withDescription("Lists the changes of a member, newest first"),
  Command.withExamples([{ command: "tenure members history 1001 --project shop" }]),
)

/** The command. */
export const members = Command.make("members").pipe(
  Command.withDescription("Members of a project"),
  Command.withSubcommands([list, get, grant, extend, end, history, importMembers, exportMembers]),
  Command.withExamples([...list.examples, ...extend.examples, ...importMembers.examples]),
  connected,
)

const neverShorten = toggle("never-shorten", "Leaves members that end later as they are")

/** What becomes of members that end later. */
const laterOf = (shortened: number, isNeverShortened: boolean): string => {
  if (isNeverShortened) return "Those that end later stay as they are."
  return shortened === 0
    ? "None of them ends later."
    : `${counted(shortened, "ends", "end")} later and would be shortened.`
}

/** The question before all members are extended. */
const questionOf = (id: string, date: string, total: number, ends: string): string => {
  return `Set the end date of ${counted(total, "member")} of ${id} to ${date}? ${ends}`
}

/** `tenure extend-all`. */
export const extendAll = Command.make(
  "extend-all",
  {
    project: flags.projectId,
    date: Argument.withMetavar(endDate, "DATE"),
    reason,
    neverShorten,
    dryRun,
    yes,
  },
  Effect.fnUntraced(function* (given) {
    const extended = (dry_run: boolean) =>
      call(({ memberships }, options) =>
        memberships.extendAll(
          {
            project_id: given.project,
            extend: given.date,
            reason: getOrUndefined(given.reason),
            mode: given.neverShorten ? "never_shorten" : undefined,
            dry_run,
          },
          options,
        ),
      )
    const show = ({ data, total }: Effect.Success<ReturnType<typeof extended>>) =>
      Output.record({ total, ...data }, (all) => ({ ...all }))
    const preview = yield* extended(true)
    if (given.dryRun) return yield* show(preview)
    const { data, total } = preview
    const ends = laterOf(data.would_shorten ?? 0, given.neverShorten)
    const question = questionOf(given.project, data.new_end_date, total, ends)
    yield* confirm(question, given.yes)
    yield* show(yield* extended(false))
  }),
).pipe(
  Command.withDescription(
    "Sets the end date of all members of a project, after showing how many would end earlier",
  ),
  Command.withExamples([
    { command: "tenure extend-all shop 2027-12-31 --dry-run" },
    { command: "tenure extend-all shop 2027-12-31 --never-shorten --yes" },
  ]),
  connected,
)
