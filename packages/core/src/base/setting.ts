/**
 * Definitions for values from hosts and clients: options, arguments and request fields. Types, checks,
 * defaults and documents derive from them.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "./errors.ts"
import { Millis } from "./time.ts"
import { getOwn } from "./values.ts"

/** A JSON Schema. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** A value's origin: a host's code, a request's JSON, or its query. In a query, every value is text. */
export type Source = "host" | "json" | "query"

/** A value's definition. A host passes the value as an `I`, and the library uses it as an `O`. */
export interface Setting<out I, out O, out E = InvalidInput> {
  /** Describes a valid value in error messages and in the documentation. */
  readonly expected: string
  /** The default in place of a missing value. */
  readonly default?: I
  /** The property definitions, if the value is an object. */
  readonly fields?: SettingFields
  /** Describes a request's JSON. Options have none. */
  readonly json?: JsonSchema
  /** The name in a request, unless it is the host's name in snake case. */
  readonly wire?: string
  /** Whether the value may be missing. */
  readonly isOptional?: boolean
  /** Checks and converts a value. Errors name the option, for example `webhooks.timeout`. */
  readonly read: (given: unknown, name: string, source?: Source) => Result.Result<O, E>
}

/** Definitions by name. */
export type SettingFields = Readonly<Record<string, Setting<unknown, unknown>>>

/** Definitions by name, some with their own errors. */
export type InputFields = Readonly<Record<string, Setting<unknown, unknown, unknown>>>

/** A value's type as a host passes it. */
export type InputOf<S> = S extends Setting<infer I, unknown, unknown> ? I : never

/** A value's type as the library uses it. */
export type OutputOf<S> = S extends Setting<unknown, infer O, unknown> ? O : never

/** A value's errors. */
export type ErrorOf<S> = S extends Setting<unknown, unknown, infer E> ? E : never

// A mapped type keeps the definitions' doc comments, so that editors show them to a host.
type Inputs<F extends InputFields> = { readonly [Name in keyof F]: InputOf<F[Name]> }

type Optional<F extends InputFields> = {
  [Name in keyof F]: undefined extends InputOf<F[Name]> ? Name : never
}[keyof F]

/** The properties as a host passes them. */
export type InputOfFields<F extends InputFields> = Partial<Pick<Inputs<F>, Optional<F>>> &
  Omit<Inputs<F>, Optional<F>>

/** The properties as the library uses them. */
export type OutputOfFields<F extends InputFields> = {
  readonly [Name in keyof F]: OutputOf<F[Name]>
}

/** The properties' errors. */
export type ErrorOfFields<F extends InputFields> = ErrorOf<F[keyof F]>

/** The definition for an options object. */
export interface Struct<F extends SettingFields> extends Setting<
  Partial<Pick<Inputs<F>, Optional<F>>> & Omit<Inputs<F>, Optional<F>>,
  { readonly [Name in keyof F]: OutputOf<F[Name]> }
> {
  readonly fields: F
}

/** The least and the greatest valid value. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** A duration: text such as `"15 seconds"`, milliseconds, or a `Duration`. */
export type Length =
  | Duration.Duration
  | `${number} ${Duration.Unit | "millisecond" | "milliseconds"}`
  | number

const kindOf = (given: unknown): string => {
  if (typeof given === "string") return "text"
  if (Array.isArray(given)) return "an array"
  if (typeof given === "object" && given !== null) return "an object"
  return typeof given === "function" ? "a function" : String(given)
}

/** Describes an invalid value. */
export const shown = (given: unknown): string => {
  if (typeof given === "string") return JSON.stringify(given.slice(0, 80))
  // Naming the kind says nothing if the kind is right.
  return Array.isArray(given) && given.every(Predicate.isString)
    ? JSON.stringify(given).slice(0, 80)
    : kindOf(given)
}

const invalid = (field: string, problem: string): Result.Result<never, InvalidInput> =>
  Result.fail(new InvalidInput({ field, problem }))

const refuse = (
  name: string,
  expected: string,
  received: string,
): Result.Result<never, InvalidInput> => invalid(name, `must be ${expected}; received ${received}`)

/**
 * Defines a required option.
 *
 * @param expected - describes a valid value, for example `"true or false"`
 * @param parse - returns the value to use, or `undefined` if the given value is invalid
 * @param show - describes an invalid value in the error message, without its secrets
 */
export const custom = <I, O = I>(
  expected: string,
  parse: (given: unknown, source: Source) => O | undefined,
  show: (given: unknown) => string = shown,
): Setting<I, O> => ({
  expected,
  read: (given, name, source = "host") => {
    if (given === undefined) return invalid(name, `is missing: it must be ${expected}`)
    const value = parse(given, source)
    return value === undefined ? refuse(name, expected, show(given)) : Result.succeed(value)
  },
})

/** Adds what a request has in place of the value. */
export const inJson = <I, O, E>(setting: Setting<I, O, E>, json: JsonSchema): Setting<I, O, E> => ({
  ...setting,
  json,
})

/** Reads a value in requests by another definition, with other errors, than from a host. */
export const bySource = <I, O, E1, E2>(
  host: Setting<I, O, E1>,
  request: Setting<unknown, O, E2>,
): Setting<I, O, E1 | E2> => ({
  ...host,
  ...(request.json && { json: request.json }),
  read: (given, name, source = "host") =>
    source === "host" ? host.read(given, name, source) : request.read(given, name, source),
})

/** Sets the name in requests, if it is not the host's name in snake case. */
export const named = <I, O, E>(wire: string, setting: Setting<I, O, E>): Setting<I, O, E> => ({
  ...setting,
  wire,
})

/** Defines a required option with a test for valid values. See `custom` for the parameters. */
export const guarded = <A>(
  expected: string,
  test: (given: unknown) => boolean,
  show?: (given: unknown) => string,
): Setting<A, A> => {
  const isValid = (given: unknown): given is A => test(given)
  return custom(expected, (given) => (isValid(given) ? given : undefined), show)
}

/** Defines a required text with a test. */
export const string = (
  expected: string,
  test: (given: string) => boolean,
): Setting<string, string> => guarded(expected, (given) => typeof given === "string" && test(given))

/** Defines a required text from a list. */
export const oneOf = <const Word extends string>(words: ReadonlyArray<Word>): Setting<Word, Word> =>
  inJson(
    custom(`one of ${words.map((word) => `"${word}"`).join(", ")}`, (given) =>
      words.find((word) => word === given),
    ),
    { type: "string", enum: words },
  )

const truth = new Map([
  ["true", true],
  ["false", false],
])

/** Defines a required boolean. */
export const boolean: Setting<boolean, boolean> = inJson(
  custom("true or false", (given, source) => {
    const value = source === "query" ? truth.get(String(given)) : given
    return Predicate.isBoolean(value) ? value : undefined
  }),
  { type: "boolean" },
)

/** Defines an optional function. */
export const callback = <F extends (...args: never) => unknown>(): Setting<
  F | undefined,
  F | undefined
> => optional(guarded<F>("a function", Predicate.isFunction))

const within = <N extends number>({ least, most }: Range, value: N): N | undefined =>
  value >= least && value <= most ? value : undefined

/** Reads a whole number in a query. Only one notation is valid there. */
const numberIn = (given: unknown): number | undefined =>
  typeof given === "string" && /^(0|[1-9]\d{0,14})$/.test(given) ? Number(given) : undefined

/** Writes a whole number as `1,000`. Unlike `toLocaleString`, this loads no locale data during the import. */
export const grouped = (value: number): string => String(value).replaceAll(/\B(?=(\d{3})+$)/g, ",")

/** Defines a required whole number in a range, by default from 1 to 1,000,000,000. */
export const integer = ({ least = 1, most = 1_000_000_000 }: Partial<Range> = {}): Setting<
  number,
  number
> =>
  inJson(
    custom(`a whole number from ${grouped(least)} to ${grouped(most)}`, (given, source) => {
      const value = source === "query" ? numberIn(given) : given
      return typeof value === "number" && Number.isInteger(value)
        ? within({ least, most }, value)
        : undefined
    }),
    { type: "integer", minimum: least, maximum: most },
  )

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const

/** Writes a duration in milliseconds as `15 seconds`. */
const spelled = (millis: number): string => {
  const [unit, length] = units.find(([, size]) => millis > 0 && millis % size === 0) ?? [
    "millisecond",
    1,
  ]
  const amount = millis / length
  return `${amount} ${unit}${amount === 1 ? "" : "s"}`
}

// Effect reads `millis`, and errors say `milliseconds`.
const toInput = (given: unknown): unknown =>
  typeof given === "string" ? given.replace(/ milliseconds?$/, " millis") : given

const isInput = (
  given: unknown,
): given is Duration.Duration | `${number} ${Duration.Unit}` | number =>
  typeof given === "string" || Number.isFinite(given) || Duration.isDuration(given)

/** Describes a duration range in milliseconds, with an example inside it. */
const durationFrom = ({ least, most }: Range): string => {
  const example = Math.min(Math.max(15_000, least), most)
  return `a duration from ${spelled(least)} to ${spelled(most)}, such as "${spelled(example)}"`
}

/** Defines a required duration in a range in milliseconds, by default from 1 ms to 366 days. */
export const duration = ({ least = 1, most = 366 * 86_400_000 }: Partial<Range> = {}): Setting<
  Length,
  Millis
> =>
  custom(durationFrom({ least, most }), (given) => {
    const input = toInput(given)
    return isInput(input)
      ? Option.match(Duration.fromInput(input), {
          onNone: () => undefined,
          onSome: (length) => within({ least, most }, Millis(Duration.toMillis(length))),
        })
      : undefined
  })

