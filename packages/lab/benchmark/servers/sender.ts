/** A process that delivers from an outbox on PostgreSQL. Each message starts or stops it. */

import type { Tenure } from "@tenure/core"
import { startTenure } from "../database.ts"

/** The answer: the processor time used so far. */
export type Toggled = NodeJS.CpuUsage

const [, , schema = "", url = ""] = process.argv

let running: Tenure | undefined

const toggle = async (): Promise<Tenure | undefined> => {
  if (running === undefined) return startTenure(url, schema)
  await running.close()
  return undefined
}

process.on("message", async () => {
  running = await toggle()
  process.send?.(process.cpuUsage() satisfies Toggled)
})
process.on("disconnect", () => process.exit())
process.send?.("ready")
