/** `tenure members`: lists, grants, extends, ends, imports and exports. */

import type { CallOptions, Client, Extended, Membership, Success } from "@tenure/client"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Api, callApi } from "../support/api.ts"
import { auditFilter, auditFlags } from "../support/audit-flags.ts"
import { describeDryRun, dryRunFlag, eventsFlag, requireDryRun } from "../support/dry-run.ts"
import {
  type GivenEnd,
  type MembershipEnd,
  type PauseEnd,
  endArgument,
  endFlag,
  endOf,
  extendBy,
  findZone,
  goalArgument,
  goalOf,
  pauseEndOf,
  readZone,
  requireGoal,
  requireOne,
  resolveDay,
  shortEnd,
  throughFlag,
  timeZoneFlag,
  untilFlag,
  wholeEnd,
} from "../support/end-dates.ts"
import { Failure, operationFailed, usageFailure } from "../support/failure.ts"
import {
  booleanFlag,
  dateFlag,
  projectFlag,
  reason,
  stateFlag,
  textPairs,
  userId,
} from "../support/flags.ts"
import { requireConfirmation, yesFlag } from "../support/input.ts"
import {
  callAndPrintDone,
  changeOf,
  connected,
  jsonFlag,
  printList,
  printRecord,
  printResult,
} from "../support/output.ts"
import {
  endText,
  lastEndDate,
  layOutOne,
  pauseText,
  pluralize,
  printable,
} from "../support/text.ts"
import { bulkExtensionsCommand, undoCommand } from "./bulk-extensions.ts"
import { endsCommand } from "./members-ends.ts"
import { exportFormat, formats, headOf, outputFlag, writeMembers } from "./members-export.ts"
import { extendSomeCommand } from "./members-extend-some.ts"
import { whyCommand } from "./members-why.ts"
import { readReading, readingFlags } from "./reading-flags.ts"

const { getOrUndefined } = Option

/** The flag. */
const formatFlag = Flag.Literals("format", formats).pipe(
  Flag.withDescription("How members are written; by default, the file or its name tells"),
  Flag.optional,
)

const file = Argument.String("file").pipe(
  Argument.withDescription("The file with the members; - for standard input"),
)

const refused = Flag.String("refused").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription("Where the lines go that are refused; FILE.refused by default"),
  Flag.optional,
)

const run = Flag.String("run").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("Applies a file again: for a day, the same file and name are applied once"),
  Flag.withDefault("1"),
)

/** The command. */
const importMembersCommand = Command.make(
  "import",
  {
    file,
    project: projectFlag,
    format: formatFlag,
    refused,
    run,
    ...readingFlags,
    timeZone: timeZoneFlag.pipe(
      Flag.withDescription(
        "The IANA time zone of days in the file, unless a line names its own; by default, that of the project",
      ),
    ),
    dryRun: dryRunFlag,
    events: eventsFlag,
  },
  Effect.fnUntraced(function* (given) {
    yield* requireDryRun(given)
    const path = Option.getOrElse(given.refused, () =>
      given.file === "-" ? "import.refused" : `${given.file}.refused`,
    )
    const timeZone = Option.isNone(given.timeZone)
      ? undefined
      : yield* readZone(given.timeZone.value)
    const reading = yield* readReading(given, getOrUndefined(given.format))
    const importing = yield* Effect.promise(() => import("./members-import.ts"))
    const { done, events, refusals } = yield* importing.runImport({
      ...given,
      reading: { ...reading, timeZone },
      refused: path,
    })
    yield* printResult({ ...done, ...(events && { events }) }, () => [
      ...layOutOne(done),
      ...describeDryRun(given.dryRun, { events }),
    ])
    if (done.refused > 0) {
      return yield* operationFailed(
        `${pluralize(done.refused, "line was", "lines were")} refused: see ${path}. ${importing.describeRefusals(refusals)}.`,
      )
    }
  }),
).pipe(
  Command.withDescription(
    "Makes users members, or sets their end dates, from a CSV or NDJSON file with user_id and end_date",
  ),
  Command.withExamples([
    { command: "tenure members import members.csv --project shop" },
    {
      command:
        'tenure members import customers.csv --map user_id="Customer no." --dates DD.MM.YYYY --dry-run',
      description: "A file of a spreadsheet, to see what it would do",
    },
    {
      command: "tenure members import members.csv --time-zone Europe/Berlin --project shop",
      description: "Days that end in Berlin",
    },
    { command: "zcat members.ndjson.gz | tenure members import - --project shop" },
  ]),
)

