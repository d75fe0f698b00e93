/** What errors from PostgreSQL mean for the caller, and how they are explained to the operator. */

import { TaggedError } from "@tenure/core/internal"
import { StoreUnavailable } from "@tenure/core/store"
import * as Predicate from "effect/Predicate"
import {
  DeadlockError,
  LockTimeoutError,
  SerializationError,
  SqlError,
  UniqueViolation,
  UnknownError,
  isSqlError,
} from "effect/sql/SqlError"

const codeOf = (cause: unknown): string | undefined =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : undefined

/** Returns the SQLSTATE of an error, or `undefined` if the server sent none. */
export const sqlStateOf = ({ reason }: SqlError): string | undefined => codeOf(reason.cause)

const reasonOf = (cause: unknown) => {
  switch (codeOf(cause)) {
    case "23505":
      return new UniqueViolation({ cause, constraint: "unknown" })
    case "40001":
      return new SerializationError({ cause })
    case "40P01":
      return new DeadlockError({ cause })
    case "55P03":
      return new LockTimeoutError({ cause })
    default:
      return new UnknownError({ cause })
  }
}

/** Converts an error from the host's library. */
export const fromHost = (cause: unknown): SqlError => new SqlError({ reason: reasonOf(cause) })

// The SQLSTATE classes of errors caused by a statement or its parameters.
const faultClasses = new Set(["0A", "21", "22", "23", "42"])

/** Whether the statement or its parameters caused the error, rather than the server. */
export const isFault = (error: SqlError): boolean =>
  faultClasses.has((sqlStateOf(error) ?? "").slice(0, 2))

/** Whether the statement names a schema or an object that does not exist. It has changed nothing then. */
export const isAbsent = (error: unknown): boolean =>
  error instanceof StoreUnavailable
    ? isAbsent(error.cause)
    : isSqlError(error) && ["3F000", "42P01", "42883"].includes(sqlStateOf(error) ?? "")

/** Whether the transaction lost a deadlock or could not be serialized, and can run again. */
export const isLostRace = ({ reason }: SqlError): boolean =>
  reason._tag === "DeadlockError" || reason._tag === "SerializationError"

/**
 * Whether one of Tenure's own statements lost a race. These violate a unique constraint only if another
 * statement inserts the same row at the same time.
 */
export const isConflict = (error: SqlError): boolean =>
  isLostRace(error) || error.reason._tag === "UniqueViolation"

/**
 * Whether the statement inserted a row whose key is taken in this table. Some host libraries do not report
 * the table.
 */
export const isTakenIn = ({ reason }: SqlError, table: string): boolean =>
  reason._tag === "UniqueViolation" &&
  (!Predicate.hasProperty(reason.cause, "table") || reason.cause.table === table)

/** Whether the statement waited too long for a lock. */
export const isLockTimeout = ({ reason }: SqlError): boolean => reason._tag === "LockTimeoutError"

/** Whether a change waited too long for a lock. */
export const waitedForLock = ({ cause }: StoreUnavailable): boolean =>
  isSqlError(cause) && isLockTimeout(cause)

/** Whether the server refused a connection because too many are open (SQLSTATE class 53). */
export const isCrowded = (error: SqlError): boolean => sqlStateOf(error)?.startsWith("53") === true

/**
 * Whether the server lacks a resource that changes need, such as disk space or memory, or cannot read or
 * write a file. It still responds. An error because of too many connections says nothing about changes.
 */
export const lacksResources = (error: SqlError): boolean =>
  /^(53[0124]|58)/.test(sqlStateOf(error) ?? "")

/** Whether the server refused a change because it is read-only, as a standby is. Nothing was changed. */
export const isReadOnlyRefusal = (error: SqlError): boolean => sqlStateOf(error) === "25006"

/** Whether the other side refused a session setting: a pooler, which has to give the session to others. */
export const isRefusedSetting = (error: SqlError): boolean => {
  const state = sqlStateOf(error) ?? ""
  return state.startsWith("08") || ["0A000", "22023", "42704"].includes(state)
}

/** The database cannot be used at the start. The message says why, without secrets. */
export class DatabaseUnusable extends TaggedError("DatabaseUnusable")<{
  readonly message: string
  /** The error from the server, the driver or the system. */
  readonly cause: unknown
}> {}

// Advice by error code, or by message where there is no code.
const advice: ReadonlyArray<readonly [RegExp, string]> = [
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(VERIFY|GET_ISSUER)|CERT_UNTRUSTED)/,
    "if a private authority has signed the certificate of the server, name the file with its own by sslrootcert in the URL",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID/, "connect by a name that is in the certificate of the server"],
  [/does not support TLS/, "add sslmode=disable to the URL if nobody else can read the network"],
  [/no encryption$/, "add sslmode=require to the URL"],
  [/ECONNREFUSED/, "start PostgreSQL there, or correct the host and port in the URL"],
  [/ENOTFOUND|EAI_AGAIN/, "correct the host in the URL"],
  [
    /ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|Connection timed out/,
    "check the host and port in the URL, and that no firewall is in between",
  ],
  [
    /exceeds maxMessageSize|Connection closed unexpectedly/,
    "the program that listens there may not be PostgreSQL: check the host and port in the URL",
  ],
  [/^28P01|requested password/, "correct the user and password in the URL"],
  [/^28000/, "correct the user in the URL, or permit it in pg_hba.conf of the server"],
  [/^3D000/, "create the database, or correct its name in the URL"],
  [
    /^42501/,
    "grant it to the role in the URL; for migrations, run tenure migrate as the owner of the tables, and turn them off here",
  ],
]

/** The first error in a chain of causes. */
const originOf = (error: unknown): unknown => {
  if (isSqlError(error)) return originOf(error.reason)
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined)
    return originOf(error.cause)
  return error
}

/** Reduces an error's stack to its message: the stack begins at a socket, and contains no line of the host. */
const withoutStack = (error: unknown): unknown => {
  if (error instanceof AggregateError) error.errors.forEach(withoutStack)
  if (error instanceof Error) Reflect.set(error, "stack", String(error))
  return error
}

const databaseUnusableCodeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && typeof error.code === "string" ? error.code : ""

const messageOf = (error: unknown): string => {
  // A connection attempt at several addresses has no message itself.
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(", ")
  return error instanceof Error ? error.message : String(error)
}

/** Explains why a statement or a connection has failed, and what may help. */
export const explain = (error: SqlError): string => {
  const origin = originOf(error)
  const message = messageOf(origin)
  const found = advice.find(
    ([pattern]) => pattern.test(databaseUnusableCodeOf(origin)) || pattern.test(message),
  )
  return found === undefined ? message : `${message} (${found[1]})`
}

/**
 * Explains an error at the start.
 *
 * @param place - the server's host and port, if they are known
 */
export const fromSqlError = (cause: SqlError, place?: string): DatabaseUnusable => {
  const at = place === undefined ? "" : ` at ${place}`
  return new DatabaseUnusable({
    message: `The database${at} cannot be used: ${explain(cause)}`,
    cause: withoutStack(originOf(cause)),
  })
}
