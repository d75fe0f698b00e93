/** Writes a project's members to a file or to standard output. */

import type { Membership } from "@tenure/client"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { callApi, listed } from "../support/api.ts"
import { operationFailed } from "../support/failure.ts"
import { fileProblem } from "../support/input.ts"
import { makeProgress } from "../support/progress.ts"
import { endText } from "../support/text.ts"
import { openDraft } from "../support/whole-file.ts"

/** How members can be written. */
export const formats = ["csv", "ndjson"] as const

/** How members are written. */
export type Format = (typeof formats)[number]

/** Derives the format from the file name; CSV by default. */
const formatOf = (path: string): Format => (/\.(?:ndjson|jsonl)$/i.test(path) ? "ndjson" : "csv")

/** The export's format: JSON lines for programs reading standard output. */
export const exportFormat = (path: string, isJson: boolean): Format =>
  path === "" && isJson ? "ndjson" : formatOf(path)

/** The export's destination. */
export const outputFlag = Flag.String("output").pipe(
  Flag.withAlias("o"),
  Flag.withMetavar("FILE"),
  Flag.withDescription("The file to write; standard output by default"),
  Flag.optional,
)

/** Quotes a CSV cell's text if necessary. */
const cell = (text: string): string =>
  /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** Prints metadata as a CSV cell, as an import reads it. */
const metadataCell = (metadata: Membership["metadata"]): string =>
  Object.keys(metadata).length === 0 ? "" : cell(JSON.stringify(metadata))

const lineOf: Readonly<Record<Format, (member: Membership) => string>> = {
  csv: ({ end_date, metadata, state, user_id }) =>
    `${cell(user_id)},${endText(end_date)},${state},${metadataCell(metadata)}\n`,
  ndjson: (member) => `${JSON.stringify(member)}\n`,
}

/** A file's first line. */
export const headOf: Readonly<Record<Format, string>> = {
  csv: "user_id,end_date,state,metadata\n",
  ndjson: "",
}

// The API's maximum.
const pageSize = 1000

/** Replaces a file once its whole text is known. */
const writeTo = Effect.fnUntraced(function* <E, R>(
  path: string,
  texts: Stream.Stream<string, E, R>,
) {
  const { commit, write } = yield* openDraft(path)
  yield* Stream.runForEach(texts, write)
  yield* commit
}, Effect.scoped)

/** An export's destination and format. */
interface Destination {
  /** A file's path; empty for standard output. */
  readonly path: string
  readonly as: Format
}

/**
 * Writes all members in a project.
 *
 * @param head - the text before them
 */
export const writeMembers = Effect.fnUntraced(function* (
  project_id: string,
  { as, path }: Destination,
  head: string,
) {
  const { data } = yield* callApi(({ projects }, options) => projects.get({ project_id }, options))
  const display = makeProgress(process.stderr, "members")
  const start = yield* Clock.currentTimeMillis
  let items = 0
  const texts = listed(({ memberships }) => memberships.list({ project_id, limit: pageSize })).pipe(
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
  const all = Stream.concat(Stream.make(head), texts)
  yield* (path === "" ? Stream.run(all, stdout()) : writeTo(path, all)).pipe(
    Effect.ensuring(Effect.sync(display.end)),
    Effect.catchTag("PlatformError", (error) =>
      Effect.fail(operationFailed(fileProblem(path, error))),
    ),
  )
})
