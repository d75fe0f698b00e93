/** Shows how far a move has come: a bar on a terminal, and a line for each table elsewhere. */

import type { Progress } from "../moving/move.ts"

/** Shows progress. */
interface ProgressBar {
  readonly show: (progress: Progress) => void
  /** Leaves the line of the bar. */
  readonly end: () => void
}

/** What a progress is shown on. */
interface Output {
  readonly isTTY?: boolean
  readonly write: (text: string) => unknown
}

const width = 30

const barOf = ({ of, rows, table }: Progress): string => {
  const done = Math.floor((width * rows) / of)
  const percent = Math.floor((100 * rows) / of)
  return `[${"#".repeat(done)}${"-".repeat(width - done)}] ${percent} % ${table}`
}

// Back to the beginning of the line, which is empty then.
const clear = "\r\u001B[K"

/** Makes a bar. */
export const make = (output: Output): ProgressBar => {
  let table: string | undefined
  if (output.isTTY === true)
    return {
      show: (progress) => output.write(`${clear}${barOf(progress)}`),
      end: () => output.write(clear),
    }
  return {
    show: (progress) => {
      if (progress.table === table) return
      table = progress.table
      output.write(`${table}…\n`)
    },
    end: () => undefined,
  }
}
