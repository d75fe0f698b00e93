/** Commands that use the API. */

import * as Command from "effect/cli/Command"
import { Json } from "../output/Output.ts"
import { Api } from "./Api.ts"
import * as Place from "./Place.ts"

/** Adds the API to a command and its subcommands, with the flags that say where it is. */
export const connected = <const Name extends string, Input, E, R, ContextInput>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
) => command.pipe(Command.provide(Api.layer), Command.withGlobalFlags([Json, ...Place.flags]))