/** The command. */
const exportMembersCommand = Command.make(
  "export",
  { project: projectFlag, format: formatFlag, output: outputFlag },
  Effect.fnUntraced(function* (given) {
    const path = Option.getOrElse(given.output, () => "")
    const isJson = yield* jsonFlag
    const as = Option.getOrElse(given.format, () => exportFormat(path, isJson))
    yield* writeMembers(given.project, { path, as }, headOf[as])
  }),
).pipe(
  Command.withDescription("Writes all members of a project as CSV or NDJSON"),
  Command.withExamples([{ command: "tenure members export --project shop -o members.csv" }]),
)

const project = projectFlag,
  commandsReason = reason,
  commandsUserId = userId

const endingBefore = dateFlag(
  "ending-before",
  "Only active members whose end date comes before this one, soonest first: those in grace, then the others",
)

const textsOf = (metadata: Membership["metadata"]): ReadonlyArray<string> =>
  Object.entries(metadata).map(([name, text]) => `${name}=${text}`)

type State = Pick<Membership, "grace_until" | "paused_at" | "resumes_at" | "state">

/** Writes a state for people: until when the grace lasts, or since when it is paused, too. */
const stateText = ({ grace_until, paused_at, resumes_at, state }: State): string => {
  if (paused_at !== null) return pauseText(paused_at, resumes_at)
  return grace_until === null ? state : `${state}, in grace until ${grace_until}`
}

const rowOf = (member: Membership) => ({
  user_id: member.user_id,
  end_date: shortEnd(member),
  state: stateText(member),
  metadata: textsOf(member.metadata),
})

/** Makes a call, and prints the membership that it returns. */
const callAndPrintMember = Effect.fnUntraced(function* (
  project_id: string,
  operation: (
    client: Client,
    options: CallOptions,
  ) => Promise<Success<Membership & { readonly created?: boolean }>>,
) {
  const { data } = yield* callApi(operation)
  const zone = (yield* jsonFlag) ? undefined : yield* findZone(project_id, data)
  yield* printRecord(data, ({ created, ...member }) => ({
    ...(created !== undefined && { created }),
    user_id: member.user_id,
    end_date: wholeEnd(member, zone),
    ...(member.kept_day !== null && { kept_day: member.kept_day }),
    state: stateText(member),
    metadata: textsOf(member.metadata),
  }))
})

const prefix = Flag.String("prefix").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("Only members whose ids start with this text"),
  Flag.optional,
)

const list = Command.make("list", { project, state: stateFlag, prefix, endingBefore }, (given) =>
  printList(
    ({ memberships }) =>
      memberships.list({
        project_id: given.project,
        state: getOrUndefined(given.state),
        prefix: getOrUndefined(given.prefix),
        ending_before: getOrUndefined(given.endingBefore),
        limit: 1000,
      }),
    rowOf,
  ),
).pipe(
  Command.withDescription("Lists the members of a project, in the order of their ids"),
  Command.withExamples([
    { command: "tenure members list --project shop --state expired" },
    { command: "tenure members list --project shop --state paused" },
    { command: "tenure members list --project shop --prefix ada" },
    { command: "tenure members list --project shop --ending-before 2027-12-31" },
  ]),
)

const get = Command.make("get", { user: commandsUserId, project }, (given) =>
  callAndPrintMember(given.project, ({ memberships }, options) =>
    memberships.get({ project_id: given.project, user_id: given.user }, options),
  ),
).pipe(
  Command.withDescription("Shows a member"),
  Command.withExamples([{ command: "tenure members get 1001 --project shop" }]),
)

const set = textPairs("set", "Metadata, such as plan=gold; may be repeated")

const unset = Flag.String("unset").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("Metadata to remove; may be repeated"),
  Flag.atLeast(0),
)

const update = Command.make(
  "update",
  { user: commandsUserId, project, set, unset, reason: commandsReason },
  (given) =>
    given.set.length + given.unset.length === 0
      ? Effect.fail(usageFailure("Say what to change: --set NAME=TEXT or --unset NAME."))
      : callAndPrintMember(given.project, ({ memberships }, options) =>
          memberships.update(
            {
              project_id: given.project,
              user_id: given.user,
              metadata: Object.fromEntries([
                ...given.unset.map((name) => [name, null] as const),
                ...given.set,
              ]),
              reason: getOrUndefined(given.reason),
            },
            options,
          ),
        ),
).pipe(
  Command.withDescription("Changes the metadata of a member"),
  Command.withExamples([
    { command: "tenure members update 1001 --set plan=gold --unset trial --project shop" },
  ]),
)

