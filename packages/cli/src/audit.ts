/** `tenure audit`. */

import type { AuditRow } from "@tenure/client"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { listed } from "./connection/Api.ts"
import { connected } from "./connection/connected.ts"
import { date } from "./input/flags.ts"
import { changeOf } from "./output/change.ts"
import * as Output from "./output/Output.ts"

const project = Argument.String("project").pipe(
  Argument.withDescription(
    "The project whose members and webhooks were changed; without it, projects and API keys",
  ),
  Argument.optional,
)

const since = date("since", "Only changes since then")

/** The audit trail of a project, or of what belongs to none, newest first. */
const rows = (project_id: string | undefined) =>
  listed((client) =>
    project_id === undefined
      ? client.audit.list({ limit: 1000 })
      : client.projects.audit({ project_id, limit: 1000 }),
  )

/** A change in a line, with what was changed. */
const rowOf = ({ subject, user_id, ...change }: AuditRow) => {
  const { action, at, ...rest } = changeOf(change)
  return { at, action, of: user_id ?? subject, ...rest }
}

const isSince = (first: Option.Option<string>) => {
  const start = Option.match(first, { onNone: () => 0, onSome: Date.parse })
  return ({ at }: AuditRow): boolean => Date.parse(at) >= start
}

/** The command. */
export const audit = Command.make("audit", { project, since }, (given) =>
  Output.items(
    Stream.takeWhile(rows(Option.getOrUndefined(given.project)), isSince(given.since)),
    rowOf,
  ),
).pipe(
  Command.withDescription("Lists who changed what, and why, newest first"),
  Command.withExamples([
    { command: "tenure audit shop --since 2027-01-31" },
    { command: "tenure audit", description: "Who made and deleted projects and API keys" },
  ]),
  connected,
)
