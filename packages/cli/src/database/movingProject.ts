/** `tenure move`: a project, from one of several databases to another. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Place from "../connection/Place.ts"
import { projectId } from "../input/flags.ts"
import { toggle } from "../input/toggle.ts"
import * as Output from "../output/Output.ts"

const to = Argument.String("place").pipe(
  Argument.withDescription(
    "The database to move it to: the name of a profile, or a URL without a password",
  ),
)

const cancel = toggle("cancel", "Goes back to the beginning of a move that has stopped")

/** The command. */
export const moveProject = Command.make(
  "move",
  { project: projectId, to, cancel },
  Effect.fnUntraced(function* ({ cancel: isCancelled, project, to: place }) {
    const { schema, url } = yield* Place.findDatabase
    const target = yield* Place.otherDatabase(place)
    const upkeep = yield* Effect.promise(() => import("./upkeep.ts"))
    yield* upkeep.moveProject({ from: url, to: target, schema, project, isCancelled })
    yield* Output.done(
      { project, moved: !isCancelled },
      isCancelled
        ? `The project ${project} is where it was.`
        : `Moved ${project}: every table has the same rows of it as before.`,
    )
  }),
).pipe(
  Command.withDescription(
    "Moves a project to another database, while servers run. It can be repeated whenever it stops",
  ),
  Command.withExamples([
    { command: "tenure move shop postgres://owner@db2/app --database postgres://owner@db1/app" },
    {
      command:
        "tenure move shop postgres://owner@db2/app --database postgres://owner@db1/app --cancel",
    },
  ]),
  Command.withGlobalFlags([Output.Json, ...Place.flags]),
)
