/** Dates as people write them. */

import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Option from "effect/Option"

/** Date formats, for messages. */
export const dateFormat = "2027-01-31, 2027-01-31T12:00:00.000Z, or Unix time in milliseconds"

const millis = /^\d{13}$/

const pattern = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)?$/

/**
 * Converts a date to the API's format.
 *
 * @returns `undefined` if the text is not a date or does not exist, such as 30 February
 */
export const parseDate = (text: string): string | undefined => {
  const isMillis = millis.test(text)
  if (!isMillis && !pattern.test(text)) return undefined
  const date = new Date(isMillis ? Number(text) : text)
  if (Number.isNaN(date.getTime())) return undefined
  const iso = date.toISOString()
  return isMillis || iso.startsWith(text.slice(0, "2027-01-31".length)) ? iso : undefined
}

/** The project a command works in. */
export const projectFlag = Flag.String("project").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("ID"),
  Flag.withDescription("The project; without it, TENURE_PROJECT"),
  Flag.withFallbackConfig(Config.NonEmptyString("TENURE_PROJECT")),
)

/** The project to work on. */
export const projectIdArgument = Argument.String("project").pipe(
  Argument.withDescription("The id of the project"),
)

/** The user to work on. */
export const userId = Argument.String("user").pipe(Argument.withDescription("The id of the user"))

/** The webhook to work on. */
export const webhookId = Argument.String("webhook").pipe(
  Argument.withDescription("The id of the webhook"),
)

/** Why something is changed. */
export const reason = Flag.String("reason").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("Why, in up to 500 characters, for the history and the event"),
  Flag.optional,
)

const toIso = Option.liftNullishOr(parseDate)

const whatIsExpected = () => `a date, such as ${dateFormat}`

/** An end date. */
export const endDate = Argument.String("date").pipe(
  Argument.filterMap(toIso, whatIsExpected),
  Argument.withDescription(`The end date: ${dateFormat}`),
)

/** Makes a flag for a date. */
export const dateFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(toIso, whatIsExpected),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )

/** Creates a flag, off by default. */
export const booleanFlag = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(description),
    Flag.withoutNegation,
    Flag.withDefault(false),
  )
