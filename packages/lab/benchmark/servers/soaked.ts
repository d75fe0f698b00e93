/** Tenure for a long time: its webhooks fail and recover, and it tells how it is when it is asked. */

import { monitorEventLoopDelay } from "node:perf_hooks"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"
import { makeFilled } from "./filled.ts"
import { announce } from "./server.ts"
import { projectId } from "./workload.ts"

/** How the process is. */
export interface Health {
  readonly rss: number
  /** Bytes in use after a collection. */
  readonly heap: number
  /** Milliseconds by which the event loop was late since the last time, for one in a hundred. */
  readonly delay: number
  /** Timers, sockets and the like that are open. */
  readonly resources: number
}

// So small that all histories are full after the warm-up.
const tenure = await makeFilled({
  stores: memory({ history: 1000 }),
  webhooks: {
    allowedNetworks: ["127.0.0.0/8"],
    retrySchedule: Array.from({ length: 20 }, () => "2 seconds"),
  },
})
for (let index = 0; index < 2; index++) {
  await tenure.webhooks.create({ projectId, url: `http://127.0.0.1:${process.argv[2]}/${index}` })
}

const delays = monitorEventLoopDelay({ resolution: 10 })
delays.enable()

const health = (): Health => {
  const delay = delays.percentile(99) / 1_000_000
  globalThis.gc?.()
  delays.reset()
  const { heapUsed, rss } = process.memoryUsage()
  return { rss, heap: heapUsed, delay, resources: process.getActiveResourcesInfo().length }
}

const { url } = await serve(tenure)
announce(Number(new URL(url).port), health)
