/** `tenure projects`. */

import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { call } from "./connection/Api.ts"
import { connected } from "./connection/connected.ts"
import { confirm, yes } from "./input/Confirmation.ts"
import { projectId } from "./input/flags.ts"
import { counted } from "./output/counted.ts"
import * as Output from "./output/Output.ts"

const list = Command.make("list", {}, () =>
  Output.list(
    ({ projects }) => projects.list({ limit: 1000 }),
    (project) => ({ ...project }),
  ),
).pipe(
  Command.withDescription("Lists the projects that the key opens"),
  Command.withExamples([{ command: "tenure projects list --json" }]),
)

const get = Command.make("get", { project: projectId }, ({ project }) =>
  Output.callAndRecord(
    ({ projects }, options) => projects.get({ project_id: project }, options),
    (found) => ({ ...found }),
  ),
).pipe(
  Command.withDescription("Shows a project"),
  Command.withExamples([{ command: "tenure projects get shop" }]),
)

const create = Command.make("create", { project: projectId }, ({ project }) =>
  Output.callAndSay(
    ({ projects }, options) => projects.create({ project_id: project }, options),
    `The project ${project} exists.`,
  ),
).pipe(
  Command.withDescription("Creates a project, unless it exists"),
  Command.withExamples([{ command: "tenure projects create shop" }]),
)

const remove = Command.make(
  "delete",
  { project: projectId, yes },
  Effect.fnUntraced(function* ({ project, yes: isYes }) {
    const { data } = yield* call(({ projects }, options) =>
      projects.get({ project_id: project }, options),
    )
    const { memberships, webhooks } = data
    yield* confirm(
      `Delete ${project} with ${counted(memberships, "membership")}, ${counted(webhooks, "webhook")} and all events?`,
      isYes,
    )
    yield* Output.callAndSay(
      (client, options) => client.projects.delete({ project_id: project }, options),
      `Deleted ${project}.`,
    )
  }),
).pipe(
  Command.withDescription("Deletes a project with everything in it"),
  Command.withExamples([{ command: "tenure projects delete shop" }]),
)

/** The command. */
export const projects = Command.make("projects").pipe(
  Command.withDescription("Projects"),
  Command.withSubcommands([list, get, create, remove]),
  Command.withExamples([...create.examples, ...list.examples]),
  connected,
)
