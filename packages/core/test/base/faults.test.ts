import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect } from "vitest"
import { StoreUnavailable } from "../../src/base/errors.ts"
import {
  type Fault,
  ErrorReporter,
  errorReporterLayer,
  makeOutageReporter,
} from "../../src/base/faults.ts"
import { hostLoggerLayer } from "../../src/telemetry/host-logger.ts"
import { recordingLogger } from "../support/logger.ts"
import { test } from "../support/test.ts"

const message = "Nothing can be read"

/** A reporter, its log entries, and the faults passed to the host. */
const reporting = Effect.gen(function* () {
  const { entries, logger } = recordingLogger()
  const faults: Array<Fault> = []
  const services = yield* Layer.build(
    Layer.provideMerge(
      errorReporterLayer({ onError: (fault) => void faults.push(fault) }),
      hostLoggerLayer(logger),
    ),
  )
  const { failed, succeeded } = makeOutageReporter(Context.get(services, ErrorReporter), message)
  return {
    failed: (cause: Cause.Cause<StoreUnavailable>) =>
      Effect.provideContext(failed(cause), services),
    succeeded,
    log: entries,
    faults,
  }
})

const refused = new Error("connect ECONNREFUSED 127.0.0.1:5432")

const unavailable = (cause: unknown) => Cause.fail(new StoreUnavailable({ cause }))

describe("an outage", () => {
  test("is logged once with its first cause, and so is its end", function* () {
    const { failed, faults, log, succeeded } = yield* reporting
    const cause = unavailable(new Error("no", { cause: refused }))
    succeeded()
    yield* failed(cause)
    yield* failed(cause)
    succeeded()
    succeeded()
    yield* Effect.yieldNow
    yield* failed(cause)
    const begun = { level: "warn", message, fields: { problem: refused.message } }
    const over = { level: "info", message: `${message}: this is over`, fields: {} }
    expect(log).toEqual([begun, over, begun])
    const fault = { message, cause: Cause.squash(cause), requestId: undefined, isDefect: false }
    expect(faults).toEqual([fault, fault])
  })

  test("that is a defect is logged with its stack", function* () {
    const { failed, log } = yield* reporting
    yield* failed(Cause.die(refused))
    const cause = expect.stringContaining("faults.test.ts")
    expect(log).toMatchObject([{ level: "warn", message, fields: { cause } }])
  })

  const circular = new Error("circular")
  circular.cause = circular

  test.each([
    ["circular", circular],
    [`${refused.message}, other`, new AggregateError([refused, new Error("other")])],
    ["text", "text"],
    ["The store does not answer.", undefined],
  ])("is described even if its cause is hard to describe: %s", function* ([problem, cause]) {
    const { failed, log } = yield* reporting
    yield* failed(unavailable(cause))
    expect(log).toMatchObject([{ fields: { problem } }])
  })
})
