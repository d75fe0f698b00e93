/** `tenure export` and `tenure import --all`: everything, from one database to another. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Place from "../connection/Place.ts"
import { usage } from "../Failure.ts"
import { toggle } from "../input/toggle.ts"
import * as Output from "../output/Output.ts"

const other = (description: string) =>
  Argument.String("place").pipe(
    Argument.withDescription(
      `${description}: file:FOLDER, the name of a profile, or a URL without a password`,
    ),
  )

const move = Effect.fnUntraced(function* (from: string, to: string, schema: string | undefined) {
  const upkeep = yield* Effect.promise(() => import("./upkeep.ts"))
  yield* Output.record(yield* upkeep.move(from, to, schema), (rows) => ({ ...rows }))
})

/** `tenure export`. */
export const exportAll = Command.make(
  "export",
  { to: other("The database to fill, which must be empty") },
  Effect.fnUntraced(function* ({ to }) {
    const { schema, url } = yield* Place.findDatabase
    yield* move(url, yield* Place.otherDatabase(to), schema)
  }),
).pipe(
  Command.withDescription(
    "Copies everything, as it is at one moment, to another database, and compares both",
  ),
  Command.withExamples([
    { command: "tenure export file:./backup --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([Output.Json, ...Place.flags]),
)

/** `tenure import --all`. */
export const importAll = Command.make(
  "import",
  {
    from: other("The database to copy"),
    all: toggle("all", "Everything: for members alone, see tenure members import"),
  },
  Effect.fnUntraced(function* ({ all, from }) {
    if (!all) return yield* usage("Give --all, or use tenure members import for members alone.")
    const { schema, url } = yield* Place.findDatabase
    yield* move(yield* Place.otherDatabase(from), url, schema)
  }),
).pipe(
  Command.withDescription(
    "Copies everything, as it is at one moment, from another database to an empty one, and compares both",
  ),
  Command.withExamples([
    { command: "tenure import --all file:./data --database postgres://owner@localhost/app" },
  ]),
  Command.withGlobalFlags([Output.Json, ...Place.flags]),
)
