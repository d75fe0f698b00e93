/** Why the server does not start, as a message for its operator. */

import type { InvalidInput } from "@tenure/core/InvalidInput"
import type * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { variables } from "./settings.ts"
import type * as Variables from "./Variable.ts"

type Variable = Pick<Variables.Variable<unknown>, "name">

/** The server cannot start. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Has one line for each invalid value: where it is, and what is expected. */
export const fromSchema = (error: Schema.SchemaError): StartError =>
  new StartError({
    message: format(error.issue)
      .issues.map(({ message, path }) => [...(path ?? []), message].map(String).join(": "))
      .join("\n"),
  })

/** A variable is invalid that a library reads by itself, as those of OpenTelemetry are. */
export const fromConfig = ({ cause, message }: Config.ConfigError): StartError =>
  cause._tag === "SchemaError" ? fromSchema(cause) : new StartError({ message })

/** The server cannot listen on its address. */
export const fromListening =
  (port: Variable, host: Variable) =>
  (fault: unknown): StartError => {
    const isPortTaken = Predicate.hasProperty(fault, "code") && fault.code === "EADDRINUSE"
    return new StartError({ message: `${(isPortTaken ? port : host).name}: ${String(fault)}` })
  }

/** The database cannot be used. */
export const fromDatabase = (error: Error): StartError =>
  new StartError({ message: `DATABASE_URL: ${error.message}` })

// The options that are judged only when they are used, such as a URL that names a file.
const judgedLate: Readonly<Record<string, string>> = {
  url: variables.databaseUrl.name,
  listenUrl: variables.listenUrl.name,
}

/** An option is invalid. The message names its variable. */
export const fromInvalidInput = ({ field, problem }: InvalidInput): StartError =>
  new StartError({ message: `${judgedLate[field] ?? field} ${problem}` })
