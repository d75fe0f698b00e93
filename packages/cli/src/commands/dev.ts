/** `tenure dev`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"

const folder = Argument.String("folder").pipe(
  Argument.withDescription("Keeps everything in a folder; without it, in memory until the end"),
  Argument.optional,
)

const port = Flag.Int("port").pipe(
  Flag.withDescription("The port to listen on; 0 takes a free one"),
  Flag.withDefault(3000),
)

/** The command. */
export const devCommand = Command.make(
  "dev",
  { folder, port },
  Effect.fnUntraced(function* (given) {
    const { runDevServer: run } = yield* Effect.promise(() => import("./dev-server.ts"))
    return yield* run(given)
  }),
).pipe(
  Command.withDescription(
    "Runs Tenure here to try it: the API, the console, and a receiver that prints verified events",
  ),
  Command.withExamples([{ command: "tenure dev" }, { command: "tenure dev ./data --port 4000" }]),
)
