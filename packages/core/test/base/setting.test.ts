import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, expectTypeOf, it } from "vitest"
import { InvalidInput } from "../../src/base/errors.ts"
import * as Setting from "../../src/base/setting.ts"
import { type TenureOptions, tenureLayer, tenureOptions } from "../../src/tenure.ts"

const messageOf = (setting: Setting.Setting<unknown, unknown>, given: unknown): string => {
  const result = setting.read(given, "option")
  return Result.isFailure(result) ? result.failure.message : "valid"
}

describe("a duration", () => {
  const hour = Setting.duration({ most: 3_600_000 })
  const units = { millis: 1, seconds: 1000, minutes: 60_000, hours: 3_600_000 }

  it.each([
    [15_000, 15_000],
    [Duration.seconds(15), 15_000],
    ["1 millisecond", 1],
    ["300 milliseconds", 300],
    ["300 millis", 300],
    ["1 second", 1000],
    ["15 seconds", 15_000],
    ["1 minute", 60_000],
    ["30 minutes", 1_800_000],
    ["1 hour", 3_600_000],
    ["2 hours", 7_200_000],
    ["1 day", 86_400_000],
    ["366 days", 31_622_400_000],
    ["2 weeks", 1_209_600_000],
  ])("may be %s", (given, millis) => {
    expect(Setting.duration().read(given, "option")).toEqual(Result.succeed(millis))
  })

  it("is valid exactly in its range, whatever its unit", () => {
    const number = fc.integer({ min: -10, max: 5_000_000 })
    fc.assert(
      fc.property(number, fc.constantFrom(...Object.entries(units)), (n, [unit, factor]) => {
        const isValid = n >= 1 && n * factor <= 3_600_000
        expect(Result.isSuccess(hour.read(`${n} ${unit}`, "option"))).toBe(isValid)
      }),
    )
  })

  const wrong = ["15s", "", "seconds", "1 fortnight", NaN, Infinity, -1, null, true, 5n, [15, 0]]

  it.each([...wrong, { seconds: 15 }])("cannot be %s", (given) => {
    expect(messageOf(hour, given)).toMatch(
      /^option must be a duration from 1 millisecond to 1 hour, such as "15 seconds"; received /,
    )
  })
})

describe("the example of a duration", () => {
  it.each([
    [{ least: 86_400_000 }, "1 day"],
    [{ most: 10_000 }, "10 seconds"],
    [{ most: 500 }, "500 milliseconds"],
    [{}, "15 seconds"],
  ])("is in the range %j, and is valid", (range, example) => {
    const duration = Setting.duration(range)
    expect(duration.expected).toMatch(new RegExp(`, such as "${example}"$`))
    expect(messageOf(duration, example)).toBe("valid")
  })
})

describe("a count", () => {
  it.each([0, 11, 1.5, NaN, Infinity, "5", 5n, null])("from 1 to 10 cannot be %s", (given) => {
    expect(messageOf(Setting.integer({ most: 10 }), given)).toMatch(
      /^option must be a whole number from 1 to 10; received /,
    )
  })

  it("has a range that is written with commas", () => {
    expect(Setting.integer().expected).toBe("a whole number from 1 to 1,000,000,000")
    expect(Setting.integer({ most: 100 }).expected).toBe("a whole number from 1 to 100")
  })
})

describe("a refused list", () => {
  const setting = Setting.guarded("an array of one id", () => false)

  it.each([
    [["a", "b c"], 'received ["a","b c"]'],
    [[], "received []"],
    [["a", 1], "received an array"],
  ])("%j is named as far as it is text", (given, end) => {
    expect(messageOf(setting, given)).toBe(`option must be an array of one id; ${end}`)
  })
})

