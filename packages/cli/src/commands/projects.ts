/** `tenure projects`, `tenure audit` and `tenure status`. */

import type { AuditRow, Status } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { callApi, listed } from "../support/api.ts"
import { auditFilter, auditFlags, auditedUser } from "../support/audit-flags.ts"
import { announcementsOf, describeDryRun, dryRunFlag } from "../support/dry-run.ts"
import { usageFailure } from "../support/failure.ts"
import {
  findProject,
  namedProject,
  parseDuration,
  projectPlace,
  reason,
  requireProject,
} from "../support/flags.ts"
import { requireConfirmation, yesFlag } from "../support/input.ts"
import {
  callAndPrintDone,
  callAndPrintRecord,
  changeOf,
  connected,
  printList,
  printRecord,
  printResult,
} from "../support/output.ts"
import { layOutOne, pluralize } from "../support/text.ts"
import { outputFlag, writeMembers } from "./members-export.ts"
import { type ExportRecord, exportBulkExtension, exportWebhook } from "./project-export.ts"

const list = Command.make("list", {}, () =>
  printList(
    ({ projects }) => projects.list({ limit: 1000 }),
    (project) => ({ ...project }),
  ),
).pipe(
  Command.withDescription("Lists the projects that the key opens"),
  Command.withExamples([{ command: "tenure projects list --json" }]),
)

const get = Command.make(
  "get",
  { place: projectPlace },
  Effect.fnUntraced(function* ({ place }) {
    const project = yield* requireProject(place)
    const { data: found } = yield* callApi(({ projects }, options) =>
      projects.get({ project_id: project }, options),
    )
    const today = new Date(yield* Clock.currentTimeMillis).toISOString().slice(0, 10)
    const { data: counts } = yield* callApi(({ memberships }, options) =>
      memberships.ends({ project_id: project, from: today, to: today }, options),
    )
    const { active, ends_in_7_days, ends_today, expired, overdue, paused } = counts
    const figures = { active, overdue, paused, expired, ends_today, ends_in_7_days }
    yield* printRecord({ ...found, ...figures }, (row) => row)
  }),
).pipe(
  Command.withDescription("Shows a project, and how many members are active or end soon"),
  Command.withExamples([{ command: "tenure projects get shop" }]),
)

const nameless = (command: string) =>
  `Missing required argument: project. See tenure projects ${command} --help`

const create = Command.make(
  "create",
  { place: namedProject },
  Effect.fnUntraced(function* ({ place }) {
    const project = yield* requireProject(place, nameless("create"))
    const existed = yield* Effect.isSuccess(
      callApi(({ projects }, options) => projects.get({ project_id: project }, options)),
    )
    yield* callAndPrintDone(
      ({ projects }, options) => projects.create({ project_id: project }, options),
      existed ? `The project ${project} existed already.` : `Created the project ${project}.`,
    )
  }),
).pipe(
  Command.withDescription("Creates a project, unless it exists"),
  Command.withExamples([{ command: "tenure projects create shop" }]),
)

const timeZone = Flag.String("time-zone").pipe(
  Flag.withMetavar("NAME"),
  Flag.withDescription("The IANA time zone in which whole days begin and end; no end date moves"),
  Flag.optional,
)

const isNone = (text: string): boolean => text.toLowerCase() === "none"

const grace = Flag.String("grace").pipe(
  Flag.filterMap(
    (text) => (isNone(text) ? Option.some(null) : Option.fromNullishOr(parseDuration(text))),
    () => "a duration, such as P7D or +7d, or none",
  ),
  Flag.withMetavar("DURATION"),
  Flag.withDescription(
    "For how long members are still active after their end dates, such as P7D or +7d, or none; past ends count, too",
  ),
  Flag.optional,
)

const update = Command.make(
  "update",
  {
    place: projectPlace,
    timeZone,
    grace,
    reason: reason.pipe(Flag.withDescription("Why, in up to 500 characters, for the audit trail")),
    dryRun: dryRunFlag,
  },
  Effect.fnUntraced(function* (given) {
    const project = yield* requireProject(given.place)
    if (Option.isNone(given.timeZone) && Option.isNone(given.grace)) {
      return yield* usageFailure("Say what to change: --time-zone NAME or --grace DURATION.")
    }
    const updated = (dry_run: boolean) =>
      callApi(({ projects }, options) =>
        projects.update(
          {
            project_id: project,
            time_zone: Option.getOrUndefined(given.timeZone),
            grace: Option.getOrUndefined(given.grace),
            reason: Option.getOrUndefined(given.reason),
            ...(dry_run && { dry_run }),
          },
          options,
        ),
      )
    if (Option.isSome(given.grace) && !given.dryRun && !(yield* yesFlag)) {
      const { data: tried } = yield* updated(true)
      const { announcements, would_expire = 0 } = tried
      const question = [
        `${pluralize(would_expire, "member")} of ${project} would expire at once.`,
        ...announcementsOf(announcements),
        "Change the grace?",
      ]
      yield* requireConfirmation(question.join(" "), would_expire === 0)
    }
    const { data } = yield* updated(given.dryRun)
    yield* printResult(data, () => {
      const { announcements: _, ...row } = data
      return [...layOutOne(row), ...describeDryRun(given.dryRun, data)]
    })
  }),
).pipe(
  Command.withDescription("Changes settings of a project"),
  Command.withExamples([
    { command: "tenure projects update shop --time-zone Europe/Berlin" },
    {
      command: "tenure projects update shop --grace P7D --dry-run",
      description: "How many expired members would be active again",
    },
  ]),
)

