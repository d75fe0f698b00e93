/** Variables of the environment, each of which sets an option. */

import { InvalidInput, type RateLimit } from "@tenure/core"
import { Setting } from "@tenure/core/internal"
import * as Result from "effect/Result"

type Option<A> = Setting.Setting<unknown, A>

/** A variable that sets an option. */
export interface Variable<out A> {
  readonly name: string
  /** The definition of the option, whose default holds if the variable is not set. */
  readonly option: Option<unknown>
  /** Reads the text of the variable. Errors name the variable, and say what the option takes. */
  readonly read: (text: string | undefined) => Result.Result<A, InvalidInput>
}

type Convert<A> = (text: string) => A

/** Makes a variable whose value is what the definition of its option makes of the text. */
const making =
  (convert: Convert<unknown>) =>
  <A>(name: string, option: Option<A>): Variable<A> => ({
    name,
    option,
    read: (given) => {
      if (given === "") {
        const problem = "is empty: give it a value, or leave it out"
        return Result.fail(new InvalidInput({ field: name, problem }))
      }
      return option.read(given === undefined ? undefined : convert(given), name)
    },
  })

/** Makes a variable whose value is the converted text, if the definition of its option accepts it. */
const checking = <A>(
  name: string,
  option: Option<unknown>,
  convert: Convert<A>,
): Variable<A | undefined> => {
  const { read } = making(convert)(name, option)
  return {
    name,
    option,
    read: (given) =>
      Result.map(read(given), () => (given === undefined ? undefined : convert(given))),
  }
}

const isNumber = (given: string): boolean => /^[0-9]+(\.[0-9]+)?$/.test(given)

// What is not a number is left as it is, and refused by the option.
const toNumber = (given: string): unknown => (isNumber(given) ? Number(given) : given)

const toFlag = (given: string): unknown =>
  given === "true" || given === "false" ? given === "true" : given

const toDuration = (given: string): unknown => (isNumber(given) ? 1000 * Number(given) : given)

const toList = (given: string): ReadonlyArray<string> => given.split(",").map((item) => item.trim())

/** A text. */
export const text = making((given) => given)

/** A number. */
export const number = making(toNumber)

/** `true` or `false`. */
export const flag = making(toFlag)

/** A number of seconds, or a text such as `15 seconds`. */
export const duration = making(toDuration)

const toDurations = (given: string): ReadonlyArray<unknown> => toList(given).map(toDuration)

/** Durations, separated by commas. */
export const durations = making(toDurations)

/** The same, or `none`. */
export const durationsOrNone = making((given) => (given === "none" ? [] : toDurations(given)))

/** Texts, separated by commas. */
export const texts = (
  name: string,
  option: Option<unknown>,
): Variable<ReadonlyArray<string> | undefined> => checking(name, option, toList)

/** A number of requests, in the window that the option has by default. */
export const limit = (
  name: string,
  option: Setting.Setting<RateLimit | false | undefined, unknown>,
): Variable<RateLimit | undefined> => {
  const { default: standard } = option
  const { read } = number(name, Setting.optional(Setting.integer()))
  return {
    name,
    option,
    read: (given) =>
      Result.map(read(given), (requests) =>
        requests === undefined || !standard ? undefined : { ...standard, limit: requests },
      ),
  }
}

/** A number of requests as `limit` reads it, or `false` for no limit. */
export const limitOrFalse = (
  name: string,
  option: Setting.Setting<RateLimit | false | undefined, unknown>,
): Variable<RateLimit | false | undefined> => {
  const { read } = limit(name, option)
  return {
    name,
    option,
    read: (given) => (given === "false" ? Result.succeed(false) : read(given)),
  }
}

type Variables = Readonly<Record<string, Variable<unknown>>>

/** The values of variables, or the defaults of their options. */
export type Values<V extends Variables> = {
  readonly [Name in keyof V]: V[Name] extends Variable<infer A> ? A : never
}

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Reads variables. Fails with all that is wrong with them. */
export function readAll<V extends Variables>(
  variables: V,
  environment: Environment,
): Result.Result<Values<V>, ReadonlyArray<InvalidInput>>
export function readAll(
  variables: Variables,
  environment: Environment,
): Result.Result<object, ReadonlyArray<InvalidInput>> {
  const results = Object.entries(variables).map(
    ([name, variable]) => [name, variable.read(environment[variable.name])] as const,
  )
  const failures = results.flatMap(([, result]) =>
    Result.isFailure(result) ? [result.failure] : [],
  )
  return failures.length > 0
    ? Result.fail(failures)
    : Result.mapError(Result.all(Object.fromEntries(results)), (failure) => [failure])
}
