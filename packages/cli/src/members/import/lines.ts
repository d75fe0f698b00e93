/** Reads the lines of a file, one after the other, however large it is. */

import { createInterface } from "node:readline"
import { pipeline, type Readable } from "node:stream"
import { CsvError, parse } from "csv-parse"
import type { Format } from "../formats.ts"
import * as Line from "./Line.ts"

/** The file cannot be read on. */
export class Unreadable extends Error {}

const columns = (titles: ReadonlyArray<string>): Array<string> => {
  const names = titles.map((title) => title.trim())
  for (const name of ["user_id", "end_date"])
    if (!names.includes(name))
      throw new Unreadable(`The first line must name the columns user_id and end_date: no ${name}`)
  return names
}

interface Row {
  readonly record: unknown
  readonly info: { readonly lines: number }
}

async function* ofCsv(source: Readable): AsyncGenerator<Line.Line> {
  // Whoever reads the rows gets the errors of the source.
  const rows: AsyncIterable<Row> = pipeline(
    source,
    parse({
      bom: true,
      columns,
      info: true,
      record_delimiter: ["\r\n", "\n"],
      skip_empty_lines: true,
      relax_column_count: true,
      // A quote that is never closed does not take all memory.
      max_record_size: 100_000,
    }),
    () => undefined,
  )
  try {
    for await (const { info, record } of rows) yield Line.ofFields(info.lines, record)
  } catch (error) {
    throw error instanceof CsvError ? new Unreadable(error.message) : error
  }
}

async function* ofNdjson(source: Readable): AsyncGenerator<Line.Line> {
  let line = 0
  const texts = createInterface({ input: source, crlfDelay: Infinity })
  source.once("error", () => texts.close())
  for await (const text of texts) {
    line += 1
    if (text.trim() !== "") yield Line.ofJson(line, text)
  }
  if (source.errored !== null) throw source.errored
}

/** Reads lines. Throws `Unreadable` if what follows cannot be read. */
export const read = (source: Readable, format: Format): AsyncGenerator<Line.Line> =>
  format === "csv" ? ofCsv(source) : ofNdjson(source)