const ifAbsent = booleanFlag(
  "if-absent",
  "Leaves a user as is who has a membership already, even if it has expired",
)

const grant = Command.make(
  "grant",
  {
    user: commandsUserId,
    date: endArgument,
    through: throughFlag,
    timeZone: timeZoneFlag,
    ifAbsent,
    project,
    set,
    reason: commandsReason,
  },
  Effect.fnUntraced(function* (given) {
    const date = yield* requireOne(
      "Give either a date, such as 2027-01-31, +30d or never, or --through with a day.",
      given.date,
      given.through,
    )
    const end_date = yield* endOf(date, given)
    yield* callAndPrintMember(given.project, ({ memberships }, options) =>
      memberships.grant(
        {
          project_id: given.project,
          user_id: given.user,
          ...end_date,
          ...(given.ifAbsent && { if_absent: true }),
          reason: getOrUndefined(given.reason),
          ...(given.set.length > 0 && { metadata: Object.fromEntries(given.set) }),
        },
        options,
      ),
    )
  }),
).pipe(
  Command.withDescription("Makes a user a member, or sets the end date of a member"),
  Command.withExamples([
    {
      command: "tenure members grant 1001 2027-12-31 --project shop",
      description: "Through the last day of 2027",
    },
    { command: "tenure members grant 1001 never --project shop", description: "For life" },
    {
      command: "tenure members grant 1001 +14d --if-absent --project shop",
      description: "A trial, which nobody gets twice",
    },
  ]),
)

const expected = endFlag(
  "expected",
  "Changes the end date only if it is this one now, so that nobody else's change is undone",
)

const keepLater = booleanFlag("never-shorten", "Leaves the end date as it is if it is later")

const from = Flag.Literals("from", ["end", "now", "later"]).pipe(
  Flag.withDescription("From when --by counts; by default, from the later of the end date and now"),
  Flag.optional,
)

interface Dates {
  /** The end date before. */
  readonly from: string
  readonly to: string
}

/** Asks whether an earlier end date is meant. */
const shorteningOf = (user: string, { from: before, to }: Dates): string =>
  before === endText(null)
    ? `The membership of ${user} is for life, and would end: ${to}. Shorten it?`
    : `The membership of ${user} ends ${before}, and would end earlier: ${to}. Shorten it?`

/** Returns the expected end date of a membership as the API takes it. Fails if a day is expected, and it ends another one. */
const expectedOf = Effect.fnUntraced(function* (
  given: GivenEnd,
  found: MembershipEnd,
  project_id: string,
) {
  if (given._tag === "Never") return null
  if (given._tag === "Instant") return given.date
  if (given._tag === "Duration") return yield* usageFailure("--expected must be a date.")
  const day = yield* resolveDay(given.day, { project: project_id, timeZone: Option.none() })
  if (found.through === day) return found.end_date
  return yield* new Failure({
    kind: "failed",
    code: "END_DATE_CONFLICT",
    message: `The membership does not end with the day ${day}: its end date is ${wholeEnd(found, undefined)}.`,
  })
})

const create = booleanFlag(
  "create",
  "Creates the membership if the user has none, as if one ended now",
)

/** Returns the membership, or `undefined` if the user has none and it may be created. */
const findOrAbsent = (find: Effect.Effect<Success<Membership>, Failure, Api>, mayCreate: boolean) =>
  Effect.catchIf(
    Effect.map(find, ({ data }): Membership | undefined => data),
    ({ code }: Failure) => mayCreate && code === "MEMBERSHIP_NOT_FOUND",
    () => Effect.undefined,
  )

