/** The five comparisons with alternatives: a question of a user each, and how Tenure compares. */

import type { Row } from "../measurement.ts"
import { bulkRow } from "../sections/bulk-update.ts"
import { takeOf } from "../sections/limiter-postgres.ts"
import { ownTableRows } from "../sections/own-table.ts"
import { queueRows } from "../sections/queues.ts"

/** A comparison. */
interface Question {
  readonly title: string
  readonly measured: string
  readonly unit: "/s" | "ms"
}

const questions: ReadonlyArray<Question> = [
  { title: "Extensions a second over HTTP", measured: ownTableRows.answered, unit: "/s" },
  { title: "Rate-limited requests a second", measured: takeOf.some, unit: "/s" },
  { title: "Notifications a second", measured: queueRows.rate, unit: "/s" },
  { title: "99th percentile of a notification’s delay", measured: queueRows.p99, unit: "ms" },
  { title: "Bulk extension of a million members", measured: bulkRow, unit: "ms" },
]

/** An alternative, and how many times better Tenure is: less than 1 if it is worse. */
interface Alternative {
  readonly name: string
  readonly figure: number
  readonly better: number
}

/** An answered question. The best alternative is first. */
export interface Comparison extends Question {
  readonly figure: number
  readonly alternatives: ReadonlyArray<Alternative>
}

const comparisonOf = (question: Question, rows: ReadonlyArray<Row>): Comparison | undefined => {
  const { measured, unit } = question
  const found = rows.filter((row) => row.measured === measured && row.unit === unit)
  const [first] = found
  if (first === undefined) return undefined
  const alternatives = found.flatMap(({ figure, yardstick }): ReadonlyArray<Alternative> => {
    if (yardstick === undefined) return []
    const ratio = figure / yardstick.figure
    return [{ ...yardstick, better: unit === "/s" ? ratio : 1 / ratio }]
  })
  return {
    ...question,
    figure: first.figure,
    alternatives: alternatives.toSorted((one, other) => one.better - other.better),
  }
}

/** All comparisons that were measured. */
export const comparisonsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Comparison> =>
  questions.flatMap((question) => comparisonOf(question, rows) ?? [])

/** Questions that were not measured. */
export const unansweredOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  questions
    .filter((question) => comparisonOf(question, rows) === undefined)
    .map(({ title }) => title)

/** Prints a ratio with as many digits as it is worth. */
export const timesOf = (ratio: number): string => {
  const places = ratio < 2 ? 2 : ratio < 10 ? 1 : 0
  const digits = { minimumFractionDigits: places, maximumFractionDigits: places }
  return `${ratio.toLocaleString("en", digits)} ×`
}
