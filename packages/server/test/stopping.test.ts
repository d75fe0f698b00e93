/** A server stops on a signal, in time or not. */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { describe, expect, it } from "vitest"
import { type Signal, runUntilStopped } from "../src/stopping.ts"

const noSignal = new Promise<Signal>(() => {})
const signal = Promise.resolve<Signal>("SIGTERM")

describe("a server", () => {
  it("that ends by itself has its own result", async () => {
    const end = await runUntilStopped(() => Effect.fail("no port"), noSignal, 0)
    expect(end).toEqual({ _tag: "Ended", exit: Exit.fail("no port") })
  })

  it("that has not started is interrupted by a signal", async () => {
    let isClosed = false
    const close = Effect.sync(() => {
      isClosed = true
    })
    const end = await runUntilStopped(
      () => Effect.onInterrupt(Effect.never, () => close),
      signal,
      60_000,
    )
    expect(end).toEqual({ _tag: "StoppedStarting" })
    expect(isClosed).toBe(true)
  })

  it("that has not started and hangs is left behind", async () => {
    const end = await runUntilStopped(() => Effect.uninterruptible(Effect.never), signal, 60_000)
    expect(end).toEqual({ _tag: "StoppedStarting" })
  })

  it("that has started stops by itself", async () => {
    const server = (started: Effect.Effect<void>) =>
      Effect.andThen(
        started,
        Effect.promise(() => signal),
      )
    const end = await runUntilStopped((started) => Effect.asVoid(server(started)), signal, 60_000)
    expect(end).toEqual({ _tag: "Ended", exit: Exit.void })
  })

  it("that has started and does not stop is overdue", async () => {
    const end = await runUntilStopped(
      (started) => Effect.uninterruptible(Effect.andThen(started, Effect.never)),
      signal,
      10,
    )
    expect(end).toEqual({ _tag: "Overdue" })
  })

  it("that has started is not waited for if somebody interrupts it again", async () => {
    const end = await runUntilStopped(
      (started) => Effect.uninterruptible(Effect.andThen(started, Effect.never)),
      signal,
      60_000,
      Promise.resolve(),
    )
    expect(end).toEqual({ _tag: "CutShort" })
  })
})
