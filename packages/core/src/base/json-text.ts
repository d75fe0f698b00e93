/**
 * Detects problems in JSON text that parsing hides: duplicate fields, and numbers that floating point
 * cannot hold.
 */

import { InvalidInput } from "./errors.ts"

// The text is valid JSON, so everything outside strings that looks like a number is one.
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*|[[\]{},]/gs

/** An object or an array not closed yet, and its next value's position. */
interface Level {
  /** The fields so far; `undefined` for an array. */
  readonly fields: Set<string> | undefined
  /** Whether the next text in an object is a field name. */
  isName: boolean
  /** The current field's name, or the position in the array. */
  at: string | number
}

const textOf = (token: string): string =>
  token.includes("\\") ? String(JSON.parse(token)) : token.slice(1, -1)

const plainName = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u

// Longer paths are cut: they are for people.
const shownLevels = 20

const pathOf = (levels: ReadonlyArray<Level>): string =>
  levels
    .slice(0, shownLevels)
    .map(({ at, fields }, index) => {
      if (fields === undefined) return `[${at}]`
      const name = String(at)
      if (!plainName.test(name)) return `[${JSON.stringify(name.slice(0, 80))}]`
      return index === 0 ? name : `.${name}`
    })
    .join("")

const parts = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Tells whether floating point holds a number as it is written, to the last digit. */
const isHeld = (literal: string): boolean => {
  const value = Number(literal)
  const [, whole = "", fraction = "", exponent = "0"] = parts.exec(literal) ?? []
  if (fraction === "" && exponent === "0") return Number.isSafeInteger(value)
  const all = `${whole}${fraction}`
  const digits = all.replace(/^0+/, "").replace(/0+$/, "")
  if (digits === "") return value === 0
  // More digits than this cannot be asked for, and hardly anybody writes them.
  if (!Number.isFinite(value) || digits.length > 100) return false
  const leading = all.length - all.replace(/^0+/, "").length
  const power = Number(exponent) + whole.length - 1 - leading
  const isWritten = (held: string): boolean => {
    const [mantissa = "", heldPower = ""] = held.split("e")
    return Number(heldPower) === power && mantissa.replace(".", "") === digits
  }
  // As JavaScript writes it, or with more digits. With as many, one between two texts is rounded to the greater.
  const size = Math.abs(value)
  return isWritten(size.toExponential()) || isWritten(size.toExponential(digits.length - 1))
}

/** A difference between JSON text and the value parsed from it. */
interface Fault {
  readonly kind: "Repeated" | "NotHeld"
  /** Its position, from the outermost value. */
  readonly levels: ReadonlyArray<Level>
}

/** Returns the differences in text order. The levels hold until the next one is requested. */
function* faultsOf(text: string): Generator<Fault, undefined> {
  const levels: Array<Level> = []
  for (const [token] of text.matchAll(tokens)) {
    const level = levels.at(-1)
    if (token === "{") levels.push({ fields: new Set(), isName: true, at: "" })
    else if (token === "[") levels.push({ fields: undefined, isName: false, at: 0 })
    else if (token === "}" || token === "]") levels.pop()
    else if (token === ",") {
      if (typeof level?.at === "number") level.at++
      else if (level !== undefined) level.isName = true
    } else if (!token.startsWith('"')) {
      if (!isHeld(token)) yield { kind: "NotHeld", levels }
    } else if (level?.fields !== undefined && level.isName) {
      level.at = textOf(token)
      level.isName = false
      if (level.fields.has(level.at)) yield { kind: "Repeated", levels }
      level.fields.add(level.at)
    }
  }
}

const problems = {
  Repeated: "must not be there twice",
  NotHeld: `must be a number that floating point holds, and no whole number beyond ${Number.MAX_SAFE_INTEGER}: send it as text`,
} as const satisfies Record<Fault["kind"], string>

const errorOf = ({ kind, levels }: Fault): InvalidInput =>
  new InvalidInput({ field: pathOf(levels) || "the value", problem: problems[kind] })

/**
 * Returns the first difference between JSON text and its `JSON.parse` result: a duplicate field,
 * because parsing loses one, or a number changed by parsing.
 *
 * @param text - valid JSON
 */
export const faultOfJson = (text: string): InvalidInput | undefined => {
  const { value } = faultsOf(text).next()
  return value && errorOf(value)
}

/** Returns the error for a duplicate field in the outermost object, if it is one of `fields`. */
export const repeatedFields = (
  text: string,
  fields: ReadonlyArray<string>,
): InvalidInput | undefined => {
  for (const fault of faultsOf(text)) {
    const [outermost, ...others] = fault.levels
    const isOf = others.length === 0 && fields.some((field) => field === outermost?.at)
    if (fault.kind === "Repeated" && isOf) return errorOf(fault)
  }
  return undefined
}
