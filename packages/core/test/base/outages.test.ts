import { expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { StoreUnavailable } from "../../src/base/errors.ts"
import { type Fault, Faults, faultsLayer, makeOutageReporter } from "../../src/base/faults.ts"
import { type Fields, hostLoggerLayer } from "../../src/telemetry/host-logger.ts"

/** Runs a test with a reporter, and passes it the log and the faults. */
const reporting = (
  test: (
    reporter: ReturnType<typeof makeOutageReporter>,
    log: ReadonlyArray<readonly [string, string, Fields]>,
    faults: ReadonlyArray<Fault>,
  ) => Effect.Effect<void>,
) =>
  Effect.suspend(() => {
    const log: Array<readonly [string, string, Fields]> = []
    const faults: Array<Fault> = []
    const write = (level: string) => (fields: Fields, message: string) =>
      void log.push([level, message, fields])
    const logger = { info: write("info"), warn: write("warn"), error: write("error") }
    const tested = Effect.flatMap(Faults, (own) =>
      test(makeOutageReporter(own, "Nothing can be read"), log, faults),
    )
    return tested.pipe(
      Effect.provide(faultsLayer({ onError: (fault) => void faults.push(fault) })),
      Effect.provide(hostLoggerLayer(logger)),
    )
  })

const refused = new Error("connect ECONNREFUSED 127.0.0.1:5432")

it.effect("logs an outage once with its first cause, and its end", () =>
  reporting((reporter, log, faults) =>
    Effect.gen(function* () {
      const cause = Cause.fail(new StoreUnavailable({ cause: new Error("no", { cause: refused }) }))
      reporter.succeeded()
      yield* reporter.failed(cause)
      yield* reporter.failed(cause)
      reporter.succeeded()
      reporter.succeeded()
      yield* Effect.yieldNow
      yield* reporter.failed(cause)
      const begun = ["warn", "Nothing can be read", { problem: refused.message }]
      expect(log).toEqual([begun, ["info", "Nothing can be read: this is over", {}], begun])
      expect(faults).toHaveLength(2)
    }),
  ),
)

it.effect("logs a defect with its stack", () =>
  reporting((reporter, log) =>
    Effect.gen(function* () {
      yield* reporter.failed(Cause.die(refused))
      expect(log).toMatchObject([["warn", "Nothing can be read", { cause: expect.any(String) }]])
      expect(log[0]?.[2].cause).toContain("outages.test.ts")
    }),
  ),
)

it.effect("describes causes that are hard to describe", () =>
  reporting((reporter, log) =>
    Effect.gen(function* () {
      const circular = new Error("circular")
      circular.cause = circular
      const several = new AggregateError([refused, new Error("other")])
      for (const cause of [circular, several, "text", undefined]) {
        yield* reporter.failed(Cause.fail(new StoreUnavailable({ cause })))
        reporter.succeeded()
      }
      const problems = log.flatMap(([level, , { problem }]) => (level === "warn" ? [problem] : []))
      expect(problems).toEqual([
        "circular",
        `${refused.message}, other`,
        "text",
        "The store does not answer.",
      ])
    }),
  ),
)
