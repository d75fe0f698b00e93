/** A process that delivers notifications by one program. */

import { setTimeout as pause } from "node:timers/promises"
import { type DelivererSetup, makeDeliverer } from "../alternatives/queues.ts"
import { announce } from "./server.ts"

/** The tasks, one after the other. */
export type DelivererTask =
  | { readonly do: "fill"; readonly count: number }
  | { readonly do: "start" | "stop" }
  /** Publishes 200 events a second. */
  | { readonly do: "publish"; readonly seconds: number }

/** The answer: events published by this task, and the processor time used so far. */
export interface DelivererReport extends NodeJS.CpuUsage {
  readonly published: number
}

const [, , name = "", given = "{}"] = process.argv
const setup: DelivererSetup = JSON.parse(given)
const deliverer = await makeDeliverer(name, setup)

const publish = async (seconds: number): Promise<number> => {
  let published = 0
  const publications: Array<Promise<unknown>> = []
  for (let tick = 0; tick < 50 * seconds; tick++) {
    for (let count = 0; count < 4; count++, published++) {
      const webhook = setup.webhooks[published % setup.webhooks.length]
      if (webhook !== undefined) publications.push(deliverer.publish(webhook))
    }
    await pause(20)
  }
  await Promise.all(publications)
  return published
}

const perform = async (task: DelivererTask): Promise<number> => {
  if (task.do === "publish") return publish(task.seconds)
  await (task.do === "fill" ? deliverer.fill(task.count) : deliverer[task.do]())
  return 0
}

announce("ready", async (task: DelivererTask) => {
  const published = await perform(task)
  return { published, ...process.cpuUsage() } satisfies DelivererReport
})
