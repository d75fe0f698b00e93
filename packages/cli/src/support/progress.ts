/** Shows progress: a bar on a terminal, otherwise a line every 10 seconds. */

/** How far some work has come. */
interface Progress {
  /** The amount done, in any unit, and the total, if known. */
  readonly done: number
  readonly of: number | undefined
  /** How many items have been done. */
  readonly items: number
  /** For how long it has been going on, in milliseconds. */
  readonly millis: number
}

const width = 30

/** Formats a number. */
const count = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 0 })

/** Formats a time in seconds, as `12 s` or `3 min 05 s`. */
const duration = (seconds: number): string => {
  const whole = Math.ceil(seconds)
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60]
  return minutes === 0 ? `${rest} s` : `${minutes} min ${String(rest).padStart(2, "0")} s`
}

/** Says how far work has come: how much, how fast, and how long it will take. */
const textOf = ({ done, items, millis, of }: Progress, name: string): string => {
  const rate = millis === 0 ? 0 : (items / millis) * 1000
  const known = [`${count(items)} ${name}`, `${count(rate)}/s`]
  if (of === undefined || of === 0 || done === 0) return known.join("  ")
  const share = Math.min(1, done / of)
  const left = (millis / share - millis) / 1000
  return [`${Math.floor(share * 100)} %`, ...known, `${duration(left)} left`].join("  ")
}

/** The bar before the text. */
const barOf = ({ done, of }: Progress): string => {
  if (of === undefined) return ""
  const full = of === 0 ? width : Math.floor((width * Math.min(done, of)) / of)
  return `[${"#".repeat(full)}${"-".repeat(width - full)}] `
}

/** The output for progress. */
export interface ProgressOutput {
  readonly isTTY?: boolean
  readonly write: (text: string) => unknown
}

/** Shows progress. */
export interface ProgressDisplay {
  readonly show: (progress: Progress) => void
  /** Leaves the bar's line. */
  readonly end: () => void
}

// Moves to the line's start and clears it.
const clear = "\r\u001B[K"

// The interval between lines without a bar.
const lineMillis = 10_000

/** Makes a display. */
export const makeProgress = (output: ProgressOutput, name: string): ProgressDisplay => {
  if (output.isTTY === true)
    return {
      show: (progress) => output.write(`${clear}${barOf(progress)}${textOf(progress, name)}`),
      end: () => output.write(clear),
    }
  let next = lineMillis
  return {
    show: (progress) => {
      if (progress.millis < next) return
      next = progress.millis + lineMillis
      output.write(`${textOf(progress, name)}\n`)
    },
    end: () => undefined,
  }
}