/** Defines a required array whose items have the same definition. */
export const list = <I, O>(item: Setting<I, O>): Setting<ReadonlyArray<I>, ReadonlyArray<O>> => ({
  expected: `an array, each item ${item.expected}`,
  read: (given, name, source) =>
    Array.isArray(given)
      ? Result.all(Array.from(given, (one, index) => item.read(one, `${name}[${index}]`, source)))
      : refuse(name, "an array", shown(given)),
})

/** Makes an option optional, with a default for a missing value. */
export const withDefault = <I, O, E = InvalidInput>(
  setting: Setting<I, O, E>,
  value: NoInfer<I>,
): Setting<I | undefined, O, E> => ({
  ...setting,
  default: value,
  isOptional: true,
  read: (given, name, source) =>
    given === undefined ? setting.read(value, name, "host") : setting.read(given, name, source),
})

/** Makes an option optional, without a default. */
export const optional = <I, O, E = InvalidInput>(
  setting: Setting<I, O, E>,
): Setting<I | undefined, O | undefined, E> => ({
  ...setting,
  isOptional: true,
  read: (given, name, source) =>
    given === undefined ? Result.succeed(undefined) : setting.read(given, name, source),
})

const orValue = <I, O, const Value extends false | null>(
  setting: Setting<I, O>,
  value: Value,
): Setting<I | Value, O | Value> => {
  const expected = `${setting.expected}, or ${value}`
  return {
    ...setting,
    expected,
    ...(setting.json && { json: { anyOf: [setting.json, { const: value }] } }),
    read: (given, name, source) => {
      if (given === value) return Result.succeed(value)
      return Result.mapError(setting.read(given, name, source), ({ field, problem }) => {
        // Only a problem with the whole value describes valid ones. Others, such as a wrong name in an
        // object, stay.
        const widened = field === name ? problem.replace(setting.expected, () => expected) : problem
        return new InvalidInput({ field, problem: widened })
      })
    },
  }
}

/** Adds `false` to an option's valid values. */
export const orFalse = <I, O>(setting: Setting<I, O>): Setting<I | false, O | false> =>
  orValue(setting, false)

/** Adds `null` to an option's valid values. */
export const orNull = <I, O>(setting: Setting<I, O>): Setting<I | null, O | null> =>
  orValue(setting, null)

/** Converts an option's value further, or fails with an error naming the option. */
export const refine = <I, A, B>(
  setting: Setting<I, A>,
  next: (value: A, name: string) => Result.Result<B, InvalidInput>,
): Setting<I, B> => ({
  ...setting,
  read: (given, name, source) =>
    Result.flatMap(setting.read(given, name, source), (value) => next(value, name)),
})

/**
 * Defines an options object. Names without a definition are errors, so that misspelled options do not
 * go unnoticed.
 *
 * @example
 * ```ts
 * import { Setting } from "@tenure/core/internal"
 *
 * const options = Setting.object({
 *   // A doc comment here shows where a host writes the option.
 *   maxPerProject: Setting.withDefault(Setting.integer({ least: 0 }), 50),
 *   onDisabled: Setting.callback<(id: string) => void>(),
 * })
 *
 * interface Options extends Setting.InputOf<typeof options> {}
 *
 * export const perProject = (given: Options = {}): number =>
 *   Setting.parse(options, given).maxPerProject
 * ```
 */
export function object<F extends SettingFields>(fields: F): Struct<F>
export function object(fields: SettingFields): Setting<object, object> {
  const expected = "an object"
  const names = Object.keys(fields)
  const known = names.length === 0 ? "nothing is known here" : `known are ${names.join(", ")}`
  return {
    expected,
    fields,
    read: (given, name) => {
      if (!Predicate.isObject(given)) {
        // Text may be the secret meant for a field in the object.
        return refuse(name || "options", expected, kindOf(given))
      }
      const nameOf = (field: string) => (name === "" ? field : `${name}.${field}`)
      const stranger = Object.keys(given).find((field) => !Object.hasOwn(fields, field))
      if (stranger !== undefined) {
        return invalid(nameOf(stranger), `is unknown: ${known}`)
      }
      return Result.all(
        Object.fromEntries(
          Object.entries(fields).map(([field, setting]) => [
            field,
            setting.read(getOwn(given, field), nameOf(field)),
          ]),
        ),
      )
    },
  }
}

/**
 * Checks and converts a host's options.
 *
 * @param given - the options; if missing, every option has its default
 * @returns an effect that fails with `InvalidInput` if an option is invalid, missing or unknown
 */
export const decode = <O>(
  setting: Setting<unknown, O>,
  given: unknown = {},
): Effect.Effect<O, InvalidInput> => Effect.fromResult(setting.read(given, ""))

/** Checks and converts a host's options as `read` does, but throws the `InvalidInput`. */
export const parse = <O>(setting: Setting<unknown, O>, given: unknown = {}): O =>
  Result.getOrThrow(setting.read(given, ""))