describe("an object of options", () => {
  const definition = Setting.object({
    needed: Setting.boolean,
    size: Setting.withDefault(Setting.integer(), 5),
    name: Setting.optional(Setting.oneOf(["one", "two"])),
    inner: Setting.withDefault(
      Setting.object({ list: Setting.withDefault(Setting.list(Setting.boolean), []) }),
      {},
    ),
    off: Setting.withDefault(Setting.orFalse(Setting.integer()), false),
  })

  it("has defaults, all the way down", () => {
    expect(Setting.parse(definition, { needed: true })).toEqual({
      needed: true,
      size: 5,
      name: undefined,
      inner: { list: [] },
      off: false,
    })
  })

  it.each([
    [undefined, "needed is missing: it must be true or false"],
    [{ needed: undefined }, "needed is missing: it must be true or false"],
    [
      { needed: true, size: null },
      "size must be a whole number from 1 to 1,000,000,000; received null",
    ],
    [{ needed: true, nmae: "one" }, "nmae is unknown: known are needed, size, name, inner, off"],
    [{ needed: true, inner: { lst: [] } }, "inner.lst is unknown: known are list"],
    [
      { needed: true, inner: { list: [true, 1] } },
      "inner.list[1] must be true or false; received 1",
    ],
    [{ needed: true, inner: [] }, "inner must be an object; received an array"],
    [
      { needed: true, off: true },
      "off must be a whole number from 1 to 1,000,000,000, or false; received true",
    ],
    [() => {}, "options must be an object; received a function"],
    [
      JSON.parse('{ "needed": true, "__proto__": {} }'),
      "__proto__ is unknown: known are needed, size, name, inner, off",
    ],
  ])("%s is refused: %s", (given, message) => {
    expect(() => Setting.parse(definition, given)).toThrow(message)
  })

  it("has no property but its own", () => {
    const inherited = { needed: false, size: 7, inner: { list: [true] } }
    const given: object = Object.create(inherited, {
      needed: { value: true, enumerable: true },
      inner: { value: Object.create(inherited.inner), enumerable: true },
    })
    expect(definition.read(given, "")).toEqual(
      Result.succeed({ needed: true, size: 5, name: undefined, inner: { list: [] }, off: false }),
    )
    expect(messageOf(definition, Object.create(inherited))).toBe(
      "option.needed is missing: it must be true or false",
    )
  })

  it("is copied, so that later changes have no effect", () => {
    const list = [true]
    const { inner } = Setting.parse(definition, { needed: true, inner: { list } })
    list.push(false)
    expect(inner.list).toEqual([true])
  })

  it("has the type of its definition", () => {
    expectTypeOf<Setting.InputOf<typeof definition>>().branded.toEqualTypeOf<{
      readonly needed: boolean
      readonly size?: number | undefined
      readonly name?: "one" | "two" | undefined
      readonly inner?: { readonly list?: ReadonlyArray<boolean> | undefined } | undefined
      readonly off?: number | false | undefined
    }>()
    expectTypeOf<Setting.OutputOf<typeof definition>>().toEqualTypeOf<{
      readonly needed: boolean
      readonly size: number
      readonly name: "one" | "two" | undefined
      readonly inner: { readonly list: ReadonlyArray<boolean> }
      readonly off: number | false
    }>()
  })

  it("shows no secret in its error", () => {
    const secret = Setting.guarded<string>(
      "a URL",
      () => false,
      () => "another text",
    )
    expect(messageOf(secret, "password")).toBe("option must be a URL; received another text")
  })
})

describe("the options of Tenure", () => {
  it("have the type of their definitions", () => {
    expectTypeOf<Setting.InputOf<typeof tenureOptions>>().branded.toEqualTypeOf<TenureOptions>()
  })

  it("do not compile with a typing error", () => {
    // @ts-expect-error: unknown.
    tenureLayer({ basepath: "/x" })
    // @ts-expect-error: unknown.
    tenureLayer({ rateLimits: { suspension: { refusal: 3 } } })
    // @ts-expect-error: unknown.
    tenureLayer({ rateLimits: { perKey: { limit: 1, window: 1, capacty: 1 } } })
    // @ts-expect-error: the window is missing.
    tenureLayer({ rateLimits: { perKey: { limit: 1 } } })
    // @ts-expect-error: no duration.
    tenureLayer({ webhooks: { timeout: "15s" } })
  })

  it("of any shape are read, or refused with a clear error", () => {
    const names = fc.constantFrom(
      ...Object.keys(tenureOptions.fields),
      ...Object.keys(tenureOptions.fields.webhooks.fields ?? {}),
      "perKey",
      "limit",
      "suspension",
      "stray",
    )
    const values = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc.anything(),
        fc.dictionary(names, tie("value"), { maxKeys: 4 }),
        fc.array(tie("value"), { maxLength: 3 }),
      ),
    })).value
    fc.assert(
      fc.property(values, (given) => {
        const result = tenureOptions.read(given, "")
        if (Result.isSuccess(result)) return
        expect(result.failure).toBeInstanceOf(InvalidInput)
        expect(result.failure.message.startsWith(`${result.failure.field} `)).toBe(true)
      }),
    )
  })
})
