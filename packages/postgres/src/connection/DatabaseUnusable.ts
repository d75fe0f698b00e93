/** Why a database cannot be used, as a message for those who run the process. */

import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** The database cannot be used at the start. The message says why, without secrets. */
export class DatabaseUnusable extends Data.TaggedError("DatabaseUnusable")<{
  readonly message: string
  readonly cause: SqlError
}> {}

// What to do about errors, by their code, or by their message where they have no code.
const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED)/,
    "if a private authority has signed the certificate of the server, name the file with its own by sslrootcert in the URL",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID/, "connect by a name that is in the certificate of the server"],
  [/does not support TLS/, "add sslmode=disable to the URL if nobody else can read the network"],
  [/no encryption$/, "add sslmode=require to the URL"],
  [/^42501/, "run tenure migrate as the owner of the tables, and turn migrations off here"],
]

/** The error at the beginning of a chain of causes. */
const originOf = (error: unknown): unknown => {
  if (isSqlError(error)) return originOf(error.reason)
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined)
    return originOf(error.cause)
  return error
}

const codeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : ""

const messageOf = (error: unknown): string => {
  // An attempt on several addresses has no message of its own.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(", ")
  return error instanceof Error ? error.message : String(error)
}

/** Says why a statement or a connection has failed, and what may help. */
export const explain = (error: SqlError): string => {
  const origin = originOf(error)
  const message = messageOf(origin)
  const found = advice.find(([pattern]) => pattern.test(codeOf(origin)) || pattern.test(message))
  return found === undefined ? message : `${message} (${found[1]})`
}

/** Explains an error at the start. */
export const fromSqlError = (cause: SqlError): DatabaseUnusable =>
  new DatabaseUnusable({ message: `The database cannot be used: ${explain(cause)}`, cause })
