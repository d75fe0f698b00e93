/** Flags and arguments that several commands have. */

import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Schema from "effect/Schema"
import * as dates from "./dates.ts"

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

const DateText = Schema.String.check(
  Schema.makeFilter((text: string) =>
    dates.toIso(text) === undefined ? `must be a date: ${dates.expected}` : undefined,
  ),
)

const toIso = (text: string): string => dates.toIso(text) ?? text

/** An end date. */
export const endDate = Argument.String("date").pipe(
  Argument.withSchema(DateText),
  Argument.map(toIso),
  Argument.withDescription(`The end date: ${dates.expected}`),
)

/** Makes a flag for a date. */
export const date = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withSchema(DateText),
    Flag.map(toIso),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )
