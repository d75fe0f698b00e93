/** Why the server does not start, as a message for its operator. */

import type { InvalidInput } from "@tenure/core"
import type * as Config from "effect/Config"
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { variables } from "./settings.ts"
import type * as Variables from "./variable.ts"

type StartErrorVariable = Pick<Variables.Variable<unknown>, "name">

/** The server cannot start. */
export class StartError extends Data.TaggedError("StartError")<{ readonly message: string }> {}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const excess = "Expected no excess property"

/** Has one line for each invalid value: where it is, and what is expected. */
export const fromSchema = (error: Schema.SchemaError): StartError =>
  new StartError({
    message: format(error.issue)
      .issues.map(({ message, path }) =>
        [...(path ?? []), message === excess ? "there is no such field" : message].join(": "),
      )
      .join("\n"),
  })

/** A variable is invalid that a library reads by itself, as those of OpenTelemetry are. */
export const fromConfig = ({ cause, message }: Config.ConfigError): StartError =>
  cause._tag === "SchemaError" ? fromSchema(cause) : new StartError({ message })

/** Says why the server cannot listen, and what to do, by the code of the system's error. */
const listeningFault = (
  code: unknown,
  port: StartErrorVariable,
  portNumber: number,
  host: StartErrorVariable,
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

/** The server cannot listen on its address. */
export const fromListening =
  (port: StartErrorVariable, portNumber: number, host: StartErrorVariable, hostName: string) =>
  (fault: unknown): StartError => {
    const code = Predicate.hasProperty(fault, "code") ? fault.code : undefined
    const problem = listeningFault(code, port, portNumber, host, hostName)
    const message =
      problem === undefined
        ? `${host.name} or ${port.name}: ${String(fault)}`
        : `${problem} (${String(code)}).`
    return new StartError({ message })
  }

/** The database cannot be used. */
export const fromDatabase = (error: Error): StartError =>
  new StartError({ message: `DATABASE_URL: ${error.message}` })

// The options that are judged only when they are used, such as a URL that names a file.
const judgedLate: Readonly<Record<string, string>> = {
  url: variables.databaseUrl.name,
  listenUrl: variables.listenUrl.name,
  "webhooks.encryption": variables.encryption.name,
}

/** An option is invalid. The message names its variable. */
export const fromInvalidInput = ({ field, problem }: InvalidInput): StartError =>
  new StartError({
    message: `${judgedLate[field] ?? field} ${problem.replace('webhooks.missingKeys to "allow"', `${variables.missingKeys.name}=allow`)}`,
  })