const extend = Command.make(
  "extend",
  {
    user: commandsUserId,
    date: goalArgument,
    by: extendBy,
    through: throughFlag,
    timeZone: timeZoneFlag,
    from,
    project,
    reason: commandsReason,
    expected,
    create,
    neverShorten: keepLater,
    dryRun: dryRunFlag,
    events: eventsFlag,
  },
  Effect.fnUntraced(function* (given) {
    yield* requireDryRun(given)
    if (given.create && Option.isSome(given.expected)) {
      return yield* usageFailure(
        "--create is for a user who may be no member: leave out --expected.",
      )
    }
    const goal = yield* goalOf(yield* requireGoal(given), given)
    const member = { project_id: given.project, user_id: given.user }
    const find = callApi(({ memberships }, options) => memberships.get(member, options))
    const found = yield* findOrAbsent(find, given.create)
    const expected_end_date =
      found !== undefined && Option.isSome(given.expected)
        ? yield* expectedOf(given.expected.value, found, given.project)
        : undefined
    const extended = (dry_run: boolean) =>
      callApi(({ memberships }, options) =>
        memberships.extend(
          {
            ...member,
            ...goal,
            from: getOrUndefined(given.from),
            reason: getOrUndefined(given.reason),
            expected_end_date,
            mode: given.neverShorten ? "never_shorten" : undefined,
            dry_run,
            ...(given.create && { create: true }),
            ...(given.events && { events: true }),
          },
          options,
        ),
      )
    const before = found && (found.end_date ?? lastEndDate)
    /** Returns when the membership ends after an extension, which a dry run does not tell for durations. */
    const endAfter = Effect.fnUntraced(function* (end_date: string) {
      if (found !== undefined && end_date === before) return found
      const through = (given.neverShorten || goal.time_zone ? undefined : goal.through) ?? null
      const told = { end_date, through }
      if (given.dryRun) return told
      const { data: now } = yield* Effect.orElseSucceed(find, () => ({ data: told }))
      return now.end_date === end_date ? now : told
    })
    const describeChange = Effect.fnUntraced(function* ({ created, new_end_date }: Extended) {
      if (new_end_date === before && before === lastEndDate) return "It never ends, as before"
      const end = yield* endAfter(new_end_date)
      const to = wholeEnd(end, yield* findZone(given.project, end))
      // Somebody else may create or end it between the two requests.
      if (created === true) return `Created: ${to}`
      if (found === undefined || before === undefined) return `Extended: ${to}`
      if (new_end_date === before) return `It ends as before: ${to}`
      return `${end.through === null ? endText(before) : shortEnd(found)} → ${to}`
    })
    const print = Effect.fnUntraced(function* ({ data }: { readonly data: Extended }) {
      const change = (yield* jsonFlag) ? "" : yield* describeChange(data)
      const previous = found && { previous_end_date: found.end_date }
      yield* printResult({ ...data, ...previous }, () => [
        printable(change),
        ...describeDryRun(given.dryRun, data),
      ])
    })
    if (given.dryRun) return yield* print(yield* extended(true))
    // A user who passes the expected date knows it.
    if (found && before && Option.isNone(given.expected) && !(yield* yesFlag)) {
      const to = goal.extend ?? (yield* extended(true)).data.new_end_date
      const isShorter = !given.neverShorten && to < before
      const day = found.through === null ? "" : ` (through ${found.through})`
      const dates = { from: `${endText(before)}${day}`, to }
      yield* requireConfirmation(shorteningOf(given.user, dates), !isShorter)
    }
    yield* print(yield* extended(false))
  }),
).pipe(
  Command.withDescription("Sets the end date of a member to a future one, or adds a duration"),
  Command.withExamples([
    { command: 'tenure members extend 1001 2027-12-31 --project shop --reason "invoice 117"' },
    { command: "tenure members extend 1001 +1mo --project shop" },
    {
      command: "tenure members extend 1001 +1mo --create --project shop",
      description: "A payment, also of who is no member yet",
    },
    {
      command:
        "tenure members extend 1001 2027-12-31 --project shop --expected 2026-12-31 --dry-run",
    },
  ]),
)

