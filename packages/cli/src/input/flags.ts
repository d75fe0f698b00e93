/** Flags and arguments that several commands have. */

import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Schema from "effect/Schema"

/** The project that a command works in. */
export const project = Flag.String("project").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("ID"),
  Flag.withDescription("The project; without it, TENURE_PROJECT"),
  Flag.withFallbackConfig(Config.NonEmptyString("TENURE_PROJECT")),
)

/** The project that a command is about. */
export const projectId = Argument.String("project").pipe(
  Argument.withDescription("The id of the project"),
)

/** The user that a command is about. */
export const userId = Argument.String("user").pipe(Argument.withDescription("The id of the user"))

/** The webhook that a command is about. */
export const webhookId = Argument.String("webhook").pipe(
  Argument.withDescription("The id of the webhook"),
)

/** Why something is changed. */
export const reason = Flag.String("reason").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("Why, in up to 500 characters, for the history and the event"),
  Flag.optional,
)

/** What a date looks like. */
const dates = "2027-01-31, 2027-01-31T12:00:00.000Z, or Unix time in milliseconds"

const pattern = /^(?:\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)?|\d{13})$/

const isDate = (text: string): boolean =>
  pattern.test(text) && (/^\d{13}$/.test(text) || toIso(text) !== undefined)

// A day that does not exist, such as the 30th of February, would become another one.
const toIso = (text: string): string | undefined => {
  const date = new Date(text)
  return Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text.slice(0, 10))
    ? undefined
    : date.toISOString()
}

const DateText = Schema.String.check(
  Schema.makeFilter((text: string) => (isDate(text) ? undefined : `must be a date: ${dates}`)),
)

/** Converts a date that a person has written to one that the API takes. */
const toApiDate = (text: string): string =>
  (/^\d{13}$/.test(text) ? new Date(Number(text)).toISOString() : toIso(text)) ?? text

/** An end date. */
export const endDate = Argument.String("date").pipe(
  Argument.withSchema(DateText),
  Argument.map(toApiDate),
  Argument.withDescription(`The end date: ${dates}`),
)

/** Makes a flag for a date. */
export const date = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withSchema(DateText),
    Flag.map(toApiDate),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )
