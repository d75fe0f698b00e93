/** The results of sections: rows of one table, and curves. */

import type { Database } from "./database.ts"
import type { Ratio, Score } from "./rounds.ts"
import { type Target, type Verdict, verdictOf } from "./target.ts"

/** One line of the table. */
export interface Row {
  readonly measured: string
  readonly unit: string
  /** The figure of Tenure. */
  readonly figure: number
  /** The figure that it is compared with. */
  readonly yardstick?: { readonly name: string; readonly figure: number }
  readonly target?: Target
}

/** A row with all that follows from it. */
export interface Judged extends Row {
  readonly ratio: number | undefined
  readonly verdict: Verdict
}

/** How a figure grows. */
export interface Curve {
  readonly name: string
  /** The microseconds of one operation, for each size. */
  readonly points: ReadonlyArray<readonly [number, number]>
  /** What each size should keep, beside the smallest. */
  readonly target: Target
}

/** The results of a section. */
export interface Findings {
  readonly rows: ReadonlyArray<Row>
  readonly curves?: ReadonlyArray<Curve>
}

/** How thoroughly to measure. */
export interface Settings {
  readonly rounds: number
  readonly seconds: number
  /** The first value, or the second where it only counts that everything works. */
  readonly pick: <A>(thorough: A, smoke: A) => A
  /** Whether to measure sizes that take very long to fill. */
  readonly isLarge: boolean
  /** A database with an empty schema; one server for all who ask. */
  readonly database: () => Promise<Database>
}

/** A part of the program that can be asked for by its name. */
export interface Section {
  readonly name: string
  readonly measure: (settings: Settings) => Promise<Findings>
}

/** Works out the ratio, and whether the target is met. */
export const judged = (row: Row): Judged => ({
  ...row,
  ratio: row.yardstick && row.figure / row.yardstick.figure,
  verdict: verdictOf(row),
})

/** The figures of a score. */
const views = {
  rate: { unit: "/s", of: ({ rate }: Score) => rate },
  time: { unit: "µs", of: ({ rate }: Score) => 1_000_000 / rate },
  cpu: { unit: "µs CPU", of: ({ cpu }: Score) => cpu },
}

/** A figure of a score: operations per second, or the time or processor time of one operation. */
export type View = keyof typeof views

/** One row for each peer. */
export const rowsOf = (
  measured: string,
  view: View,
  { peers, tenure }: { readonly tenure: Score; readonly peers: ReadonlyArray<Score> },
  targets: Readonly<Record<string, Target>> = {},
): ReadonlyArray<Row> => {
  const { of, unit } = views[view]
  return peers.map((peer) => {
    const target = targets[peer.name]
    return {
      measured,
      unit,
      figure: of(tenure),
      yardstick: { name: peer.name, figure: of(peer) },
      ...(target && { target }),
    }
  })
}

/** A ratio of rates, and what it is between. */
export const ratioRows = (
  measured: string,
  { least, median, most }: Ratio,
  target: Target,
): ReadonlyArray<Row> => [
  { measured, unit: "×", figure: median, target },
  { measured: `${measured}: at least, with 95 % confidence`, unit: "×", figure: least },
  { measured: `${measured}: at most, with 95 % confidence`, unit: "×", figure: most },
]
