/**
 * Statements about a project that moves. While it does, it is parked: its row in `projects` has a name that no
 * project can have, so that nothing finds it, and its webhooks are held forever. That lasts until somebody
 * ends it, even if the process dies.
 */

/** The name of a parked project, whose id is an expression. No id has a control character. */
export const parkedAs = (id: string): string => `chr(1) || ${id}`

/** The name of the parked project `$1`. */
export const parked = parkedAs("$1::text")

/** Returns where the project `$1` is: under its name, or parked. */
export const findProject = (schema: string): string => `
  SELECT p.number::text AS number, p.id <> $1::text AS is_parked FROM ${schema}.projects p
  WHERE p.id IN ($1::text, ${parked})
`

/** The row of `findProject`. */
export interface PlaceRow {
  readonly number: string
  readonly is_parked: boolean
}

/** Parks the project `$1`. What is the home keeps its name for the keys that open it. */
export const park = (schema: string): string => `
  WITH parked AS (
    UPDATE ${schema}.projects p SET id = ${parked} WHERE p.id = $1::text RETURNING p.number
  ),
  remembered AS (
    INSERT INTO ${schema}.elsewhere (id, number) SELECT $1::text, p.number FROM parked p
    ON CONFLICT (id) DO UPDATE SET number = excluded.number
  )
  UPDATE ${schema}.webhooks w SET held_until = 'infinity' FROM parked p WHERE w.project_number = p.number
`

/**
 * Ends the parking of the project `$1`, and has dispatchers look for its deliveries. A pass gives its members
 * alarms: those that they bring are as they were watched elsewhere, and passes there have ended with the move.
 */
export const unpark = (schema: string): string => `
  WITH found AS (
    UPDATE ${schema}.projects p SET id = $1::text WHERE p.id = ${parked} RETURNING p.number
  ),
  here AS (
    DELETE FROM ${schema}.elsewhere e WHERE e.id = $1::text
  ),
  freed AS (
    UPDATE ${schema}.webhooks w SET held_until = NULL FROM found p WHERE w.project_number = p.number
  ),
  begun AS (
    INSERT INTO ${schema}.expiry_passes (after_project, last_project) SELECT number, number FROM found
  )
  SELECT pg_notify('${schema}.deliveries', 'unparked')::text FROM found
`

/** Deletes the parked project `$1`. Housekeeping removes the rest; see `delete_project`. */
export const deleteParked = (schema: string): string => `
  SELECT ${schema}.delete_project(${parked}, '${schema}.deliveries')
`

/** Returns a transaction that begins now. */
export const beginning = "SELECT pg_current_xact_id()::text AS xid"

/** Returns whether all transactions have ended that had begun before the transaction `$1` did. */
export const haveEnded = `
  SELECT $1::text::xid8 < pg_snapshot_xmin(pg_current_snapshot()) AS holds
`

/** Returns whether no delivery of the project with the number `$1` is being attempted. */
export const isQuiet = (schema: string): string => `
  SELECT NOT EXISTS (
    SELECT FROM ${schema}.deliveries d JOIN ${schema}.webhooks w ON w.id = d.webhook_id
    WHERE w.project_number = $1::text::bigint AND d.state = 'leased' AND d.due_at > clock_timestamp()
  ) AS holds
`

/** Returns what tells a database from all others. */
export const identity = `
  SELECT (SELECT c.system_identifier FROM pg_control_system() c) || ' ' ||
         (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) AS id
`
