/** The formats of files with members. */

import * as Flag from "effect/cli/Flag"

const formats = ["csv", "ndjson"] as const

/** How members are written. */
export type Format = (typeof formats)[number]

/** The format that the name of a file tells; CSV if it tells none. */
export const formatOf = (path: string): Format =>
  /\.(?:ndjson|jsonl)$/i.test(path) ? "ndjson" : "csv"

/** The format of an export: what programs read from standard output is JSON. */
export const exportFormat = (path: string, isJson: boolean): Format =>
  path === "" && isJson ? "ndjson" : formatOf(path)

/** The flag. */
export const format = Flag.Literals("format", formats).pipe(
  Flag.withDescription("How members are written; by default, the name of the file tells"),
  Flag.optional,
)
