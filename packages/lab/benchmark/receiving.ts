/** The process that receives notifications. */

import { randomBytes } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import type { Tenure } from "@tenure/core"
import { start } from "./processes.ts"
import type { Arrivals } from "./receiver.ts"

const longestWaitMillis = 120_000

/** What has arrived, and what came since `arrived` was called. */
export interface Received extends Arrivals {
  /** Notifications a second, from the first that came to the last. */
  readonly rate: number
}

/** Makes a secret for a webhook that is not Tenure's. */
export const newSecret = (): string => `whsec_${randomBytes(24).toString("base64")}`

/** The receiving process, and its report. */
export interface Receiver {
  readonly report: () => Promise<Arrivals>
  /** Waits until this many different notifications have arrived. Rejects if they do not. */
  readonly arrived: (count: number) => Promise<Received>
  /**
   * Adds a webhook.
   *
   * @param register - registers a URL, and returns the webhook's secret
   * @param delayMillis - how long the receiver takes to answer
   */
  readonly add: (
    name: string,
    register: (url: string) => Promise<string>,
    delayMillis?: number,
  ) => Promise<void>
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
  const add: Receiver["add"] = async (name, register, delayMillis = 0) => {
    const path = `/${delayMillis}/${name}`
    await ask({ path, secret: await register(urlOf(path)) })
  }
  return {
    report,
    arrived: async (count) => {
      const begin = performance.now()
      const latencies: Array<number> = []
      let firstAt: number | undefined
      for (;;) {
        const arrivals = await report()
        latencies.push(...arrivals.latencies)
        firstAt ??= arrivals.firstAt
        if (arrivals.distinct >= count) {
          const millis = (arrivals.lastAt ?? NaN) - (firstAt ?? NaN)
          return { ...arrivals, latencies, rate: (1000 * latencies.length) / millis }
        }
        if (performance.now() - begin > longestWaitMillis) {
          throw new Error(`${count - arrivals.distinct} notifications were lost`)
        }
        await pause(50)
      }
    },
    add,
    register: async (tenure, projectIds, delayMillis) => {
      for (const projectId of projectIds) {
        await tenure.memberships.createProject(projectId)
        const create = async (url: string) =>
          (await tenure.webhooks.create({ projectId, url })).secret
        await add(projectId, create, delayMillis)
      }
    },
    stop,
  }
}
