import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { describe, expect, it } from "vitest"
import { invariant } from "../../src/base/values.ts"

/** Narrows a type, as a caller does. */
const lengthOf = (text: string | undefined): number => {
  invariant(text !== undefined, "there is no text")
  return text.length
}

describe("an assertion", () => {
  it("lets pass what holds, and narrows its type", () => {
    expect(lengthOf("four")).toBe(4)
  })

  it("throws an error with its message otherwise, which is a defect in an Effect", () => {
    expect(() => lengthOf(undefined)).toThrow(new Error("there is no text"))
    const exit = Effect.runSyncExit(Effect.sync(() => lengthOf(undefined)))
    expect(exit).toEqual(Exit.die(new Error("there is no text")))
  })
})
