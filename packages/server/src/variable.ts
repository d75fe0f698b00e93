/** Environment variables: how their text sets an option. */

import { InvalidInput, type RateLimit } from "@tenure/core"
import { Setting } from "@tenure/core/internal"
import * as Result from "effect/Result"

type Option<A> = Setting.Setting<unknown, A>

/** A variable that sets an option. */
export interface Variable<out A> {
  readonly name: string
  /** The option; its default holds if the variable is not set. */
  readonly option: Option<unknown>
  /** Reads the text of the variable. An error names the variable and the values that its option takes. */
  readonly read: (text: string | undefined) => Result.Result<A, InvalidInput>
}

type Convert<A> = (text: string) => A

/** Makes a variable that passes the converted text to its option. */
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

/** Makes a variable that returns the converted text itself, if its option accepts this. */
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

// Text that is not a number stays as it is, and the option refuses it.
const toNumber = (given: string): unknown => (isNumber(given) ? Number(given) : given)

const toFlag = (given: string): unknown =>
  given === "true" || given === "false" ? given === "true" : given

const toDuration = (given: string): unknown => (isNumber(given) ? 1000 * Number(given) : given)

const toList = (given: string): ReadonlyArray<string> => given.split(",").map((item) => item.trim())

/** A variable with a text. */
export const textVariable = making((given) => given)

/** A variable with a number. */
export const numberVariable = making(toNumber)

/** A variable with `true` or `false`. */
export const flagVariable = making(toFlag)

/** A variable with a number of seconds, or a text such as `15 seconds`. */
export const durationVariable = making(toDuration)

const toDurations = (given: string): ReadonlyArray<unknown> => toList(given).map(toDuration)

/** A variable with durations, separated by commas. */
export const durationsVariable = making(toDurations)

/** A variable with durations, separated by commas, or `none`. */
export const durationsOrNoneVariable = making((given) =>
  given === "none" ? [] : toDurations(given),
)

/** A variable with texts, separated by commas. */
export const textsVariable = (
  name: string,
  option: Option<unknown>,
): Variable<ReadonlyArray<string> | undefined> => checking(name, option, toList)

/** A variable with a number of requests; the window is the default one. */
export const limitVariable = (
  name: string,
  option: Setting.Setting<RateLimit | false | undefined, unknown>,
): Variable<RateLimit | undefined> => {
  const { default: standard } = option
  const { read } = numberVariable(name, Setting.optional(Setting.integer()))
  return {
    name,
    option,
    read: (given) =>
      Result.map(read(given), (requests) =>
        requests === undefined || !standard ? undefined : { ...standard, limit: requests },
      ),
  }
}

/** A variable with a number of requests, or `false` for no limit. */
export const limitOrFalseVariable = (
  name: string,
  option: Setting.Setting<RateLimit | false | undefined, unknown>,
): Variable<RateLimit | false | undefined> => {
  const { read } = limitVariable(name, option)
  return {
    name,
    option,
    read: (given) => (given === "false" ? Result.succeed(false) : read(given)),
  }
}

type Variables = Readonly<Record<string, Variable<unknown>>>

/** The values of variables that are set, and the defaults of the others. */
export type VariableValues<V extends Variables> = {
  readonly [Name in keyof V]: V[Name] extends Variable<infer A> ? A : never
}

/** The environment of a process: names and texts. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Reads variables. Fails with all errors. */
export function readVariables<V extends Variables>(
  variables: V,
  environment: Environment,
): Result.Result<VariableValues<V>, ReadonlyArray<InvalidInput>>
export function readVariables(
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
