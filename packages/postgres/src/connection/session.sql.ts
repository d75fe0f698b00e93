/** What holds for all statements of a session. */
export interface Terms {
  /** How long a statement waits for a lock, as PostgreSQL prints it, for example `"200ms"`. */
  readonly lockTimeout: string
}

/** For statements that others wait behind. */
export const brief: Terms = { lockTimeout: "200ms" }

/** For statements that have met a lock, for as long as a client can be expected to wait. */
export const patient: Terms = { lockTimeout: "5s" }

// The longest that a statement may take. The process that sent it has long given up.
const statementTimeout = "30s"

/** The settings of a session, as parameters of its start. */
export const settings = ({ lockTimeout }: Terms) => ({
  // The isolation level that the statements need, whatever the default of the database is.
  default_transaction_isolation: "read committed",
  lock_timeout: lockTimeout,
  statement_timeout: statementTimeout,
  // The server closes the sessions of a process that the network has lost.
  tcp_user_timeout: "10s",
  tcp_keepalives_idle: "10",
})

/** Returns the server's process, and one of the settings. */
export const inspect =
  "SELECT pg_backend_pid() AS process_id, current_setting('lock_timeout') AS lock_timeout"

/** The row of `inspect`. */
export interface InspectRow {
  readonly process_id: number
  readonly lock_timeout: string
}

/** Starts a transaction. */
export const begin = "BEGIN ISOLATION LEVEL READ COMMITTED"

/** Applies the terms to the transaction. */
export const setTerms = `
  SELECT set_config('lock_timeout', $1::text, true),
         set_config('statement_timeout', '${statementTimeout}', true)
`
