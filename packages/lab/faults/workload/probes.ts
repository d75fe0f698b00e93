/** Asks servers whether they are ready, as a load balancer does. */

import { get } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { type World, places } from "../world/world.ts"
import type { Answered, Recorder } from "./recorder.ts"

const intervalMillis = 250

const probe = (url: string): Promise<Answered> =>
  new Promise((resolve) => {
    const request = get(`${url}/readyz`, { agent: false }, (response) => {
      response.resume().on("end", () => resolve({ status: response.statusCode ?? 0 }))
    })
    request.on("error", ({ message }) => resolve({ status: 0, problem: message }))
  })

/** Asks every server again and again, until it is told to stop. */
export const runProbes = async (
  { servers }: World,
  { record }: Recorder,
  isOver: () => boolean,
): Promise<void> => {
  const watch = async (process: string): Promise<void> => {
    while (!isOver()) {
      await record({ action: "ready", process, projectId: "", expected: [200] }, () =>
        probe(servers.get(process)?.url ?? ""),
      )
      await sleep(intervalMillis)
    }
  }
  await Promise.all(places.servers.map(watch))
}
