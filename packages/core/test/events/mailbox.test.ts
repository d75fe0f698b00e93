import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { SingleSlotQueue } from "../../src/events/listeners.ts"

it.effect("hands a message to whom waits, or keeps it until somebody comes", () =>
  Effect.gen(function* () {
    const mailbox = new SingleSlotQueue<string>()
    mailbox.put("a")
    expect(mailbox.isAwaited).toBe(false)
    expect(yield* mailbox.take).toBe("a")
    const fiber = yield* Effect.forkChild(mailbox.take, { startImmediately: true })
    expect(mailbox.isAwaited).toBe(true)
    mailbox.put("b")
    expect(mailbox.isAwaited).toBe(false)
    expect(yield* Fiber.join(fiber)).toBe("b")
  }),
)

it.effect("hands the last message again and again, in place of what waits", () =>
  Effect.gen(function* () {
    const mailbox = new SingleSlotQueue<string>()
    mailbox.put("a")
    mailbox.end("last")
    mailbox.end("later")
    expect(yield* mailbox.take).toBe("last")
    expect(yield* mailbox.take).toBe("last")
  }),
)

it.effect("keeps a message for others than whom has left", () =>
  Effect.gen(function* () {
    const mailbox = new SingleSlotQueue<string>()
    const fiber = yield* Effect.forkChild(mailbox.take, { startImmediately: true })
    yield* Fiber.interrupt(fiber)
    mailbox.put("a")
    expect(yield* mailbox.take).toBe("a")
  }),
)
