/** Arguments and flags of several commands, and dates as people write them. */

import { DurationText } from "@tenure/core/store"
import * as Argument from "effect/cli/Argument"
import * as CliError from "effect/cli/CliError"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Failure, usageFailure } from "./failure.ts"

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

const noProject = new CliError.MissingOption({ option: "project ID, or TENURE_PROJECT" })

/** The project a command works in. */
export const projectFlag = Flag.String("project").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("ID"),
  Flag.withDescription("The project; without it, TENURE_PROJECT"),
  Flag.withFallbackConfig(Config.NonEmptyString("TENURE_PROJECT")),
  Flag.withDefault(Effect.fail(noProject)),
)

/** The project, as an argument or as the flag. */
export const projectPlace = {
  argument: Argument.String("project").pipe(
    Argument.withDescription("The id of the project; without it, --project or TENURE_PROJECT"),
    Argument.optional,
  ),
  flag: Flag.optional(projectFlag),
}

/** The values of both; the argument comes first. */
export interface ProjectPlace {
  readonly argument: Option.Option<string>
  readonly flag: Option.Option<string>
}

/** Returns the project, if one is given. */
export const findProject = ({ argument, flag }: ProjectPlace): Option.Option<string> =>
  Option.orElse(argument, () => flag)

/** Returns the project. Fails if none is given. */
export const requireProject = (
  given: ProjectPlace,
  problem = noProject.message,
): Effect.Effect<string, Failure> =>
  Option.match(findProject(given), {
    onNone: () => Effect.fail(usageFailure(problem)),
    onSome: Effect.succeed,
  })

/** The project to create or delete. TENURE_PROJECT does not count. */
export const namedProject = {
  argument: Argument.String("project").pipe(
    Argument.withDescription("The id of the project, also as --project"),
    Argument.optional,
  ),
  flag: Flag.String("project").pipe(
    Flag.withAlias("p"),
    Flag.withMetavar("ID"),
    Flag.withDescription("The project"),
    Flag.optional,
  ),
}

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

/** Says in errors what a date is. */
export const whatIsExpected = () => `a date, such as ${dateFormat}`

const relative = /^\+([1-9]\d{0,3})(d|w|mo|y)$/

/** Returns a duration in the form of ISO 8601, which the API takes: of text in this form, or such as `+30d`. */
export const parseDuration = (text: string): string | undefined => {
  if (DurationText.is(text)) return text
  const [, count = "", unit = ""] = relative.exec(text) ?? []
  return count === "" ? undefined : `P${count}${unit.slice(0, 1).toUpperCase()}`
}

/** Makes a flag for a date. */
export const dateFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(toIso, whatIsExpected),
    Flag.withMetavar("DATE"),
    Flag.withDescription(description),
    Flag.optional,
  )

/** Makes a flag for a duration. */
export const durationFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      Option.liftNullishOr(parseDuration),
      () => "a duration, such as P1M, PT36H, +1mo or +30d",
    ),
    Flag.withMetavar("DURATION"),
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

/** Selects members by their state. */
export const stateFlag = Flag.Literals("state", ["active", "paused", "expired"]).pipe(
  Flag.withDescription(
    "Only active members, those in grace included, or only paused or expired ones",
  ),
  Flag.optional,
)

const pair = /^([^=]+)=([^]+)$/

/** Makes a flag for texts by name, which may be repeated. */
export const textPairs = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.filterMap(
      (text) => {
        const [, key, value] = pair.exec(text) ?? []
        return key === undefined || value === undefined
          ? Option.none()
          : Option.some([key, value] as const)
      },
      () => "a name and a text, such as plan=gold",
    ),
    Flag.withMetavar("NAME=TEXT"),
    Flag.withDescription(description),
    Flag.atLeast(0),
  )
