/** The receiving process of notifications. */

import type { Tenure } from "@tenure/core"
import { start } from "./processes.ts"
import type { Arrivals } from "./receiver.ts"

const longestWaitMillis = 120_000

export const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/** What has arrived, and what came since `until` was called. */
export interface Received extends Arrivals {
  /** Notifications a second, from the first that came to the last. */
  readonly rate: number
}

/** The receiving process, and its report. */
export interface Receiver {
  readonly report: () => Promise<Arrivals>
  /** A URL that is never answered. */
  readonly hangingUrl: string
  /** Waits until this many different notifications have arrived. */
  readonly until: (count: number) => Promise<Received>
  /**
   * Makes projects with one webhook each.
   *
   * @param delayMillis - how long the receiver takes to answer
   */
  readonly register: (
    tenure: Tenure,
    projectIds: ReadonlyArray<string>,
    delayMillis?: number,
  ) => Promise<void>
  readonly stop: () => void
}

/** Starts the receiving process. */
export const startReceiver = async (): Promise<Receiver> => {
  const { ask, greeting: port, stop } = await start<number>("./receiver.ts")
  const urlOf = (path: string): string => `http://127.0.0.1:${port}${path}`
  const report = () => ask<Arrivals>({})
  return {
    report,
    hangingUrl: urlOf("/hang"),
    until: async (count) => {
      const begin = performance.now()
      const latencies: Array<number> = []
      let firstAt: number | undefined
      for (;;) {
        const arrivals = await report()
        latencies.push(...arrivals.latencies)
        firstAt ??= arrivals.firstAt
        if (arrivals.distinct >= count || performance.now() - begin > longestWaitMillis) {
          const millis = (arrivals.lastAt ?? NaN) - (firstAt ?? NaN)
          return { ...arrivals, latencies, rate: (1000 * latencies.length) / millis }
        }
        await pause(50)
      }
    },
    register: async (tenure, projectIds, delayMillis = 0) => {
      for (const projectId of projectIds) {
        await tenure.memberships.createProject(projectId)
        const path = `/${delayMillis}/${projectId}`
        const { secret } = await tenure.webhooks.create({ projectId, url: urlOf(path) })
        await ask({ path, secret })
      }
    },
    stop,
  }
}
