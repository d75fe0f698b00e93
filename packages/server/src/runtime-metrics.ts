/** Metrics of the process: the event loop, the processor and memory. */

import { monitorEventLoopDelay } from "node:perf_hooks"
import { observeCounter, observeGauge } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"

// The event loop is watched for so long at a time. Whoever reads the metrics sees the last such time.
const period = "10 seconds"

// How often it is asked whether it is late, in milliseconds.
const resolution = 10

const seconds = (nanos: number): number => Math.max(0, nanos / 1e9)

const eventLoop = Effect.gen(function* () {
  const delays = monitorEventLoopDelay({ resolution })
  yield* Effect.acquireRelease(
    Effect.sync(() => delays.enable()),
    () => Effect.sync(() => delays.disable()),
  )
  let latest = { mean: 0, p99: 0, max: 0 }
  yield* Effect.sync(() => {
    if (delays.count > 0) {
      const { max, mean } = delays
      // Node counts the time that it has waited on purpose, too.
      const late = (nanos: number): number => seconds(nanos - resolution * 1e6)
      latest = { mean: late(mean), p99: late(delays.percentile(99)), max: late(max) }
    }
    delays.reset()
  }).pipe(Effect.repeat(Schedule.spaced(period)), Effect.forkScoped)
  yield* observeGauge("nodejs.eventloop.delay.mean", () => latest.mean)
  yield* observeGauge("nodejs.eventloop.delay.p99", () => latest.p99)
  yield* observeGauge("nodejs.eventloop.delay.max", () => latest.max)
})

const micros = 1e6

const resources = Effect.gen(function* () {
  yield* observeGauge("process.memory.usage", () => process.memoryUsage.rss())
  for (const mode of ["user", "system"] as const) {
    const read = () => process.cpuUsage()[mode] / micros
    yield* observeCounter("process.cpu.time", read, mode)
  }
})

/** Shows the metrics of the process. */
export const layer: Layer.Layer<never> = Layer.effectDiscard(Effect.andThen(eventLoop, resources))
