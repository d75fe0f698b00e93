/** What each kind of fault did, in figures. */

import { delays } from "./checks/deliveries.ts"
import { type Fault, type Operation, type Run, largest } from "./history.ts"
import { type KindName, kindNames, kinds } from "./kinds.ts"
import { calmMillis } from "./schedule.ts"
import { concerns, troubleOf } from "./trouble.ts"

/** What happened while a fault could disturb it. */
interface Observed {
  /** When the fault began to heal. */
  readonly healing: number
  readonly answers: ReadonlyArray<Operation>
  /** How long events took to receivers that are well, in milliseconds. */
  readonly delays: ReadonlyArray<number>
}

const isBad = ({ status }: Operation): boolean => status === 0 || status === 503

const countOf = (answers: ReadonlyArray<Operation>, is: (one: Operation) => boolean): number =>
  answers.filter(is).length

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** A figure: its title, what it is for one fault, and whether several are added up. Otherwise, the longest time counts. */
const columns: ReadonlyArray<
  readonly [title: string, of: (observed: Observed) => number, isCount: boolean]
> = [
  ["times", () => 1, true],
  // As expected, or 429.
  ["answers", ({ answers }) => countOf(answers, (one) => !isBad(one)), true],
  ["503", ({ answers }) => countOf(answers, ({ status }) => status === 503), true],
  ["no answer", ({ answers }) => countOf(answers, ({ status }) => status === 0), true],
  ["longest wait", ({ answers }) => largest(answers.map(({ end, start }) => end - start)), false],
  // The last answer that was not as expected.
  [
    "healed after",
    ({ answers, healing }) => largest(answers.filter(isBad).map(({ end }) => end - healing)),
    false,
  ],
  ["longest delivery", ({ delays: all }) => largest(all), false],
]

type Figures = ReadonlyArray<number>

// Requests that wait for events do not show how long answers take.
const waiting: ReadonlySet<string> = new Set(["poll", "listen", "subscribe", "follow"])

const figuresOf = (run: Run, all: ReturnType<typeof delays>, fault: Fault): Figures => {
  const trouble = troubleOf(fault)
  const next = run.faults.map(({ start }) => start).filter((start) => start > fault.end)
  const to = Math.min(fault.end + calmMillis, ...next)
  const isMeanwhile = (at: number): boolean => at >= fault.start && at <= to
  const { projectId } = trouble
  const observed = {
    healing: kinds[fault.kind].healsFromStart === true ? fault.start : fault.end,
    answers: run.operations.filter(
      (one) => !waiting.has(one.action) && concerns(trouble, one) && isMeanwhile(one.end),
    ),
    delays: all
      .filter(({ answered }) => isMeanwhile(answered))
      .filter(({ event }) => projectId === undefined || projectId === event.projectId)
      .map(({ answered, arrived }) => arrived - answered),
  }
  return columns.map(([, of]) => of(observed))
}

/** A fault is alone if no other happens before everything has healed. */
const isAlone = ({ faults }: Run, fault: Fault): boolean => {
  const { from, to } = troubleOf(fault)
  return !faults.some(
    (other) =>
      other !== fault && other.start <= Math.max(to, fault.end) && troubleOf(other).to >= from,
  )
}

/** Figures by the fault's kind. */
export type Table = ReadonlyMap<KindName | "several", Figures>

export const sum = (one: Table, other: Table): Table => {
  const table = new Map(one)
  for (const [row, found] of other) {
    const known = table.get(row) ?? columns.map(() => 0)
    const joined = columns.map(([, , isCount], column) => {
      const [a = 0, b = 0] = [known[column], found[column]]
      return isCount ? a + b : Math.max(a, b)
    })
    table.set(row, joined)
  }
  return table
}

/** Returns a run's figures: for faults that were alone, and for all others together. */
export const figures = (run: Run): Table => {
  const all = delays(run)
  return run.faults
    .map((fault): Table => {
      const row = isAlone(run, fault) ? fault.kind : "several"
      return new Map([[row, figuresOf(run, all, fault)]])
    })
    .reduce(sum, new Map())
}

/** Returns the table in Markdown. */
export const markdown = (table: Table): string => {
  const rows = [...kindNames, "several" as const].flatMap((name) => {
    const found = table.get(name)
    const title = name === "several" ? "several of these together" : kinds[name].title
    const cells = columns.map(([, , isCount], column) =>
      isCount ? String(found?.[column]) : seconds(found?.[column] ?? 0),
    )
    return found === undefined ? [] : [[title, ...cells]]
  })
  const header = ["fault", ...columns.map(([title]) => title)]
  const lines = [header, header.map((_, index) => (index === 0 ? "---" : "---:")), ...rows]
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")
}
