/** Reading an end date out of a parsed body, beside schema libraries and a few lines by hand. */

import { decodeEndDate } from "@tenure/core/internal"
import { Ajv } from "ajv"
import { fullFormats } from "ajv-formats/dist/formats.js"
import * as Result from "effect/Result"
import * as v from "valibot"
import * as z from "zod"
import { type Section, type Settings, rowsOf } from "../measurement.ts"
import { brief, compare, repeat } from "../rounds.ts"
import type { Target } from "../target.ts"

// The rule for all: an integer of 13 digits, or YYYY-MM-DDTHH:mm:ss.sssZ that names a real instant.
// The result for all: milliseconds, or a failure.
const [least, most] = [1_000_000_000_000, 9_999_999_999_999]

/** Returns milliseconds, or `undefined` if the input is not an end date. */
interface Decoder {
  readonly name: string
  readonly decode: (input: unknown) => number | undefined
}

const tenure: Decoder = {
  name: "Tenure",
  decode: (input) => {
    const decoded = decodeEndDate(input)
    return Result.isSuccess(decoded) ? decoded.success : undefined
  },
}

// Its own pattern knows the lengths of months and leap years.
const zodSchema = z.union([
  z.int().min(least).max(most),
  z.iso.datetime({ precision: 3 }).transform(Date.parse),
])

const zod: Decoder = { name: "zod", decode: (input) => zodSchema.safeParse(input).data }

const pattern = /^\d{4}-(0[1-9]|1[0-2])-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/

/** Milliseconds of a text of the right shape. Date.parse reads 30 February as 2 March. */
const parseReal = (text: string): number | undefined => {
  const millis = Date.parse(text)
  return new Date(millis).getUTCDate() === Number(text.slice(8, 10)) ? millis : undefined
}

const valibotSchema = v.union([
  v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most)),
  v.pipe(
    v.string(),
    v.regex(pattern),
    v.check((text) => parseReal(text) !== undefined),
    v.transform(Date.parse),
  ),
])

const valibot: Decoder = {
  name: "valibot",
  decode: (input) => {
    const result = v.safeParse(valibotSchema, input)
    return result.success ? result.output : undefined
  },
}

const validate = new Ajv({ formats: { "date-time": fullFormats["date-time"] } }).compile({
  anyOf: [
    { type: "integer", minimum: least, maximum: most },
    { type: "string", pattern: pattern.source, format: "date-time" },
  ],
})

const millisOf = (input: unknown): number =>
  typeof input === "number" ? input : Date.parse(String(input))

const ajv: Decoder = {
  name: "ajv + ajv-formats",
  decode: (input) => (validate(input) ? millisOf(input) : undefined),
}

// It makes no result as all others do, which tells on numbers, where there is hardly anything else
// to do.
const byHand: Decoder = {
  name: "a pattern and Date.parse",
  decode: (input) => {
    if (typeof input === "string") return pattern.test(input) ? parseReal(input) : undefined
    const isInteger = typeof input === "number" && Number.isInteger(input)
    return isInteger && input >= least && input <= most ? input : undefined
  },
}

const isText = (input: unknown): boolean => typeof input === "string"
const isNumber = (input: unknown): boolean => typeof input === "number"

const libraries = [zod, valibot, ajv]
const peers = [...libraries, byHand]

const valid = [
  "2027-01-01T00:00:00.000Z",
  "2028-02-29T23:59:59.999Z",
  least,
  most,
  1_900_000_000_123,
]
const invalid = [
  "2027-02-30T00:00:00.000Z",
  "2027-02-29T00:00:00.000Z",
  "2027-04-31T00:00:00.000Z",
  "2027-13-01T00:00:00.000Z",
  "2027-01-01T24:00:00.000Z",
  "2027-01-01T23:59:60.000Z",
  "2027-01-01T00:00:00Z",
  "2027-01-01T00:00:00.000+00:00",
  "2027-01-01t00:00:00.000z",
  "tomorrow",
  "",
  least - 1,
  most + 1,
  least + 0.5,
  true,
  null,
  undefined,
  {},
]

/** Sees to it that all keep the same rule. */
const assertSameRule = (): void => {
  for (const [index, input] of [...valid, ...invalid].entries()) {
    const expected = index < valid.length ? millisOf(input) : undefined
    for (const { decode, name } of [tenure, ...peers]) {
      if (decode(input) !== expected) throw new Error(`${name} reads ${String(input)} otherwise`)
    }
  }
}

const asFast: Target = { of: "ratio", atMost: 1 }
const targets = Object.fromEntries(libraries.map(({ name }) => [name, asFast]))

/** One kind of input. */
interface Kind {
  readonly measured: string
  readonly inputs: ReadonlyArray<unknown>
}

const kinds: ReadonlyArray<Kind> = [
  { measured: "end date as ISO text", inputs: valid.filter(isText) },
  { measured: "end date as a number", inputs: valid.filter(isNumber) },
  { measured: "no end date", inputs: invalid },
]

const rowsFor = async ({ inputs, measured }: Kind, settings: Settings) => {
  const contestant = ({ decode, name }: Decoder) => {
    let next = 0
    return repeat(name, () => decode(inputs[next++ % inputs.length]))
  }
  const field = { tenure: contestant(tenure), peers: peers.map(contestant) }
  return rowsOf(measured, "time", await compare(field, brief(settings)), targets)
}

/** The time of reading one value. */
export const decode: Section = {
  name: "decode",
  measure: async (settings) => {
    assertSameRule()
    const rows = []
    for (const kind of kinds) rows.push(...(await rowsFor(kind, settings)))
    return { rows }
  },
}
