/** `tenure init --agents`: a section about Tenure in the file agents read first. */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { type Failure, operationFailed } from "../support/failure.ts"
import { fileProblem } from "../support/input.ts"
import { openDraft } from "../support/whole-file.ts"

const file = "AGENTS.md"

const begin = "<!-- tenure: begin; tenure init --agents writes what follows anew -->"
const end = "<!-- tenure: end -->"

/**
 * Puts a section into a text: replaces an earlier one, otherwise appends it.
 *
 * @returns `undefined` if the text has only one mark, or the end before the beginning
 */
const putSection = (text: string, section: string): string | undefined => {
  const marked = `${begin}\n\n${section.trim()}\n\n${end}`
  const [start, stop] = [text.indexOf(begin), text.indexOf(end)]
  if (start === -1 && stop === -1) {
    const before = text.trimEnd()
    return before === "" ? `${marked}\n` : `${before}\n\n${marked}\n`
  }
  return start === -1 || stop < start
    ? undefined
    : text.slice(0, start) + marked + text.slice(stop + end.length)
}

const readIfAny = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  return (yield* files.exists(path)) ? yield* files.readFileString(path) : ""
})

/** How the file was left. */
export type AgentsOutcome = "unchanged" | "written"

/** Writes the section, unless the file has it already. */
export const writeAgentsGuide = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const template = new URL("../../templates/agents.md", import.meta.url)
  const section = yield* files.readFileString(yield* Effect.orDie(paths.fromFileUrl(template)))
  const before = yield* readIfAny(file)
  const after = putSection(before, section)
  if (after === undefined)
    return yield* operationFailed(
      `${file} has only one of the lines "${begin}" and "${end}", in this order: restore or remove both.`,
    )
  if (after === before) return "unchanged" satisfies AgentsOutcome
  const draft = yield* openDraft(file)
  yield* draft.write(after)
  yield* draft.commit
  return "written" satisfies AgentsOutcome
}).pipe(
  Effect.scoped,
  Effect.catchTag("PlatformError", (error): Effect.Effect<never, Failure> =>
    Effect.fail(operationFailed(fileProblem(file, error))),
  ),
)
