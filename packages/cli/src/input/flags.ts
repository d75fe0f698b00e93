/** Flags and arguments that several commands have. */

import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Option from "effect/Option"
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

const toIso = Option.liftNullishOr(dates.toIso)

const whatIsExpected = () => `a date, such as ${dates.expected}`

/** An end date. */
export const endDate = Argument.String("date").pipe(
  Argument.filterMap(toIso, whatIsExpected),
  Argument.withDescription(`The end date: ${dates.expected}`),
)

/** Makes a flag for a date. */
export const date = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(toIso, whatIsExpected),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )
