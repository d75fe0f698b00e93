/** `tenure members import`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { failed } from "../../Failure.ts"
import { project } from "../../input/flags.ts"
import { counted } from "../../output/counted.ts"
import * as Output from "../../output/Output.ts"
import { format, formatOf } from "../formats.ts"

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
export const importMembers = Command.make(
  "import",
  { file, project, format, refused, run },
  Effect.fnUntraced(function* (given) {
    const path = Option.getOrElse(given.refused, () =>
      given.file === "-" ? "import.refused" : `${given.file}.refused`,
    )
    const importing = yield* Effect.promise(() => import("./run.ts"))
    const done = yield* importing.run({
      ...given,
      format: Option.getOrElse(given.format, () => formatOf(given.file)),
      refused: path,
    })
    yield* Output.record(done, (all) => ({ ...all }))
    if (done.refused > 0)
      return yield* failed(
        `${counted(done.refused, "line was", "lines were")} refused: see ${path}.`,
      )
  }),
).pipe(
  Command.withDescription(
    "Makes users members, or sets their end dates, from a CSV or NDJSON file with user_id and end_date",
  ),
  Command.withExamples([
    { command: "tenure members import members.csv --project shop" },
    { command: "zcat members.ndjson.gz | tenure members import - --format ndjson --project shop" },
  ]),
)
