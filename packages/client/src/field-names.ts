/**
 * Refuses another spelling of a field, such as `dryRun`, and a field that only other operations have. Further fields
 * are left to the server: TypeScript allows wider objects.
 */

import { fields } from "./operations.ts"
import type { Method, RequestTemplate } from "./request.ts"

/** Returns the words of a name in singular, in lower case and joined: the same for all spellings of a name. */
const stemOf = (name: string): string =>
  name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .map((word) => word.replace(/ies$/, "y").replace(/([^s])s$/, "$1"))
    .join("")

// What the library calls fields in process, by stem.
const namesInProcess: Readonly<Record<string, string>> = {
  by: "extend_by",
  enddate: "extend",
  nevershorten: "mode",
  before: "ending_before",
  olderthan: "after",
  cursor: "after",
  waitmilli: "wait",
  type: "event_types",
  eventtype: "types",
}

/** Returns the least number of letters to insert, remove, replace or swap with the next one. */
const distanceOf = (one: string, other: string): number => {
  const rows = [Array.from({ length: other.length + 1 }, (_, index) => index)]
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const at = (up: number, left: number): number => rows[row - up]?.[column - left] ?? Infinity
      const isSame = one[row - 1] === other[column - 1]
      const isSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      const shifted = Math.min(at(1, 0), current[column - 1] ?? Infinity) + 1
      const swapped = isSwapped ? at(2, 2) + 1 : Infinity
      current.push(Math.min(at(1, 1) + (isSame ? 0 : 1), shifted, swapped))
    }
    rows.push(current)
  }
  return rows[one.length]?.[other.length] ?? Infinity
}

const sorted = (text: string): string => [...text].toSorted().join("")

/** Tells whether a name is probably misspelled. Few letters are near to many other words, unless two are swapped. */
const isNear = (stem: string, known: string): boolean => {
  if (Math.abs(stem.length - known.length) > 2) return false
  const distance = distanceOf(stem, known)
  return distance === 1 && sorted(stem) === sorted(known)
    ? true
    : known.length >= 5 && stem[0] === known[0] && distance <= (known.length < 8 ? 1 : 2)
}

const longestName = 100

/** Returns the field that is meant by a name, whatever its spelling. */
const sameAs = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const stem = stemOf(name)
  const inProcess = namesInProcess[stem]
  return (
    known.find((one) => stemOf(one) === stem) ??
    (inProcess !== undefined && known.includes(inProcess) ? inProcess : undefined)
  )
}

/** Returns the field that is probably meant by a name. If the object has that, too, the name is another. */
const nearTo = (name: string, known: ReadonlyArray<string>, given: object): string | undefined => {
  const stem = stemOf(name)
  return known.find((one) => !Object.hasOwn(given, one) && isNear(stem, stemOf(one)))
}

/**
 * Returns what is wrong with the name of a field, if one is.
 *
 * @param elsewhere - says what is wrong with a name that something else has
 */
export const faultOfNames = (
  given: object,
  known: ReadonlyArray<string>,
  elsewhere: (name: string) => string | undefined = () => undefined,
): string | undefined => {
  for (const [name, value] of Object.entries(given)) {
    if (known.includes(name) || value === undefined || name.length > longestName) continue
    const same = sameAs(name, known)
    const problem = same === undefined ? elsewhere(name) : undefined
    if (problem !== undefined) return `${name} ${problem}`
    const right = same ?? nearTo(name, known, given)
    if (right !== undefined) return `${name} must be written "${right}"`
  }
  return undefined
}

/** Throws a `TypeError` if `faultOfNames` finds a fault. */
export const checkNames = (...args: Parameters<typeof faultOfNames>): void => {
  const fault = faultOfNames(...args)
  if (fault !== undefined) throw new TypeError(fault)
}

/** An operation: its name, and the fields of its input. */
interface Known {
  readonly name: string
  readonly names: ReadonlyArray<string>
  /** The other operations on the same resource. */
  readonly others: () => ReadonlyArray<Known>
}

const operationOf = (resource: Readonly<Record<string, string>>, route: string): Known => {
  const [name = "", ...names] = (resource[route] ?? "").split(" ")
  const others = () =>
    Object.keys(resource)
      .filter((other) => other !== route)
      .map((other) => operationOf(resource, other))
  return { name, names, others }
}

const resultFields = ["end_date", "state", "metadata"]

/** The fields of the second argument of each operation. */
const callFields = ["signal", "idempotencyKey"]

/**
 * Throws if the name of a field of an operation's arguments is wrong.
 *
 * @throws TypeError
 */
export const checkInput = (
  method: Method,
  template: RequestTemplate,
  input: object,
  options: object,
): void => {
  const route = `${method} ${template}`
  const resource = Object.values(fields).find((one) => Object.hasOwn(one, route))
  if (resource === undefined) return
  const { names, others } = operationOf(resource, route)
  // A membership that was returned has fields which say nothing here.
  const isResult = names.includes("user_id") && Object.hasOwn(input, "state")
  const known = isResult ? [...names, ...resultFields] : names
  checkNames(input, known, (name) => {
    if (sameAs(name, callFields) !== undefined) return "must be in the second argument"
    const having = others().filter((other) => sameAs(name, other.names) !== undefined)
    return having.length === 0
      ? undefined
      : `must be left out: it is for ${having.map((other) => other.name).join(", ")}`
  })
  checkNames(options, callFields, (name) =>
    sameAs(name, names) === undefined ? undefined : "must be in the first argument",
  )
}
