import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import * as Setting from "../../src/base/setting.ts"
import {
  applyHeadersPatch,
  formatHeaders,
  headersPatchSetting,
  headersSetting,
  parseHeaders,
} from "../../src/webhooks/webhook-headers.ts"

const names = fc.constantFrom("x-a", "x-b", "authorization", "__proto__", "toString")
const values = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,20}[\x21-\x7e])?$/)
const headers = fc
  .array(fc.tuple(names, values), { maxLength: 5 })
  .map((pairs) => new Map(pairs.map(([name, value]) => [name.toLowerCase(), value])))
const patches = fc
  .array(fc.tuple(names, fc.option(values)), { maxLength: 5 })
  .map((pairs) => new Map(pairs.map(([name, value]) => [name.toLowerCase(), value])))

/** Returns why headers are refused; `undefined` if they are not. */
const fault = (given: unknown): string | undefined => {
  const read = headersSetting.read(given, "headers")
  return Result.isFailure(read) ? read.failure.message : undefined
}

describe("headers", () => {
  it("are what they were after they were stored as text, in one order", () => {
    fc.assert(
      fc.property(headers, (before) => {
        const text = formatHeaders(before)
        expect(parseHeaders(text)).toEqual(before)
        expect(formatHeaders(new Map([...before].toReversed()))).toBe(text)
      }),
    )
  })

  it("are merged as RFC 7396 says", () => {
    fc.assert(
      fc.property(headers, patches, (before, patch) => {
        const after = applyHeadersPatch(before, patch)
        for (const name of new Set([...before.keys(), ...patch.keys(), ...after.keys()])) {
          const given = patch.has(name) ? patch.get(name) : before.get(name)
          expect(after.get(name)).toBe(given ?? undefined)
        }
        expect(applyHeadersPatch(after, patch)).toEqual(after)
      }),
    )
  })

  it("are read whatever their names are, without case", () => {
    const given = JSON.parse('{ "__proto__": "a", "X-Tenant": "b c", "toString": "d" }')
    const read = Result.getOrThrow(headersSetting.read(given, "headers"))
    expect([...read]).toEqual([
      ["__proto__", "a"],
      ["x-tenant", "b c"],
      ["tostring", "d"],
    ])
    const removed = headersPatchSetting.read({ "X-A": null }, "headers")
    expect([...Result.getOrThrow(removed)]).toEqual([["x-a", null]])
  })

  it.each([
    [{ "": "secret" }, "HTTP tokens"],
    [{ "x a": "secret" }, "HTTP tokens"],
    [{ ["x".repeat(65)]: "secret" }, "HTTP tokens"],
    [{ Host: "secret" }, "must not have host"],
    [{ "Content-Language": "secret" }, "must not have content-language"],
    [{ "proxy-authorization": "secret" }, "must not have proxy-authorization"],
    [{ "webhook-anything": "secret" }, "must not have webhook-anything"],
    [{ TraceParent: "secret" }, "must not have traceparent"],
    [{ "x-a": "secret", "X-A": "secret" }, "x-a once"],
    [{ "x-a": "" }, "in x-a"],
    [{ "x-a": " secret" }, "in x-a"],
    [{ "x-a": "secret\n" }, "in x-a"],
    [{ "x-a": "secrét" }, "in x-a"],
    [{ "x-a": "secret".repeat(200) }, "in x-a"],
    [{ "x-a": null }, "in x-a"],
    [Object.fromEntries(Array.from({ length: 11 }, (_, n) => [`x-${n}`, "secret"])), "at most 10"],
    ["secret", "an object"],
    [["secret"], "an object"],
  ])("are refused, without what they say: %j", (given, expected) => {
    expect(fault(given)).toContain(expected)
    expect(fault(given)).not.toContain("secret")
  })

  it("are refused in a change as in a new webhook", () => {
    const patch = Setting.orNull(headersPatchSetting)
    expect(Result.getOrThrow(patch.read(null, "headers"))).toBeNull()
    const problemOf = (given: unknown) =>
      Result.getOrThrow(Result.flip(patch.read(given, "headers"))).problem
    expect(problemOf({ Host: "secret" })).toBe(
      "must not have host, which is reserved for Tenure and HTTP",
    )
    expect(problemOf("secret")).toBe(`must be ${patch.expected}`)
  })

  it("are read from text that is theirs only", () => {
    for (const text of ["", "whsec_", "{}", "[1]", '[["a"]]', '[["a",1]]', "[["]) {
      expect(parseHeaders(text)).toBeUndefined()
    }
  })
})
