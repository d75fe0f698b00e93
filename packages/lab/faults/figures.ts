/** What faults of each kind did, in figures. */

import { delays } from "./checks/deliveries.ts"
import { type Fault, type Operation, type Run, largest } from "./history.ts"
import { type KindName, kindNames, kinds } from "./kinds.ts"
import { calmMillis } from "./schedule.ts"
import { concerns, troubleOf } from "./trouble.ts"

/** What one fault did, or all of a kind. Times are in milliseconds. */
interface Figures {
  readonly faults: number
  /** Answers as expected, or 429. */
  readonly answered: number
  readonly unavailable: number
  readonly unanswered: number
  readonly longestWait: number
  /** The time after the fault until the last answer that was not as expected. */
  readonly longestToHeal: number
  /** The longest way of an event to a receiver that is well. */
  readonly longestDelivery: number
}

const none: Figures = {
  faults: 0,
  answered: 0,
  unavailable: 0,
  unanswered: 0,
  longestWait: 0,
  longestToHeal: 0,
  longestDelivery: 0,
}

/** Requests that wait for events tell nothing of the time that answers take. */
const waits = ({ action }: Operation): boolean =>
  action === "poll" || action === "listen" || action === "subscribe" || action === "follow"

const isBad = ({ status }: Operation): boolean => status === 0 || status === 503

const endOf = (fault: Fault): number =>
  kinds[fault.kind].healsFromStart === true ? fault.start : fault.end

const figuresOf = (run: Run, all: ReturnType<typeof delays>, fault: Fault): Figures => {
  const trouble = troubleOf(fault)
  const next = run.faults.map(({ start }) => start).filter((start) => start > fault.end)
  const to = Math.min(fault.end + calmMillis, ...next)
  const touched = run.operations.filter(
    (operation) =>
      !waits(operation) &&
      concerns(trouble, operation) &&
      operation.end >= fault.start &&
      operation.end <= to,
  )
  const bad = touched.filter(isBad)
  const deliveries = all.filter(
    ({ answered, event }) =>
      answered >= fault.start &&
      answered <= to &&
      (trouble.projectId === undefined || trouble.projectId === event.projectId),
  )
  return {
    faults: 1,
    answered: touched.length - bad.length,
    unavailable: bad.filter(({ status }) => status === 503).length,
    unanswered: bad.filter(({ status }) => status === 0).length,
    longestWait: largest(touched.map(({ end, start }) => end - start)),
    longestToHeal: largest(bad.map(({ end }) => end - endOf(fault))),
    longestDelivery: largest(deliveries.map(({ answered, arrived }) => arrived - answered)),
  }
}

const add = (one: Figures, other: Figures): Figures => ({
  faults: one.faults + other.faults,
  answered: one.answered + other.answered,
  unavailable: one.unavailable + other.unavailable,
  unanswered: one.unanswered + other.unanswered,
  longestWait: Math.max(one.longestWait, other.longestWait),
  longestToHeal: Math.max(one.longestToHeal, other.longestToHeal),
  longestDelivery: Math.max(one.longestDelivery, other.longestDelivery),
})

/** A fault is alone if no other happens before everything has healed. */
const isAlone = ({ faults }: Run, fault: Fault): boolean => {
  const { from, to } = troubleOf(fault)
  return !faults.some(
    (other) =>
      other !== fault && other.start <= Math.max(to, fault.end) && troubleOf(other).to >= from,
  )
}

/** Figures by the kind of the fault. */
export type Table = ReadonlyMap<KindName | "several", Figures>

/** Returns the figures of a run: those of faults that were alone, and of all others together. */
export const figures = (run: Run): Table => {
  const table = new Map<KindName | "several", Figures>()
  const all = delays(run)
  for (const fault of run.faults) {
    const row = isAlone(run, fault) ? fault.kind : "several"
    table.set(row, add(table.get(row) ?? none, figuresOf(run, all, fault)))
  }
  return table
}

export const sum = (one: Table, other: Table): Table => {
  const table = new Map(one)
  for (const [row, found] of other) table.set(row, add(table.get(row) ?? none, found))
  return table
}

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

const columns: ReadonlyArray<readonly [title: string, show: (of: Figures) => string]> = [
  ["times", ({ faults }) => String(faults)],
  ["answers", ({ answered }) => String(answered)],
  ["503", ({ unavailable }) => String(unavailable)],
  ["no answer", ({ unanswered }) => String(unanswered)],
  ["longest wait", ({ longestWait }) => seconds(longestWait)],
  ["healed after", ({ longestToHeal }) => seconds(longestToHeal)],
  ["longest delivery", ({ longestDelivery }) => seconds(longestDelivery)],
]

export const markdown = (table: Table): string => {
  const rows = [...kindNames, "several" as const].flatMap((name) => {
    const found = table.get(name)
    const title = name === "several" ? "several of these together" : kinds[name].title
    return found === undefined ? [] : [[title, ...columns.map(([, show]) => show(found))]]
  })
  const header = ["fault", ...columns.map(([title]) => title)]
  const lines = [header, header.map((_, index) => (index === 0 ? "---" : "---:")), ...rows]
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}
