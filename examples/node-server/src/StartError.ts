/** Why the server does not start, in words for whoever starts it. */

import type * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** The server does not start. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** A line for each thing that is wrong: where it is, and what is expected there. */
export const fromSchema = (error: Schema.SchemaError): StartError =>
  new StartError({
    message: format(error.issue)
      .issues.map(({ message, path }) => [...(path ?? []), message].map(String).join(": "))
      .join("\n"),
  })

/** Why nothing can be listened on. */
export const fromListening = (fault: unknown): StartError => {
  const isPortTaken = Predicate.hasProperty(fault, "code") && fault.code === "EADDRINUSE"
  return new StartError({ message: `${isPortTaken ? "PORT" : "HOST"}: ${String(fault)}` })
}

/** Why the database cannot be used. */
export const fromDatabase = (error: Error): StartError =>
  new StartError({ message: `DATABASE_URL: ${error.message}` })

/** A line for each setting that is wrong. */
export const fromConfig = ({ cause }: Config.ConfigError): StartError =>
  Schema.isSchemaError(cause) ? fromSchema(cause) : new StartError({ message: cause.message })
