/** Reading options: where one is not what it has to be, a clear error names it. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { InvalidInput } from "./InvalidInput.ts"

/** The least and the greatest value that an option may have. */
export interface Range {
  readonly least: number
  readonly most: number
}

const day = 86_400_000

const refuse = (field: string, expected: string): Effect.Effect<never, InvalidInput> =>
  Effect.fail(new InvalidInput({ field, message: `${field}: expected ${expected}` }))

const inRange = (
  field: string,
  value: number,
  { least, most }: Range,
  what: string,
): Effect.Effect<number, InvalidInput> =>
  value >= least && value <= most
    ? Effect.succeed(value)
    : refuse(field, `${what} from ${least} to ${most}`)

/** One of a few words. */
export const oneOf = <const Word extends string>(
  field: string,
  value: Word,
  words: ReadonlyArray<Word>,
): Effect.Effect<Word, InvalidInput> =>
  words.includes(value) ? Effect.succeed(value) : refuse(field, `one of ${words.join(", ")}`)

/** Yes or no. */
export const flag = (field: string, value: boolean): Effect.Effect<boolean, InvalidInput> =>
  typeof value === "boolean" ? Effect.succeed(value) : refuse(field, "true or false")

/** Several values. */
export const list = <A>(
  field: string,
  values: ReadonlyArray<A>,
): Effect.Effect<ReadonlyArray<A>, InvalidInput> =>
  Array.isArray(values) ? Effect.succeed(values) : refuse(field, "an array")

/** A layer, such as the stores. */
export const layer = <L extends Layer.Any>(
  field: string,
  value: L,
): Effect.Effect<L, InvalidInput> =>
  Layer.isLayer(value) ? Effect.succeed(value) : refuse(field, "a layer")

/** A function, or none. */
export const callback = <F extends (...args: never) => unknown>(
  field: string,
  value: F | undefined,
): Effect.Effect<F | undefined, InvalidInput> =>
  value === undefined || typeof value === "function"
    ? Effect.succeed(value)
    : refuse(field, "a function")

/**
 * Options, of which none is unknown: a name with a typing error would go unnoticed otherwise.
 *
 * @param field - the option that these are within, such as `webhooks`; empty for those of the whole
 */
export const known = <Options extends object>(
  field: string,
  options: Options,
  names: Readonly<Record<keyof Options, true>>,
): Effect.Effect<void, InvalidInput> => {
  if (!Predicate.isObject(options)) return refuse(field, "an object")
  const stranger = Object.keys(options).find((name) => !Object.hasOwn(names, name))
  return stranger === undefined
    ? Effect.void
    : refuse(
        field === "" ? stranger : `${field}.${stranger}`,
        `one of the options ${Object.keys(names).join(", ")}`,
      )
}

/** A whole number; 1 to 1,000,000,000 by default. */
export const count = (
  field: string,
  value: number,
  range: Range = { least: 1, most: 1_000_000_000 },
): Effect.Effect<number, InvalidInput> =>
  inRange(field, Number.isInteger(value) ? value : NaN, range, "a whole number")

/** A duration in milliseconds; 1 ms to 366 days by default. */
export const millis = (
  field: string,
  value: Duration.Input,
  range: Range = { least: 1, most: 366 * day },
): Effect.Effect<number, InvalidInput> =>
  inRange(
    field,
    // What is not a number would be a duration of no length.
    Number.isNaN(value)
      ? NaN
      : Option.match(Duration.fromInput(value), { onNone: () => NaN, onSome: Duration.toMillis }),
    range,
    "a duration in milliseconds",
  )