const pause = Command.make(
  "pause",
  {
    user: commandsUserId,
    until: untilFlag,
    through: throughFlag.pipe(
      Flag.withDescription("The last whole day of the pause, as a day in --until says, too"),
    ),
    timeZone: timeZoneFlag.pipe(
      Flag.withDescription(
        "The IANA time zone in which the day ends; by default, that of the project",
      ),
    ),
    project,
    reason: commandsReason,
  },
  Effect.fnUntraced(function* (given) {
    const isEndless = Option.isNone(given.until) && Option.isNone(given.through)
    if (isEndless && Option.isSome(given.timeZone)) {
      return yield* usageFailure("--time-zone is for a day: add --until or --through.")
    }
    const end: PauseEnd = isEndless
      ? {}
      : yield* pauseEndOf(
          yield* requireOne("Give either --until or --through.", given.until, given.through),
          given,
        )
    yield* callAndPrintMember(given.project, ({ memberships }, options) =>
      memberships.pause(
        {
          project_id: given.project,
          user_id: given.user,
          ...end,
          reason: getOrUndefined(given.reason),
        },
        options,
      ),
    )
  }),
).pipe(
  Command.withDescription(
    "Pauses an active membership: its end date stands meanwhile, and is later afterwards by the time paused",
  ),
  Command.withExamples([
    {
      command: "tenure members pause 1001 --project shop",
      description: "Until it is resumed",
    },
    {
      command: 'tenure members pause 1001 --through 2027-08-31 --reason "summer" --project shop',
    },
    { command: "tenure members pause 1001 --until +30d --project shop" },
  ]),
)

const resume = Command.make(
  "resume",
  { user: commandsUserId, project, reason: commandsReason },
  (given) =>
    callAndPrintMember(given.project, ({ memberships }, options) =>
      memberships.resume(
        {
          project_id: given.project,
          user_id: given.user,
          reason: getOrUndefined(given.reason),
        },
        options,
      ),
    ),
).pipe(
  Command.withDescription("Ends the pause of a membership"),
  Command.withExamples([{ command: "tenure members resume 1001 --project shop" }]),
)

const to = Argument.String("to").pipe(
  Argument.withDescription("The other user id, with or without a membership"),
)

const move = Command.make(
  "move",
  { user: commandsUserId, to, project, reason: commandsReason },
  (given) =>
    callAndPrintDone(
      ({ memberships }, options) =>
        memberships.move(
          {
            project_id: given.project,
            user_id: given.user,
            to: given.to,
            reason: getOrUndefined(given.reason),
          },
          options,
        ),
      ({ end_date }) =>
        `Moved the membership of ${given.user} to ${given.to}. End date: ${endText(end_date)}`,
    ),
).pipe(
  Command.withDescription(
    "Moves a membership to another user id. If both have one, the later end date stays",
  ),
  Command.withExamples([
    { command: 'tenure members move 1001 1002 --reason "merged accounts" --project shop' },
  ]),
)

const erase = booleanFlag("erase", "Also removes the user id from the history and from events")

const endMember = Effect.fnUntraced(function* (given: {
  readonly user: string
  readonly project: string
  readonly erase: boolean
}) {
  if (given.erase) yield* requireConfirmation(`Erase every trace of ${given.user}?`)
  yield* callAndPrintDone(
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
})

const end = Command.make("end", { user: commandsUserId, project, erase }, endMember).pipe(
  Command.withDescription("Ends a membership"),
  Command.withExamples([
    { command: "tenure members end 1001 --project shop" },
    { command: "tenure members end 1001 --project shop --erase --yes" },
  ]),
)

const eraseCommand = Command.make("erase", { user: commandsUserId, project }, (given) =>
  endMember({ ...given, erase: true }),
).pipe(
  Command.withDescription(
    "Ends a membership, and removes the user id from the history and from events: members end --erase",
  ),
  Command.withExamples([{ command: "tenure members erase 1001 --project shop --yes" }]),
)

const history = Command.make("history", { user: commandsUserId, project, ...auditFlags }, (given) =>
  printList(
    ({ memberships }) =>
      memberships.history({
        ...auditFilter(given),
        project_id: given.project,
        user_id: given.user,
      }),
    changeOf,
  ),
).pipe(
  Command.withDescription("Lists the changes of a member, newest first"),
  Command.withExamples([
    { command: "tenure members history 1001 --project shop" },
    { command: "tenure members history 1001 --project shop --no-announcements" },
  ]),
)

/** The command. */
export const membersCommand = Command.make("members").pipe(
  Command.withDescription("Members of a project"),
  Command.withSubcommands([
    list,
    get,
    grant,
    update,
    extend,
    extendSomeCommand,
    pause,
    resume,
    move,
    end,
    eraseCommand,
    endsCommand,
    history,
    whyCommand,
    bulkExtensionsCommand,
    undoCommand,
    importMembersCommand,
    exportMembersCommand,
  ]),
  Command.withExamples([...list.examples, ...extend.examples, ...importMembersCommand.examples]),
  connected,
)
