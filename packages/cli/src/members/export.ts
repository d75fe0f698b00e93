/** `tenure members export`. */

import type { Membership } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { call, listed } from "../connection/Api.ts"
import { failed } from "../Failure.ts"
import { fileProblem } from "../input/fileProblem.ts"
import { project } from "../input/flags.ts"
import * as Output from "../output/Output.ts"
import * as Progress from "../output/Progress.ts"
import * as WholeFile from "../output/WholeFile.ts"
import { exportFormat, type Format, format } from "./formats.ts"

const output = Flag.String("output").pipe(
  Flag.withAlias("o"),
  Flag.withMetavar("FILE"),
  Flag.withDescription("The file to write; standard output by default"),
  Flag.optional,
)

// Neither ids nor dates have to be quoted.
const lineOf: Readonly<Record<Format, (member: Membership) => string>> = {
  csv: ({ end_date, state, user_id }) => `${user_id},${end_date},${state}\n`,
  ndjson: (member) => `${JSON.stringify(member)}\n`,
}

const headOf: Readonly<Record<Format, string>> = { csv: "user_id,end_date,state\n", ndjson: "" }

// The most of a page.
const pageSize = 1000

/** Replaces a file, once all of its text is known. */
const writeTo = Effect.fnUntraced(function* <E, R>(
  path: string,
  texts: Stream.Stream<string, E, R>,
) {
  const { commit, write } = yield* WholeFile.open(path)
  yield* Stream.runForEach(texts, write)
  yield* commit
}, Effect.scoped)

/** The command. */
export const exportMembers = Command.make(
  "export",
  { project, format, output },
  Effect.fnUntraced(function* (given) {
    const path = Option.getOrElse(given.output, () => "")
    const isJson = yield* Output.Json
    const as = Option.getOrElse(given.format, () => exportFormat(path, isJson))
    const { data } = yield* call(({ projects }, options) =>
      projects.get({ project_id: given.project }, options),
    )
    const display = Progress.make(process.stderr, "members")
    const start = yield* Clock.currentTimeMillis
    let items = 0
    const texts = listed(({ memberships }) =>
      memberships.list({ project_id: given.project, limit: pageSize }),
    ).pipe(
      Stream.grouped(pageSize),
      Stream.mapEffect((members) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          items += members.length
          display.show({ done: items, of: data.memberships, items, millis: now - start })
          return members.map(lineOf[as]).join("")
        }),
      ),
    )
    const { stdout } = yield* Stdio.Stdio
    const all = Stream.concat(Stream.make(headOf[as]), texts)
    yield* (path === "" ? Stream.run(all, stdout()) : writeTo(path, all)).pipe(
      Effect.ensuring(Effect.sync(display.end)),
      Effect.catchTag("PlatformError", (error) => Effect.fail(failed(fileProblem(path, error)))),
    )
  }),
).pipe(
  Command.withDescription("Writes all members of a project as CSV or NDJSON"),
  Command.withExamples([{ command: "tenure members export --project shop -o members.csv" }]),
)
