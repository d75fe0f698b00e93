/** Decodes arguments in in-process calls. Each function fails with an error naming the field. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { InvalidInput } from "./errors.ts"
import { input } from "./operation-input.ts"
import * as Setting from "./setting.ts"
import {
  type InstantInput,
  instantFormat,
  instantHint,
  instantPattern,
  isDayText,
  parseInstant,
  readInstant,
} from "./time.ts"
import { type BrandConstructor, ProjectId } from "./values.ts"

/** Fails because an argument is invalid. */
export const invalidArgument = (
  field: string,
  expected: string,
): Effect.Effect<never, InvalidInput> =>
  Effect.fail(new InvalidInput({ field, problem: `must be ${expected}` }))

/** Text with a refined type, as `readBranded` decodes it. */
export const brandedText = <A extends string>(
  { expected, is }: BrandConstructor<string, A>,
  json: Setting.JsonSchema = { type: "string" },
): Setting.Setting<string, A> => ({
  expected,
  json,
  read: (given, field) => {
    const refuse = (problem: string) => Result.fail(new InvalidInput({ field, problem }))
    if (typeof given !== "string") {
      return refuse(`must be text: ${expected}; received ${Setting.shown(given)}`)
    }
    return is(given) ? Result.succeed(given) : refuse(`must be ${expected}`)
  },
})

/** Decodes text with a refined type's constructor. */
export const readBranded = <A extends string>(
  field: string,
  brand: BrandConstructor<string, A>,
  text: string,
): Effect.Effect<A, InvalidInput> => Effect.fromResult(brandedText(brand).read(text, field))

/** Decodes a value as an option with the same definition. */
export const readArgument = <I, O>(
  field: string,
  setting: Setting.Setting<I, O>,
  given: NoInfer<I>,
): Effect.Effect<O, InvalidInput> => Effect.fromResult(setting.read(given, field))

export const projectId = brandedText(ProjectId)

/** The path parameter for operations on a project. */
export const projectPath = {
  /**
   * The project's id.
   * @example "demo"
   */
  projectId,
}

/** A project, without further fields. */
export const ofProject = input(projectPath, {})

/** Describes an invalid instant. */
export const shownInstant = (given: unknown): string =>
  `${Setting.shown(given)}${instantHint(given)}`

/** Names the notation probably meant by an invalid end date, in place of which there may be a whole day. */
export const endDateHint = (given: unknown): string =>
  isDayText(given) ? ": a day is no instant; for the whole day, send through" : instantHint(given)

/** Describes an invalid end date, in place of which there may be a whole day. */
export const shownEndDate = (given: unknown): string =>
  `${Setting.shown(given)}${endDateHint(given)}`

/** The numbers allowed for an instant in a request: 13 digits, in milliseconds since the epoch. */
export const timestampFormat = { minimum: 1_000_000_000_000, maximum: 9_999_999_999_999 }

const hasThirteenDigits = (given: unknown): given is number =>
  typeof given === "number" &&
  Number.isInteger(given) &&
  given >= timestampFormat.minimum &&
  given <= timestampFormat.maximum

/** Parses an instant in a request. Returns `undefined` for any other value. */
export const parseRequestInstant = (json: unknown): number | undefined => {
  if (typeof json === "string") return parseInstant(json)
  return hasThirteenDigits(json) ? json : undefined
}

const thirteenDigits = /^\d{13}$/

/** Reads an instant in a request. In a query, a number is text. */
const readRequestInstant = (given: unknown, source: Setting.Source): number | undefined =>
  parseRequestInstant(
    source === "query" && typeof given === "string" && thirteenDigits.test(given)
      ? Number(given)
      : given,
  )

const readHostInstant = (given: unknown): number | undefined =>
  typeof given === "string" || typeof given === "number" || given instanceof Date
    ? readInstant(given)
    : undefined

/** The form for an instant in a request, for error messages. */
export const requestInstantFormat =
  "a Unix timestamp in milliseconds (13 digits) or text such as 2027-01-01T00:00:00.000Z"

/** Makes a setting for an instant, in milliseconds since the epoch. Errors end with what `shown` returns. */
export const makeInstantSetting = (
  shown: (given: unknown) => string,
): Setting.Setting<InstantInput, number> =>
  Setting.inJson(
    Setting.bySource(
      Setting.custom<InstantInput, number>(instantFormat, readHostInstant, shown),
      Setting.custom<number | string, number>(requestInstantFormat, readRequestInstant, shown),
    ),
    {
      anyOf: [
        { type: "integer", ...timestampFormat },
        { type: "string", pattern: instantPattern.source },
      ],
    },
  )

/** An instant, in milliseconds since the epoch. */
export const instantSetting = makeInstantSetting(shownInstant)

/** A paged list's `limit`: 1 to 10,000 items. */
export const pageSize = Setting.integer({ most: 10_000 })
