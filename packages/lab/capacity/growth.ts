/** What a load leaves on disk and writes to the log: measured figures, multiplied. */

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
  /** Bytes a second in the write-ahead log, without copies of whole pages. */
  readonly log: number
}

const daySeconds = 86_400

/** What keeps a server's processors busy, in microseconds. */
export interface ServerCosts {
  readonly extension: number
  readonly delivery: number
}

/** How many processors a server has, and which share may be used: the rest is for what comes at once. */
const server = { processors: 16, share: 0.5 }

/** Returns how many servers a load takes. */
export const serversFor = (load: Load, { delivery, extension }: ServerCosts): number => {
  const { deliveriesPerSecond, extensionsPerSecond } = load
  const micros = extensionsPerSecond * extension + deliveriesPerSecond * delivery
  return Math.ceil(micros / (1e6 * server.processors * server.share))
}

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
