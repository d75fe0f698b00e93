/** What losses silenced, and for how long. */

import { median } from "../benchmark/rounds.ts"
import { longestSilence } from "../faults/checks/losses.ts"
import { fieldOf, parse } from "../faults/workload/http.ts"

/** How the primary is lost, or the standby, for which commits wait. */
export type Loss = "crash" | "hang" | "switchover" | "standby hangs"

/** Instants of what must not be silent, in order, as a list for each driver, server or follower. */
type Signs = Readonly<Record<string, ReadonlyArray<ReadonlyArray<number>>>>

export interface Incident {
  readonly loss: Loss
  /** Who led before and after. */
  readonly from: string
  readonly to: string
  /** How long there was no sign, in milliseconds: at the driver, server or follower where that took longest. */
  readonly silences: Readonly<Record<string, number>>
}

/** Returns the longest silence for each kind of sign between two instants. */
export const silencesOf = (signs: Signs, from: number, to: number): Incident["silences"] =>
  Object.fromEntries(
    Object.entries(signs).map(([name, lists]) => [
      name,
      Math.max(...lists.map((instants) => longestSilence(instants, from, to))),
    ]),
  )

/** Returns how much longer changes stood still than the driver. */
export const excessOf = ({ silences }: Incident): number =>
  (silences["changes"] ?? 0) - (silences["driver"] ?? 0)

/** Returns what a server has logged since an instant, without lines that repeat the one before. */
export const excerptOf = (log: string, since: number): ReadonlyArray<string> => {
  const told = log.split("\n").flatMap((line) => {
    const record = parse(line)
    const field = (name: string): string => String(fieldOf(record, name) ?? "")
    return Date.parse(field("time")) >= since
      ? [{ time: field("time"), text: `${field("message")} ${field("cause")}${field("problem")}` }]
      : []
  })
  return told
    .filter(({ text }, index) => text !== told[index - 1]?.text)
    .map(({ text, time }) => `${time} ${text}`)
}

const seconds = (millis: number): string => (millis / 1000).toFixed(1)

/**
 * Returns a table in seconds: a line for each incident, and for each kind the median and the most. The last
 * column is how much longer changes stood still than the driver.
 */
export const tableOf = (incidents: ReadonlyArray<Incident>): string => {
  const names = Object.keys(incidents[0]?.silences ?? {})
  const figuresOf = (incident: Incident): ReadonlyArray<number> => [
    ...names.map((name) => incident.silences[name] ?? 0),
    excessOf(incident),
  ]
  const kinds = [...new Set(incidents.map(({ loss }) => loss))]
  const summaries = kinds.flatMap((loss) => {
    const figures = incidents.filter((one) => one.loss === loss).map(figuresOf)
    const summarize = (pick: (values: ReadonlyArray<number>) => number): ReadonlyArray<string> =>
      [...names, ""].map((_, column) => seconds(pick(figures.map((row) => row[column] ?? 0))))
    return [
      [`${figures.length} × ${loss}`, "median", ...summarize(median)],
      ["", "most", ...summarize((values) => Math.max(...values))],
    ]
  })
  const rows = [
    ["loss", "leader", ...names, "changes - driver"],
    ...incidents.map((one) => [
      one.loss,
      `${one.from} → ${one.to}`,
      ...figuresOf(one).map(seconds),
    ]),
    ...summaries,
  ]
  const widthOf = (column: number): number =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widthOf(column)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n")
}
