/** Targets: the bounds that rows should keep, and whether they do. */

/**
 * A bound on a row's figure, on its ratio to the yardstick's figure, or on its difference to that
 * figure. A section declares it next to the row.
 */
export interface Target {
  readonly of: "figure" | "ratio" | "difference"
  readonly atLeast?: number
  readonly atMost?: number
  /** Whether it holds on any scale, because it does not depend on time. */
  readonly always?: boolean
  /** What a profile has shown: why it is missed, where it is. */
  readonly profile?: string
}

/** Whether a row keeps its target. A row without a target has none to keep. */
export type Verdict = "met" | "missed" | "none"

/** What a verdict depends on. */
export interface Aimed {
  readonly figure: number
  readonly yardstick?: { readonly figure: number }
  readonly target?: Target
}

const valueOf = ({ figure, yardstick }: Aimed, of: Target["of"]): number => {
  if (of === "figure") return figure
  if (yardstick === undefined) return NaN
  return of === "ratio" ? figure / yardstick.figure : figure - yardstick.figure
}

/** Judges a row. What could not be measured has missed its target. */
export const verdictOf = (row: Aimed): Verdict => {
  if (row.target === undefined) return "none"
  const { atLeast = -Infinity, atMost = Infinity, of } = row.target
  const value = valueOf(row, of)
  return value >= atLeast && value <= atMost ? "met" : "missed"
}
