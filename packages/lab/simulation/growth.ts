/** What a load leaves on disk and writes to the log: multiplication, of what was measured. */

import type { Row } from "../benchmark/measurement.ts"
import { measured } from "../benchmark/sections/storage.ts"
import { figureOf } from "./measured.ts"

/** How much there is, and how much comes. */
export interface Load {
  readonly members: number
  readonly extensionsPerSecond: number
  readonly deliveriesPerSecond: number
  /** For how long events and their deliveries are kept. */
  readonly eventDays: number
  /** For how long the audit trail is kept. */
  readonly auditDays: number
}

/** What it takes, in bytes. */
export interface Taken {
  readonly memberships: number
  readonly audit: number
  readonly events: number
  readonly deliveries: number
  /** Bytes of the write-ahead log a second, without copies of whole pages. */
  readonly log: number
}

const daySeconds = 86_400

/** Returns what a load takes when the oldest rows are as old as they get. */
export const takenBy = (load: Load, rows: ReadonlyArray<Row>, deliveryLog: number): Taken => {
  const { deliveriesPerSecond, extensionsPerSecond, members } = load
  const bytes = (what: keyof typeof measured): number => figureOf(rows, measured[what])
  const eventSeconds = load.eventDays * daySeconds
  return {
    memberships: members * bytes("membership"),
    audit: extensionsPerSecond * load.auditDays * daySeconds * bytes("auditRow"),
    events: extensionsPerSecond * eventSeconds * bytes("event"),
    deliveries: deliveriesPerSecond * eventSeconds * bytes("delivery"),
    log: extensionsPerSecond * bytes("extension") + deliveriesPerSecond * deliveryLog,
  }
}
