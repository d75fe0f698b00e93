/** Records operations, and gives each what identifies it. */

import { now } from "../clock.ts"
import type { Operation } from "../history.ts"
import { type Random, random } from "../random.ts"

/** What is known of an operation before it is answered. */
type Asked = Omit<Operation, "start" | "end" | "status">

/** What the answer adds. */
export type Answered = Pick<Operation, "status"> & Partial<Operation>

/** A recorder. */
export interface Recorder {
  /** Performs an operation and records it. Returns what was recorded. */
  readonly record: (asked: Asked, perform: () => Promise<Answered>) => Promise<Operation>
  readonly operations: () => ReadonlyArray<Operation>
  /** An end date, far in the future, that no other operation asks for: later ones are not always later dates. */
  readonly nextDate: () => number
  /** An end date so many milliseconds ahead, that no other operation asks for. */
  readonly dateAhead: (millis: number) => number
  /** The latest of these dates. */
  readonly latestAhead: () => number
  /** A number that nothing else has. */
  readonly nextNumber: () => number
}

const firstDate = Date.UTC(2100, 0)

// More than there are operations, so that their numbers make dates unique, and a part of a day, so that this holds
// for dates that were extended by days, too.
const spread = 864_000

const dates = 100_000

// Changes of a member follow each other so fast that many of these dates come as they are overwritten.
const nearMillis = 1000

/**
 * An end date that no other operation asks for: most often far in the future, sometimes about to come. With the
 * statuses of the answer: the date may have come by the clock of a server.
 */
export const anyDate = ({
  choose,
  recorder,
}: {
  readonly choose: Random
  readonly recorder: Recorder
}): Pick<Operation, "expected"> & { readonly endDate: number } =>
  choose.chance(0.2)
    ? { endDate: recorder.dateAhead(choose.between(0, nearMillis)), expected: [200, 422] }
    : { endDate: recorder.nextDate(), expected: [200] }

/** Makes a recorder. */
export const makeRecorder = (seed: number): Recorder => {
  const choose = random(seed, "dates")
  const operations: Array<Operation> = []
  const near = new Set<number>()
  let latest = 0
  let count = 0
  const nextNumber = () => ++count
  return {
    nextNumber,
    nextDate: () => firstDate + spread * choose.below(dates) + nextNumber(),
    dateAhead: (millis) => {
      let date = Math.round(now() + millis)
      while (near.has(date)) date++
      near.add(date)
      latest = Math.max(latest, date)
      return date
    },
    operations: () => [...operations],
    latestAhead: () => latest,
    record: async (asked, perform) => {
      const start = now()
      const answered = await perform()
      const operation = { ...asked, start, end: now(), ...answered }
      operations.push(operation)
      return operation
    },
  }
}
