import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { faultOfJson, repeatedFields } from "../../src/base/json-text.ts"

const fieldOf = (text: string) => faultOfJson(text)?.field

describe("JsonText", () => {
  it.each([
    "12345678901234567890",
    "9007199254740993",
    "9007199254740992",
    "-9007199254740993",
    "0.12345678901234567",
    "1.00000000000000000001",
    "4070908800000.00001",
    "1e400",
    "-1e400",
    "1e-400",
    "12345678901234567890e-3",
    `0.${"1".repeat(200)}`,
  ])("names the path of %s, which floating point cannot hold", (literal) => {
    expect(fieldOf(`{"data":{"order":${literal}}}`)).toBe("data.order")
    expect(fieldOf(`{"data":[1,{"a b":[0, ${literal} ]}]}`)).toBe('data[1]["a b"][1]')
    expect(fieldOf(literal)).toBe("the value")
  })

  it.each([
    "0",
    "-0",
    "0.0",
    "0e0",
    "9007199254740991",
    "-9007199254740991",
    "19.99",
    "1.10",
    "100.0",
    "1e21",
    "1E+2",
    "1.5e300",
    "5e-324",
    "0.10000000000000001",
    "0.1000000000000000055511151231257827",
    "3.141592653589793",
    "579802263481996.2",
  ])("lets %s pass", (literal) => {
    expect(faultOfJson(`{"data":${literal},"more":[${literal}]}`)).toBeUndefined()
  })

  it("lets pass every number that JSON.stringify writes, but whole ones that are not safe", () => {
    fc.assert(
      fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
        const text = JSON.stringify(value)
        const isUnsafe = /^-?\d+$/.test(text) && !Number.isSafeInteger(value)
        expect(faultOfJson(text) !== undefined).toBe(isUnsafe)
      }),
    )
  })

  it("lets pass every value that JSON.stringify writes with safe numbers", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 0, max: 2 }), (value, space) => {
        const text = JSON.stringify(value, null, space)
        if (!/\d{16}/.test(text)) expect(faultOfJson(text)).toBeUndefined()
      }),
    )
  })

  it.each([
    ['{"a":1,"a":1}', "a"],
    ['{"a":{"b":[{"c":1},{"c":1,"d":2,"c":3}]}}', "a.b[1].c"],
    [String.raw`{"a":1,"\u0061":2}`, "a"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{ "a" : {} , "" : 1, "" : 2 }', '[""]'],
  ])("names the field that is there twice: %s", (text, field) => {
    expect(fieldOf(text)).toBe(field)
  })

  it("takes nothing in a string for a field or a number", () => {
    const text = String.raw`{"a":"{\"b\":1,\"b\":12345678901234567890}","c":"\\","d":["a","a"],"e":{"a":"a"}}`
    expect(faultOfJson(text)).toBeUndefined()
  })

  it("finds those of the outermost fields that matter", () => {
    const text = '{"x":1,"x":12345678901234567890,"b":{"a":1,"a":2},"a":{"x":1},"a":2}'
    expect(repeatedFields(text, ["b", "a"])?.field).toBe("a")
    expect(repeatedFields(text, ["b", "c"])).toBeUndefined()
    expect(repeatedFields('{"a":1e400}', ["a"])).toBeUndefined()
    expect(repeatedFields('[{"a":1,"a":2}]', ["a"])).toBeUndefined()
  })

  it("goes through deeply nested text in bounded time", () => {
    const levels = 100_000
    expect(faultOfJson(`${"[".repeat(levels)}1e400${"]".repeat(levels)}`)).toBeDefined()
    expect(faultOfJson(`"${"\\\\".repeat(levels)}"`)).toBeUndefined()
  })
})
