/** What sections measure: rows with targets, how thoroughly, and whether targets are met. */

import type { Database } from "./database.ts"
import type { Field, Ratio, Score } from "./rounds.ts"

/**
 * A bound on a row's figure, on its ratio to the yardstick's figure, or on its difference to that figure. A section
 * declares it next to the row.
 */
export interface Target {
  readonly of: "figure" | "ratio" | "difference"
  readonly atLeast?: number
  readonly atMost?: number
  /** Whether it holds on any scale, because it does not depend on time. */
  readonly always?: boolean
  /** Why it is missed, according to a profile. */
  readonly profile?: string
}

/** A line in the table. */
export interface Row {
  readonly measured: string
  readonly unit: string
  /** Tenure's figure. */
  readonly figure: number
  /** The figure that it is compared with. */
  readonly yardstick?: { readonly name: string; readonly figure: number }
  readonly target?: Target
}

/** Whether a row meets its target. A row without a target has none to meet. */
export type Verdict = "met" | "missed" | "none"

/** A row with all that follows from it. */
export interface Judged extends Row {
  readonly ratio: number | undefined
  readonly verdict: Verdict
}

export interface Findings {
  readonly rows: ReadonlyArray<Row>
}

/** How thoroughly to measure. */
export interface Settings {
  readonly rounds: number
  readonly seconds: number
  /** The first value, or the second in a smoke run. */
  readonly pick: <A>(thorough: A, smoke: A) => A
  /** Whether to measure sizes that take very long to fill. */
  readonly isLarge: boolean
  /** A database with an empty schema; one server for all who ask. */
  readonly database: () => Promise<Database>
}

/** A part that can be measured by its name. */
export interface Section {
  readonly name: string
  readonly measure: (settings: Settings) => Promise<Findings>
}

/** Judges a row. What could not be measured has missed its target. */
export const judged = (row: Row): Judged => {
  const { figure, target, yardstick } = row
  const beside = yardstick?.figure ?? NaN
  const { atLeast = -Infinity, atMost = Infinity, of = "figure" } = target ?? {}
  const value = { figure, ratio: figure / beside, difference: figure - beside }[of]
  const verdict = value >= atLeast && value <= atMost ? "met" : "missed"
  return {
    ...row,
    ratio: yardstick && figure / beside,
    verdict: target === undefined ? "none" : verdict,
  }
}

const views = {
  rate: { unit: "/s", of: ({ rate }: Score) => rate },
  time: { unit: "µs", of: ({ rate }: Score) => 1_000_000 / rate },
  cpu: { unit: "µs CPU", of: ({ cpu }: Score) => cpu },
}

/** A score's figure: operations per second, or an operation's time or processor time. */
export type View = keyof typeof views

/** One row for each peer. */
export const rowsOf = (
  measured: string,
  view: View,
  { peers, tenure }: Field<Score>,
  targets: Readonly<Record<string, Target>> = {},
): ReadonlyArray<Row> => {
  const { of, unit } = views[view]
  return peers.map((peer) => {
    const target = targets[peer.name]
    const yardstick = { name: peer.name, figure: of(peer) }
    return { measured, unit, figure: of(tenure), yardstick, ...(target && { target }) }
  })
}

/** A ratio between rates, and its confidence interval. */
export const ratioRows = (
  measured: string,
  { least, median, most }: Ratio,
  target: Target,
): ReadonlyArray<Row> => [
  { measured, unit: "×", figure: median, target },
  { measured: `${measured}: at least, with 95 % confidence`, unit: "×", figure: least },
  { measured: `${measured}: at most, with 95 % confidence`, unit: "×", figure: most },
]
