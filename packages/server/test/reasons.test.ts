import { describe, expect, it } from "vitest"
import { reasonsOf } from "../src/reasons.ts"

const chain = (...messages: ReadonlyArray<string>): Error | undefined =>
  messages.reduceRight<Error | undefined>(
    (cause, message) => new Error(message, { cause }),
    undefined,
  )

describe("the reasons for a failure", () => {
  it.each([
    ["its message", chain("no database"), "no database"],
    [
      "its causes",
      chain("The store does not answer.", "refused"),
      "The store does not answer: refused",
    ],
    ["each message once", chain("a", "a", "b"), "a: b"],
    ["what is no error", "text", "text"],
  ])("are %s", (_name, error, expected) => {
    expect(reasonsOf(error)).toBe(expected)
  })

  it("end, even if they are circular", () => {
    const error = new Error("a")
    error.cause = error
    expect(reasonsOf(error)).toBe("a")
  })
})
