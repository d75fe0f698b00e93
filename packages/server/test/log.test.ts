/** The log escapes text for terminals, and joins the reasons for a failure. */

import { describe, expect, it } from "vitest"
import { printable, reasonsOf } from "../src/log.ts"

describe("text for a terminal", () => {
  it.each([
    ["a control sequence", "\u009b31m", "\\u009b31m"],
    ["an escape", "\u001b[2J", "\\u001b[2J"],
    ["a carriage return", "a\rb", "a\\u000db"],
    ["an override of the direction", "a\u202eb", "a\\u202eb"],
    ["a joiner of no width", "a\u200db", "a\\u200db"],
    ["a tag", "\u{e0041}", "\\udb40\\udc41"],
    ["half of a character", "\ud83d", "\\ud83d"],
  ])("has %s escaped", (_, text, escaped) => {
    expect(printable(text)).toBe(escaped)
  })

  it("keeps what is shown, and remains the same JSON", () => {
    expect(printable("/v2/ü/日本/😀?\n\tat x")).toBe("/v2/ü/日本/😀?\n\tat x")
    const entry = { path: "/\u009b\u202e\u{e0041}" }
    expect(JSON.parse(printable(JSON.stringify(entry)))).toEqual(entry)
  })
})

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
