/** Reads the lines of a file, one after the other, however large it is. */

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

// The most bytes of a line. Without a limit, a file without line feeds would take all memory.
const mostBytes = 1 << 20

const lineFeed = 0x0a

/** Splits bytes at line feeds alone: JSON texts may contain all other separators of lines. */
async function* textsOf(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Array<Buffer> = []
  let bytes = 0
  let line = 1
  const add = (part: Buffer): void => {
    parts.push(part)
    bytes += part.length
    if (bytes > mostBytes)
      throw new Unreadable(`Line ${line} is longer than 1 MiB, so it cannot be a member`)
  }
  const take = (): string => {
    const text = Buffer.concat(parts).toString()
    parts = []
    bytes = 0
    return line++ === 1 ? text.replace(/^\uFEFF/, "") : text
  }
  for await (const chunk of source) {
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      add(chunk.subarray(start, end))
      yield take()
      start = end + 1
    }
    add(chunk.subarray(start))
  }
  yield take()
}

async function* ofNdjson(source: Readable): AsyncGenerator<Line.Line> {
  let line = 0
  for await (const text of textsOf(source)) {
    line += 1
    if (text.trim() !== "") yield Line.ofJson(line, text.trimEnd())
  }
}

/** Reads lines. Throws `Unreadable` if what follows cannot be read. */
export const read = (source: Readable, format: Format): AsyncGenerator<Line.Line> =>
  format === "csv" ? ofCsv(source) : ofNdjson(source)
