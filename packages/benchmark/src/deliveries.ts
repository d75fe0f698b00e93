/** Deliveries from one process to another, over an outbox on PostgreSQL. */

import { fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import * as Tenure from "@tenure/core/Tenure"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import type { Arrivals } from "./receiver.ts"

const webhookCount = 20

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor(share * (values.length - 1))] ?? NaN

/** Measures how fast and how late notifications arrive. */
export const measureDeliveries = async (url: string, seconds: number): Promise<void> => {
  const receiver = fork(fileURLToPath(new URL("./receiver.ts", import.meta.url)), {
    execArgv: ["-C", "@tenure/source"],
  })
  const [port] = await once(receiver, "message")
  const report = async (): Promise<Arrivals> => {
    receiver.send("report")
    const [arrivals] = await once(receiver, "message")
    return arrivals
  }
  const tenure = await Tenure.make({
    stores: postgres({ url, schema: "benchmark" }),
    transport: nodeTransport,
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  })
  await tenure.memberships.createProject("w")
  // Each project has one webhook: an event is one delivery.
  for (let index = 0; index < webhookCount; index++) {
    await tenure.memberships.createProject(`w${index}`)
    const { secret } = await tenure.webhooks.create({
      projectId: `w${index}`,
      url: `http://127.0.0.1:${port}/${index}`,
    })
    receiver.send({ register: [`/${index}`, secret] })
  }
  let published = 0
  const publish = () =>
    tenure.events.publish({
      projectId: `w${published++ % webhookCount}`,
      type: "benchmark",
      data: { at: Date.now(), padding: "x".repeat(200) },
    })
  /** Waits until all that was published has arrived, half a minute at most. */
  const drained = async (): Promise<Arrivals> => {
    for (let tries = 0; ; tries++) {
      const arrivals = await report()
      if (arrivals.distinct >= published || tries > 300) return arrivals
      await pause(100)
    }
  }

  // A steady trickle.
  await report()
  for (let tick = 0; tick < 50 * seconds; tick++) {
    for (let count = 0; count < 4; count++) void publish()
    await pause(20)
  }
  const { latencies } = await drained()
  console.log(
    `\nDeliveries, 200 events a second: p50 ${quantile(latencies, 0.5)} ms, p99 ${quantile(latencies, 0.99)} ms`,
  )

  // As fast as it goes.
  const start = performance.now()
  const before = (await report()).total
  while (performance.now() - start < 1000 * seconds) {
    if (published - (await report()).total < 4000) {
      await Promise.all(Array.from({ length: 500 }, publish))
    } else await pause(10)
  }
  const sustained = (await report()).total - before
  const elapsed = (performance.now() - start) / 1000
  console.log(
    `Deliveries, sustained: ${Math.round(sustained / elapsed)}/s over ${elapsed.toFixed(0)} s`,
  )
  const end = await drained()
  console.log(
    `Published ${published}, lost ${published - end.distinct}, duplicates ${end.total - end.distinct}, not verified ${end.unverified}`,
  )
  await tenure.close()
  receiver.kill()
}
