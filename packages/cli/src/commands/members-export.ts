/** Writes a project's members to a file or to standard output. */

import type { Membership } from "@tenure/client"
import { dayEndedAt } from "@tenure/core/internal"
import { parseTimeZone } from "@tenure/core/store"
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

/**
 * Returns when a membership ends, as an import restores it: by its last day and the time zone, if these give the same
 * instant.
 */
const endOf = (
  { end_date, through }: Membership,
  time_zone: string,
): Pick<Membership, "end_date"> | { readonly through: string; readonly time_zone: string } => {
  if (through === null || end_date === null) return { end_date }
  const zone = parseTimeZone(time_zone)
  const isSame = zone !== undefined && dayEndedAt(Date.parse(end_date), zone) === through
  return isSame ? { through, time_zone } : { end_date }
}

const lineOf: Readonly<Record<Format, (member: Membership, time_zone: string) => string>> = {
  csv: (member, time_zone) => {
    const { kept_day, metadata, paused_at, resumes_at, state, user_id } = member
    const end = endOf(member, time_zone)
    const dates =
      "through" in end ? ["", end.through, end.time_zone] : [endText(end.end_date), "", ""]
    const pause = [paused_at ?? "", resumes_at ?? ""]
    const cells = [cell(user_id), ...dates, kept_day ?? "", ...pause, state, metadataCell(metadata)]
    return `${cells.join(",")}\n`
  },
  ndjson: (member, time_zone) => {
    const { kept_day, metadata, paused_at, resumes_at, state, user_id } = member
    const line = {
      user_id,
      ...endOf(member, time_zone),
      ...(kept_day !== null && { kept_day }),
      ...(paused_at !== null && { paused_at }),
      ...(resumes_at !== null && { resumes_at }),
      state,
      metadata,
    }
    return `${JSON.stringify(line)}\n`
  },
}

/** A file's first line. */
export const headOf: Readonly<Record<Format, string>> = {
  csv: "user_id,end_date,through,time_zone,kept_day,paused_at,resumes_at,state,metadata\n",
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
        return members.map((member) => lineOf[as](member, data.time_zone)).join("")
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