const remove = Command.make(
  "delete",
  { place: namedProject },
  Effect.fnUntraced(function* ({ place }) {
    const project = yield* requireProject(place, nameless("delete"))
    const { data } = yield* callApi(({ projects }, options) =>
      projects.get({ project_id: project }, options),
    )
    const { memberships, webhooks } = data
    yield* requireConfirmation(
      `Delete ${project} with ${pluralize(memberships, "membership")}, ${pluralize(webhooks, "webhook")} and all events?`,
    )
    yield* callAndPrintDone(
      (client, options) => client.projects.delete({ project_id: project }, options),
      `Deleted ${project}.`,
    )
  }),
).pipe(
  Command.withDescription("Deletes a project with everything in it"),
  Command.withExamples([{ command: "tenure projects delete shop" }]),
)

const exportProject = Command.make(
  "export",
  { place: projectPlace, output: outputFlag },
  Effect.fnUntraced(function* (given) {
    const project_id = yield* requireProject(given.place)
    const exported_at = new Date(yield* Clock.currentTimeMillis).toISOString()
    const { data: project } = yield* callApi((client, options) =>
      client.projects.get({ project_id }, options),
    )
    const { data: webhooks } = yield* callApi((client, options) =>
      client.webhooks.health({ project_id }, options),
    )
    const bulkExtensions = yield* Stream.runCollect(
      listed(({ memberships }) => memberships.bulkExtensions({ project_id, limit: 1000 })),
    )
    const records: ReadonlyArray<ExportRecord> = [
      {
        record: "project",
        project_id,
        exported_at,
        time_zone: project.time_zone,
        grace: project.grace,
      },
      ...[...bulkExtensions].map(exportBulkExtension).toReversed(),
      ...webhooks.map(exportWebhook),
    ]
    const head = records.map((record) => `${JSON.stringify(record)}\n`).join("")
    const path = Option.getOrElse(given.output, () => "")
    yield* writeMembers(project_id, { path, as: "ndjson" }, head)
  }),
).pipe(
  Command.withDescription(
    "Writes a project as NDJSON: its members, webhooks without secrets, and bulk extensions",
  ),
  Command.withExamples([
    { command: "tenure projects export shop -o shop.ndjson" },
    { command: "tenure projects export shop | tenure dev --from - --at +30d" },
  ]),
)

/** The command. */
export const projectsCommand = Command.make("projects").pipe(
  Command.withDescription("Projects"),
  Command.withSubcommands([list, get, create, update, remove, exportProject]),
  Command.withExamples([...create.examples, ...list.examples]),
  connected,
)

/** Prints a change and its subject on one line. */
const rowOf = ({ subject, user_id, ...change }: AuditRow) => {
  const { action, at, ...rest } = changeOf(change)
  return { at, action, of: user_id ?? subject, ...rest }
}

/** The command. */
export const auditCommand = Command.make(
  "audit",
  { place: projectPlace, ...auditFlags, user: auditedUser },
  Effect.fnUntraced(function* (given) {
    const project_id = Option.getOrUndefined(findProject(given.place))
    const user_id = Option.getOrUndefined(given.user)
    const search = { ...auditFilter(given), limit: 1000 }
    if (project_id === undefined && user_id !== undefined) {
      return yield* usageFailure("Name the project of the --user.")
    }
    yield* printList(
      ({ audit, projects }) =>
        project_id === undefined
          ? audit.list(search)
          : projects.audit({ ...search, project_id, user_id }),
      rowOf,
    )
  }),
).pipe(
  Command.withDescription(
    "Lists who changed what in a project, and why, newest first; without one, changes of projects and API keys",
  ),
  Command.withExamples([
    { command: "tenure audit shop --since 2027-01-31 --no-announcements" },
    {
      command: "tenure audit shop --key 6ba7b810-9dad-41d1-80b4-00c04fd430c8 --action extended",
      description: "What an API key has extended",
    },
    { command: "tenure audit", description: "Who made and deleted projects and API keys" },
  ]),
  connected,
)

const ageOf = (millis: number | null | undefined): string | null =>
  millis === null || millis === undefined ? null : `${millis} ms`

const statusRowOf = ({
  backlog,
  disabled_webhooks,
  failed_deliveries,
  rate_limiting,
  stores,
  suspended_keys,
  versions,
}: Status) => {
  const broken = Object.entries(stores).filter(([, isWell]) => !isWell)
  return {
    version: versions.tenure,
    stores: broken.length === 0 ? "all answer" : `no answer: ${broken.map(([name]) => name)}`,
    waiting_deliveries: backlog?.waiting,
    oldest_due_for: ageOf(backlog?.due_for_ms),
    late_for: ageOf(backlog?.late_for_ms),
    given_up: failed_deliveries,
    disabled_webhooks,
    rate_limiting,
    suspended_keys,
  }
}

/** The command. */
export const statusCommand = Command.make("status", {}, () =>
  callAndPrintRecord((client, options) => client.status.get({}, options), statusRowOf),
).pipe(
  Command.withDescription("Shows how a server and its stores are doing"),
  Command.withExamples([{ command: "tenure status --json" }]),
  connected,
)
