/** A host logger that records its entries. */

import type { Fields, HostLogger } from "../../src/telemetry/host-logger.ts"

interface Entry {
  readonly level: string
  readonly fields: Fields
  readonly message: string
}

export const recordingLogger = () => {
  const entries: Array<Entry> = []
  const write = (level: string) => (fields: Fields, message: string) =>
    void entries.push({ level, fields, message })
  const logger: HostLogger = { info: write("info"), warn: write("warn"), error: write("error") }
  return { entries, logger }
}
