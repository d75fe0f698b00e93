/** The command, for a list of arguments. */

import { readFileSync } from "node:fs"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { tenure } from "./command.ts"
import { report } from "./output/report.ts"
import * as Usage from "./output/Usage.ts"

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
)

const settings = (isJson: boolean) =>
  Layer.merge(
    CliOutput.layerPresenter(Usage.presenter(isJson)),
    CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  )

/** Runs the command. Fails with an error that has the exit code, when it has told why. */
export const run = (args: ReadonlyArray<string>) => {
  // What is wrong may be the command line, of which nothing more is known.
  const isJson = args.includes("--json")
  return Command.runWith(
    tenure,
    manifest,
  )(args).pipe(
    Effect.tapError((error) => report(error, isJson)),
    Effect.mapError(Usage.withExitCode),
    Effect.provide(settings(isJson)),
  )
}
