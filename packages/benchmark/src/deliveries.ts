/** Deliveries from one process to another, over an outbox on PostgreSQL. */

import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import * as Event from "@tenure/core/Event"
import { Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import type { Tenure } from "@tenure/core/Tenure"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import { schema, startTenure } from "./database.ts"
import type { Arrivals } from "./receiver.ts"
import { quantile } from "./rounds.ts"

// Each project has one webhook: an event is one delivery.
const projectCount = 20

const longestWaitMillis = 120_000

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const projectOf = (index: number): string => `deliveries-${index % projectCount}`

const data = () => ({ at: Date.now(), padding: "x".repeat(200) })

/** The process that receives, and what it has received. */
const startReceiver = async () => {
  const child: ChildProcess = fork(fileURLToPath(new URL("./receiver.ts", import.meta.url)), {
    execArgv: ["-C", "@tenure/source"],
  })
  const [port] = await once(child, "message")
  const report = async (): Promise<Arrivals> => {
    child.send("report")
    const [arrivals] = await once(child, "message")
    return arrivals
  }
  return {
    report,
    /** Waits until so many different notifications have arrived. */
    until: async (count: number): Promise<Arrivals> => {
      const start = performance.now()
      for (;;) {
        const arrivals = await report()
        if (arrivals.distinct >= count || performance.now() - start > longestWaitMillis) {
          return arrivals
        }
        await pause(50)
      }
    },
    register: async (tenure: Tenure): Promise<void> => {
      for (let index = 0; index < projectCount; index++) {
        const projectId = projectOf(index)
        await tenure.memberships.createProject(projectId)
        const url = `http://127.0.0.1:${port}/${index}`
        const { secret } = await tenure.webhooks.create({ projectId, url })
        child.send({ register: [`/${index}`, secret] })
      }
    },
    stop: () => child.kill(),
  }
}

type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Publishes events while nobody delivers. */
const fillBacklog = (url: string, count: number): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const publish = (index: number) =>
        outbox.publish(
          Event.make({
            id: Event.EventId(crypto.randomUUID()),
            projectId: ProjectId(projectOf(index)),
            type: Event.EventType("benchmark"),
            at: Date.now(),
            data: data(),
          }),
        )
      const indexes = Array.from({ length: count }, (_, index) => index)
      yield* Effect.forEach(indexes, publish, { concurrency: 512, discard: true })
    }).pipe(Effect.provide(postgres({ url, schema }))),
  )

/** A steady trickle: how late do notifications arrive? */
const measureLatency = async (
  receiver: Receiver,
  publish: () => Promise<unknown>,
  seconds: number,
): Promise<number> => {
  let published = 0
  await receiver.report()
  for (let tick = 0; tick < 50 * seconds; tick++) {
    for (let count = 0; count < 4; count++, published++) void publish()
    await pause(20)
  }
  const { latencies } = await receiver.until(published)
  const [half, most] = [quantile(latencies, 0.5), quantile(latencies, 0.99)]
  console.log(`\nDeliveries at 200 events a second: p50 ${half} ms, p99 ${most} ms`)
  return published
}

/** As many as go, with never more than 4,000 under way. */
const measureSustained = async (
  receiver: Receiver,
  publish: () => Promise<unknown>,
  seconds: number,
): Promise<number> => {
  const before = (await receiver.report()).total
  const start = performance.now()
  let published = 0
  while (performance.now() - start < 1000 * seconds) {
    if (published - ((await receiver.report()).total - before) > 4000) await pause(10)
    else {
      await Promise.all(Array.from({ length: 500 }, publish))
      published += 500
    }
  }
  const rate = ((await receiver.report()).total - before) / ((performance.now() - start) / 1000)
  console.log(`Deliveries sustained for ${seconds} s: ${Math.round(rate)}/s`)
  return published
}

/** Measures how fast and how late notifications arrive, and that none is lost. */
export const measureDeliveries = async (
  url: string,
  { backlog, seconds }: { readonly backlog: number; readonly seconds: number },
): Promise<void> => {
  const receiver = await startReceiver()
  const tenure = await startTenure(url)
  await receiver.register(tenure)
  let index = 0
  const publish = () =>
    tenure.events.publish({ projectId: projectOf(index++), type: "benchmark", data: data() })
  let published = await measureLatency(receiver, publish, seconds)
  published += await measureSustained(receiver, publish, seconds)
  await receiver.until(published)
  await tenure.close()

  await fillBacklog(url, backlog)
  const start = performance.now()
  const draining = await startTenure(url)
  const { distinct, total, unverified } = await receiver.until(published + backlog)
  const rate = (distinct - published) / ((performance.now() - start) / 1000)
  console.log(
    `Deliveries of a backlog of ${backlog.toLocaleString("en")}: ${Math.round(rate)}/s
Published ${published + backlog}, lost ${published + backlog - distinct}, duplicates ${total - distinct}, not verified ${unverified}`,
  )
  await draining.close()
  receiver.stop()
}
