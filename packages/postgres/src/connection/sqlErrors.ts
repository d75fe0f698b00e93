/** What an error from PostgreSQL means for the caller. */

import * as Predicate from "effect/Predicate"
import {
  DeadlockError,
  LockTimeoutError,
  SerializationError,
  SqlError,
  UniqueViolation,
  UnknownError,
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

/** Converts an error of the host's library. */
export const fromHost = (cause: unknown): SqlError => new SqlError({ reason: reasonOf(cause) })

// The SQLSTATE classes of errors caused by a statement or its parameters.
const faultClasses = new Set(["0A", "21", "22", "23", "42"])

/** Whether the statement or its parameters caused the error, rather than the server. */
export const isFault = (error: SqlError): boolean =>
  faultClasses.has((sqlStateOf(error) ?? "").slice(0, 2))

/** Whether the transaction lost a deadlock or could not be serialized, and can run again. */
export const isLostRace = ({ reason }: SqlError): boolean =>
  reason._tag === "DeadlockError" || reason._tag === "SerializationError"

/**
 * Whether one of Tenure's own statements lost a race. They violate a unique constraint only when
 * another statement inserts the same row at the same time.
 */
export const isConflict = (error: SqlError): boolean =>
  isLostRace(error) || error.reason._tag === "UniqueViolation"

/**
 * Whether the statement inserted a row whose key another one in this table has. Some libraries of hosts
 * do not tell the table.
 */
export const isTakenIn = ({ reason }: SqlError, table: string): boolean =>
  reason._tag === "UniqueViolation" &&
  (!Predicate.hasProperty(reason.cause, "table") || reason.cause.table === table)

/** Whether the statement waited too long for a lock. */
export const isLockTimeout = ({ reason }: SqlError): boolean => reason._tag === "LockTimeoutError"

/** Whether the server refused a connection because too many are open (SQLSTATE class 53). */
export const isCrowded = (error: SqlError): boolean => sqlStateOf(error)?.startsWith("53") === true

/**
 * Whether whoever answered refused a setting of the session: a pooler, which has to give the session
 * to others.
 */
export const isRefusedSetting = (error: SqlError): boolean => {
  const state = sqlStateOf(error) ?? ""
  return state.startsWith("08") || ["0A000", "22023", "42704"].includes(state)
}
