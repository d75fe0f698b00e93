/**
 * A process that delivers what is in outboxes on PostgreSQL. It begins when it is told to, and on how many
 * databases; it ends when it is told again, and so on.
 */

import type { Tenure } from "@tenure/core"
import { startOn } from "../database.ts"

/** The answer: the processor time used so far. */
export type Toggled = NodeJS.CpuUsage

/** The question. */
export interface Toggle {
  readonly databases: number
}

const [, , schema = "", ...urls] = process.argv

let running: Tenure | undefined

const toggle = async ({ databases }: Toggle): Promise<Tenure | undefined> => {
  if (running === undefined) return startOn(urls.slice(0, databases), schema)
  await running.close()
  return undefined
}

process.on("message", async (asked: Toggle) => {
  running = await toggle(asked)
  process.send?.(process.cpuUsage() satisfies Toggled)
})
process.on("disconnect", () => process.exit())
process.send?.("ready")
