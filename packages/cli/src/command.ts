/** The command `tenure`, with its subcommands. */

import * as Command from "effect/cli/Command"
import { init } from "./init/command.ts"

/** The command. */
export const tenure = Command.make("tenure").pipe(
  Command.withDescription("Membership end dates in your backend."),
  Command.withSubcommands([init]),
)
