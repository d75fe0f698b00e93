/** Bars of charts, made from rows and curves. More is better in all of them. */

import type { Curve, Row } from "../measurement.ts"
import type { Aimed } from "../target.ts"

/** One bar. */
interface Bar {
  readonly label: string
  /** Whose it is, which decides on the colour. */
  readonly who: string
  readonly value: number
  /** The value that was aimed at. */
  readonly target: number | undefined
}

/** Bars that are compared with each other. */
export interface Group {
  readonly title: string
  readonly bars: ReadonlyArray<Bar>
  /** What belongs here but was not measured. */
  readonly missing: ReadonlyArray<string>
}

// How often something that takes one unit can be done in a second.
const oftenASecond = new Map([
  ["µs", 1_000_000],
  ["µs CPU", 1_000_000],
  ["ms", 1000],
])

/** A figure as operations a second, so that more of it is better. */
const speedOf = (figure: number, unit: string): number => {
  const often = oftenASecond.get(unit)
  return often === undefined ? figure : often / figure
}

/** The figure that a row's target asks for. */
const aimOf = ({
  figure,
  target,
  unit,
  yardstick,
}: Aimed & { readonly unit: string }): number | undefined => {
  const bound = target?.atLeast ?? target?.atMost
  if (target === undefined || bound === undefined) return undefined
  const beside = yardstick?.figure ?? figure
  const aims = { figure: bound, ratio: bound * beside, difference: bound + beside }
  return speedOf(aims[target.of], unit)
}

/** Those who have been measured, and how fast they are. */
interface Measured {
  readonly measured: string
  readonly unit: string
  /** The name of Tenure's bar. */
  readonly as: string
}

const besideOf = ({ figure, name }: NonNullable<Row["yardstick"]>, unit: string): Bar => ({
  label: name,
  who: name,
  value: speedOf(figure, unit),
  target: undefined,
})

/** The bars of what was measured: Tenure's, and one for everybody beside it. */
const barsOf = (rows: ReadonlyArray<Row>, { as, measured, unit }: Measured): ReadonlyArray<Bar> => {
  const found = rows.filter((row) => row.measured === measured && row.unit === unit)
  const aims = found.map(aimOf).filter((aim) => aim !== undefined)
  const target = aims.length === 0 ? undefined : Math.max(...aims)
  return [
    ...found.slice(0, 1).map(({ figure }) => ({
      label: as,
      who: "Tenure",
      value: speedOf(figure, unit),
      target,
    })),
    ...found.flatMap(({ yardstick }) =>
      yardstick === undefined ? [] : [besideOf(yardstick, unit)],
    ),
  ]
}

const isFirst = ({ label }: Bar, index: number, bars: ReadonlyArray<Bar>): boolean =>
  bars.findIndex((bar) => bar.label === label) === index

const groupFrom = (
  title: string,
  rows: ReadonlyArray<Row>,
  all: ReadonlyArray<Measured>,
): Group => ({
  title,
  bars: all
    .flatMap((one) => barsOf(rows, one))
    .filter(isFirst)
    .filter(({ value }) => Number.isFinite(value)),
  missing: all.filter((one) => barsOf(rows, one).length === 0).map(({ measured }) => measured),
})

/** A group of all that were measured, the longest bar first. */
export const groupOf: typeof groupFrom = (title, rows, all) => {
  const group = groupFrom(title, rows, all)
  return { ...group, bars: group.bars.toSorted((one, other) => other.value - one.value) }
}

/** A group of several cases of Tenure, in this order. */
export const casesOf: typeof groupFrom = (title, rows, all) => {
  const group = groupFrom(title, rows, all)
  return { ...group, bars: group.bars.filter(({ who }) => who === "Tenure") }
}

const barsOfCurve = ({ points, target }: Curve): ReadonlyArray<Bar> => {
  const yardstick = { figure: points[0]?.[1] ?? NaN }
  return points.map(([size, figure], index) => ({
    label: size.toLocaleString("en"),
    who: "Tenure",
    value: speedOf(figure, "µs"),
    target: index === 0 ? undefined : aimOf({ figure, unit: "µs", yardstick, target }),
  }))
}

/** A group with a bar for each size, the smallest first, which gives the others their target. */
export const growthOf = (title: string, curves: ReadonlyArray<Curve>, measured: string): Group => {
  const curve = curves.find(({ name }) => name === measured)
  return curve === undefined
    ? { title, bars: [], missing: [measured] }
    : { title, bars: barsOfCurve(curve), missing: [] }
}
