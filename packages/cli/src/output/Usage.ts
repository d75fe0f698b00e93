/** Wrong command lines: what is wrong goes to standard error, and help only to those who ask for it. */

import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { exitCodes } from "../Failure.ts"
import { toJson } from "./printable.ts"

const refuse = (errors: ReadonlyArray<CliError.CliError>, help: string) =>
  Effect.gen(function* () {
    const { formatErrors } = yield* CliOutput.Formatter
    yield* Console.error(formatErrors(errors).trim())
    yield* Console.error(`\n${help}`)
  })

const refuseAsJson = (errors: ReadonlyArray<CliError.CliError>, help: string) => {
  const message = [...errors.map((error) => error.message), help].join(". ")
  return Console.error(toJson({ error: { message } }))
}

/** Prints help, versions, and what is wrong with a command line: that as JSON for programs. */
export const presenter = (isJson: boolean): CliOutput.Presenter => ({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? (isJson ? refuseAsJson : refuse)(event.errors, `See ${event.commandPath.join(" ")} --help`)
      : CliOutput.defaultPresenter.present(event),
})

/** Sets the exit code of the error of a wrong command line. */
export const withExitCode = <E>(error: E): E => {
  if (CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length > 0)
    Object.assign(error, { [Runtime.errorExitCode]: exitCodes.usage })
  return error
}
