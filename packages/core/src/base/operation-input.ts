/** Operation inputs: one declaration reads hosts' arguments and request fields. */

import * as Result from "effect/Result"
import { InvalidInput } from "./errors.ts"
import type {
  ErrorOfFields,
  InputFields,
  InputOfFields,
  OutputOfFields,
  Setting,
  Source,
} from "./setting.ts"

/** The part of a request that an operation reads: path ids, and body or query fields. */
export interface RequestInput<out O, out E> {
  readonly path: InputFields
  readonly fields: InputFields
  /** The field names in requests. */
  readonly wireNames: ReadonlyArray<string>
  /** Whether at least one of some fields is needed. */
  readonly needsField: boolean
  /** The alternative inputs, if a request has one of several. */
  readonly alternatives?: ReadonlyArray<RequestInput<unknown, unknown>>
  /**
   * Reads a request.
   *
   * @param path - the decoded path ids
   * @param given - its body or query
   */
  readonly fromRequest: (
    path: object,
    given: object,
    source: Source,
  ) => Result.Result<O, InvalidInput | E>
}

/** An operation's input, also callable by a host. The host passes an `I`, and the act receives an `O`. */
export interface Input<in I, out O, out E> extends RequestInput<O, E> {
  /** Reads the host's input: its own properties, and only declared ones. */
  readonly fromHost: (given: I) => Result.Result<O, InvalidInput | E>
  /**
   * Returns the given values by name, to tell the call from others with its idempotency key. A default
   * counts as absent, so that keys stay valid when a setting is added.
   */
  readonly fingerprintOf: (decoded: object) => unknown
}

/** The input as an act receives it. */
export type Decoded<I> = I extends RequestInput<infer O, unknown> ? O : never

/** The input as a host passes it. */
export type HostInputOf<I> = I extends Input<infer H, unknown, unknown> ? H : never

/** Returns a field's name in requests. */
export const wireNameOf = (
  name: string,
  { wire }: Pick<Setting<unknown, unknown>, "wire">,
): string => wire ?? name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

interface Row {
  readonly name: string
  readonly wire: string
  readonly setting: Setting<unknown, unknown, unknown>
  /** The decoded value for a missing one, if it may be missing. */
  readonly missing: { readonly value: unknown; readonly text: string | undefined } | undefined
}

const textOf = (value: unknown): string | undefined => {
  try {
    return JSON.stringify(value instanceof Map || value instanceof Set ? [...value] : value)
  } catch {
    // The act refuses values that JSON cannot express.
    return undefined
  }
}

const rowsOf = (fields: InputFields): ReadonlyArray<Row> =>
  Object.entries(fields).map(([name, setting]) => {
    const byDefault = setting.isOptional === true ? setting.read(undefined, name) : undefined
    const missing =
      byDefault && Result.isSuccess(byDefault)
        ? { value: byDefault.success, text: textOf(byDefault.success) }
        : undefined
    return { name, wire: wireNameOf(name, setting), setting, missing }
  })

/** Returns an own property's value. */
export const ownOf = (given: object, name: string): unknown =>
  Object.hasOwn(given, name) ? Reflect.get(given, name) : undefined

/** The kind of field name used by a source. */
const keyIn = (source: Source) => (source === "host" ? "name" : "wire")

/** Reads fields in their order. Returns the first error, if there is one. */
const readRows = (
  rows: ReadonlyArray<Row>,
  given: object,
  source: Source,
  decoded: Record<string, unknown>,
): Result.Result<object, unknown> => {
  const which = keyIn(source)
  for (const row of rows) {
    const key = row[which]
    const value = ownOf(given, key)
    if (value === undefined && row.missing !== undefined) {
      decoded[row.name] = row.missing.value
      continue
    }
    const read = row.setting.read(value, key, source)
    if (Result.isFailure(read)) return Result.fail(read.failure)
    decoded[row.name] = read.success
  }
  return Result.succeed(decoded)
}

/** The name's letters and digits. */
export const lettersOf = (name: string): string =>
  name.replaceAll(/[^\p{L}\p{N}]/gu, "").toLowerCase()

/** Makes the function that finds undeclared fields; in an open input, only other spellings of its fields. */
const makeStranger = (wireNames: ReadonlyArray<string>, isOpen: boolean) => {
  const known = new Set(wireNames)
  const list =
    wireNames.length === 0 ? "nothing is known here" : `known are ${wireNames.join(", ")}`
  // A single-part word has only one spelling.
  const near = new Map(
    wireNames.filter((name) => name.includes("_")).map((name) => [lettersOf(name), name]),
  )
  return (given: object): InvalidInput | undefined => {
    for (const name of Object.keys(given)) {
      if (known.has(name)) continue
      if (!isOpen) return new InvalidInput({ field: name, problem: `is unknown: ${list}` })
      // The client would hope in vain for an effect.
      const right = near.get(lettersOf(name))
      if (right !== undefined)
        return new InvalidInput({ field: name, problem: `must be written "${right}"` })
    }
    return undefined
  }
}

interface InputRules {
  readonly needsField?: boolean | ReadonlyArray<string>
  readonly isOpen?: boolean
}

/**
 * Declares an operation's input.
 *
 * @param path - the ids in its path
 * @param fields - the fields in its body or query
 * @param rules.needsField - refuses an input without any field, or without any of those with these names
 * @param rules.isOpen - ignores undeclared request fields
 */
export function input<P extends InputFields, F extends InputFields>(
  path: P,
  fields: F,
  rules?: InputRules,
): Input<InputOfFields<P & F>, OutputOfFields<P & F>, ErrorOfFields<P> | ErrorOfFields<F>>
export function input(
  path: InputFields,
  fields: InputFields,
  { isOpen = false, needsField = false }: InputRules = {},
): Input<never, object, unknown> {
  const pathRows = rowsOf(path)
  const fieldRows = rowsOf(fields)
  const allRows = [...pathRows, ...fieldRows]
  const wireNames = fieldRows.map(({ wire }) => wire)
  const neededRows =
    typeof needsField === "boolean"
      ? fieldRows
      : fieldRows.filter(({ name }) => needsField.includes(name))
  const strangerIn = makeStranger(wireNames, isOpen)
  const faultOfNone = (given: object, source: Source): InvalidInput | undefined => {
    if (needsField === false) return undefined
    const names = neededRows.map((row) => row[keyIn(source)])
    return names.every((name) => ownOf(given, name) === undefined)
      ? new InvalidInput({ field: names[0] ?? "", problem: "or another setting is needed" })
      : undefined
  }
  return {
    path,
    fields,
    wireNames,
    needsField: needsField !== false,
    fromHost: (given) => {
      const decoded = {}
      const ids = readRows(pathRows, given, "host", decoded)
      if (Result.isFailure(ids)) return ids
      const none = faultOfNone(given, "host")
      return none === undefined ? readRows(fieldRows, given, "host", decoded) : Result.fail(none)
    },
    fromRequest: (ids, given, source) => {
      const stranger = strangerIn(given)
      if (stranger !== undefined && !isOpen) return Result.fail(stranger)
      const none = faultOfNone(given, source)
      if (none !== undefined) return Result.fail(none)
      const decoded = {}
      const read = readRows(fieldRows, given, source, decoded)
      if (Result.isFailure(read)) return read
      return stranger === undefined
        ? readRows(pathRows, ids, "json", decoded)
        : Result.fail(stranger)
    },
    fingerprintOf: (decoded) =>
      allRows
        .flatMap(({ missing, name }) => {
          const text = textOf(ownOf(decoded, name))
          return text === undefined || text === missing?.text ? [] : [[name, text] as const]
        })
        .toSorted(([one], [other]) => (one < other ? -1 : 1)),
  }
}

/**
 * Declares that a request has the fields from one of two inputs with the same ids. The first field in
 * each is required, and tells which input is meant.
 */
export const either = <One, Other, E1, E2>(
  one: RequestInput<One, E1>,
  other: RequestInput<Other, E2>,
): RequestInput<One | Other, E1 | E2> => {
  const [first = ""] = one.wireNames
  const [second = ""] = other.wireNames
  const neither = new InvalidInput({ field: first, problem: `or ${second} is needed, not both` })
  return {
    ...one,
    alternatives: [one, other],
    fromRequest: (path, given, source) => {
      const isOne = Object.hasOwn(given, first)
      if (isOne === Object.hasOwn(given, second)) return Result.fail(neither)
      return (isOne ? one : other).fromRequest(path, given, source)
    },
  }
}

type AnyInput = Input<never, unknown, unknown>

type ErrorOf<I> = I extends Input<never, unknown, infer E> ? E : never

/**
 * Declares alternative inputs for one call: the first of `others` whose field is given, and otherwise `one`.
 *
 * @param names - for each of `others`, its field as hosts have it
 */
export function chosenBy<I, O, E, Others extends ReadonlyArray<AnyInput>>(
  names: ReadonlyArray<string>,
  one: Input<I, O, E>,
  ...others: Others
): Input<I | HostInputOf<Others[number]>, O | Decoded<Others[number]>, E | ErrorOf<Others[number]>>
export function chosenBy(
  names: ReadonlyArray<string>,
  one: AnyInput,
  ...others: ReadonlyArray<AnyInput>
): AnyInput {
  const choices = others.map((other, index) => {
    const name = names[index] ?? ""
    return { other, name, wire: wireNameOf(name, other.fields[name] ?? {}) }
  })
  const all = [one, ...others]
  const chosen = (given: object, key: "name" | "wire"): AnyInput => {
    for (const choice of choices) if (ownOf(given, choice[key]) !== undefined) return choice.other
    return one
  }
  return {
    ...one,
    fields: Object.assign({}, ...all.map(({ fields }) => fields)),
    wireNames: [...new Set(all.flatMap(({ wireNames }) => wireNames))],
    alternatives: all,
    fromHost: (given) => chosen(given, "name").fromHost(given),
    fromRequest: (path, given, source) => chosen(given, "wire").fromRequest(path, given, source),
    fingerprintOf: (decoded) => chosen(decoded, "name").fingerprintOf(decoded),
  }
}
