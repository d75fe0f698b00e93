/** Records operations, and gives each what identifies it. */

import { now } from "../clock.ts"
import type { Operation } from "../history.ts"

/** What is known of an operation before it is answered. */
type Asked = Omit<Operation, "start" | "end" | "status">

/** What the answer adds. */
export type Answered = Pick<Operation, "status"> & Partial<Operation>

/** A recorder. */
export interface Recorder {
  /** Performs an operation and records it. Returns what was recorded. */
  readonly record: (asked: Asked, perform: () => Promise<Answered>) => Promise<Operation>
  readonly operations: () => ReadonlyArray<Operation>
  /** An end date, far in the future, that no other operation asks for. */
  readonly nextDate: () => number
  /** A number that nothing else has. */
  readonly nextNumber: () => number
}

const firstDate = Date.UTC(2100, 0)

/** Makes a recorder. */
export const makeRecorder = (): Recorder => {
  const operations: Array<Operation> = []
  let count = 0
  const nextNumber = () => ++count
  return {
    nextNumber,
    nextDate: () => firstDate + nextNumber(),
    operations: () => [...operations],
    record: async (asked, perform) => {
      const start = now()
      const answered = await perform()
      const operation = { ...asked, start, end: now(), ...answered }
      operations.push(operation)
      return operation
    },
  }
}
