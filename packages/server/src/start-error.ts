/** The reasons why the server does not start, as messages for its operator. */

import type { InvalidInput } from "@tenure/core"
import type * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { variables } from "./settings.ts"
import type { Variable } from "./variable.ts"

type NamedVariable = Pick<Variable<unknown>, "name">

/** The server cannot start. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const excess = "Expected no excess property"

/** Prints one line for each invalid value, with its path and the expected value. */
export const startErrorFromSchema = (error: Schema.SchemaError): StartError =>
  new StartError({
    message: format(error.issue)
      .issues.map(({ message, path }) =>
        [...(path ?? []), message === excess ? "there is no such field" : message].join(": "),
      )
      .join("\n"),
  })

/** Converts an error in a variable that a library reads by itself, such as OpenTelemetry's. */
export const startErrorFromConfig = ({ cause, message }: Config.ConfigError): StartError =>
  cause._tag === "SchemaError" ? startErrorFromSchema(cause) : new StartError({ message })

/** Says why the server cannot listen, and what to do, by the system's error code. */
const describeListening = (
  code: unknown,
  port: NamedVariable,
  portNumber: number,
  host: NamedVariable,
  hostName: string,
): string | undefined => {
  switch (code) {
    case "EADDRINUSE":
      return `${port.name}: another program listens on port ${portNumber} of ${hostName}. Stop it, or set ${port.name} to another port`
    case "EACCES":
      return `${port.name}: this process is not permitted to listen on port ${portNumber}. Set ${port.name} to a port from 1024 on, or permit it, on Linux by the capability CAP_NET_BIND_SERVICE`
    case "EADDRNOTAVAIL":
      return `${host.name}: ${hostName} is not an address of this machine. Set ${host.name} to one that is, or to 0.0.0.0 for all of them`
    case "EAFNOSUPPORT":
      return `${host.name}: this machine has no addresses such as ${hostName}. Set ${host.name} to one of another family, such as 127.0.0.1`
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${host.name}: the name ${hostName} cannot be resolved. Set ${host.name} to an address, such as 127.0.0.1`
    default:
      return undefined
  }
}

/** Converts an error from listening on an address. */
export const startErrorFromListening =
  (port: NamedVariable, portNumber: number, host: NamedVariable, hostName: string) =>
  (fault: unknown): StartError => {
    const code = Predicate.hasProperty(fault, "code") ? fault.code : undefined
    const problem = describeListening(code, port, portNumber, host, hostName)
    const message =
      problem === undefined
        ? `${host.name} or ${port.name}: ${String(fault)}`
        : `${problem} (${String(code)}).`
    return new StartError({ message })
  }

/** Converts an error from opening the database. */
export const startErrorFromDatabase = (error: Error): StartError =>
  new StartError({ message: `DATABASE_URL: ${error.message}` })

// Options with errors that show only in use, such as a URL with the path of a missing file.
const variablesByOption: Readonly<Record<string, string>> = {
  url: variables.databaseUrl.name,
  listenUrl: variables.listenUrl.name,
  "webhooks.encryption": variables.encryption.name,
}

/** Converts an error in an option. The message names its variable. */
export const startErrorFromInvalidInput = ({ field, problem }: InvalidInput): StartError =>
  new StartError({
    message: `${variablesByOption[field] ?? field} ${problem.replace('webhooks.missingKeys to "allow"', `${variables.missingKeys.name}=allow`)}`,
  })
