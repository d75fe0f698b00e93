/** Statements that copy the rows of a project, whatever their columns are, and compare them. */

import { settle } from "./tables.sql.ts"

export { settle }

/** A table with rows of projects. */
export interface TableRow {
  readonly name: string
  /** Its columns, quoted, without those that mean nothing elsewhere. */
  readonly columns: ReadonlyArray<string>
  /** Whether it has the number of the project. Otherwise it has the id of an event. */
  readonly has_number: boolean
}

/**
 * Returns the tables. Columns that count within one database, or that tell which process has a delivery, are
 * given new values.
 */
export const listTables = (schema: string): string => `
  SELECT c.relname AS name,
         array_agg(quote_ident(a.attname) ORDER BY a.attnum) FILTER (
           WHERE a.attname NOT IN ('project_number', 'lease', 'dispatcher', 'held_until', 'held_since', 'moved_with')
             AND (c.relname, a.attname) NOT IN (('audit', 'id'), ('webhooks', 'position'))
             AND a.atttypid <> 'xid8'::regtype
         ) AS columns,
         bool_or(a.attname = 'project_number') AS has_number
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> 'api_key_projects'
  GROUP BY c.relname
  HAVING bool_or(a.attname = 'project_number') OR c.relname IN ('deliveries', 'ended_deliveries')
  ORDER BY c.relname
`

/** Returns the columns of a project itself. */
export const listProjectColumns = (schema: string): string => `
  SELECT array_agg(quote_ident(a.attname) ORDER BY a.attnum) AS columns FROM pg_attribute a
  WHERE a.attrelid = '${schema}.projects'::regclass AND a.attnum > 0 AND NOT a.attisdropped
    AND a.attname NOT IN ('id', 'number')
`

/** The order in which rows get new numbers. */
const orders: Readonly<Record<string, string>> = {
  audit: "ORDER BY t.id",
  webhooks: "ORDER BY t.position",
}

/** A project in a database. */
export interface Place {
  /** Its number there: digits. */
  readonly number: string
  /** By how much its deliveries come earlier than in the database: before all others. */
  readonly shift: string
}

/** Nobody attempts at the target what somebody attempts at the source. */
const moved = (table: string, column: string, shift: string): string => {
  if (column === "position") return `t.position - ${shift} AS position`
  if (table !== "deliveries") return `t.${column}`
  if (column === "state") return "CASE t.state WHEN 'leased' THEN 'ready' ELSE t.state END AS state"
  if (column === "due_at")
    return "CASE t.state WHEN 'leased' THEN now() ELSE t.due_at END AS due_at"
  return `t.${column}`
}

const rowsOf = (schema: string, table: TableRow, { number, shift }: Place): string => `
  SELECT ${table.columns.map((column) => moved(table.name, column, shift)).join(", ")}
  FROM ${schema}.${table.name} t
  WHERE ${
    table.has_number
      ? `t.project_number = ${number}`
      : `t.event_id IN (SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})`
  }
`

/** Returns how many rows of a project a table has, and a digest in which their order does not count. */
export const summarize = (schema: string, table: TableRow, place: Place): string => `
  SELECT count(*)::float8 AS count,
         coalesce(sum(
           ('x' || encode(substr(sha256(convert_to(to_json(r)::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
         ), 0)::text AS digest
  FROM (${rowsOf(schema, table, place)}) r
`

/** Starts to read the rows of a project in a table. */
export const startReading = (schema: string, table: TableRow, place: Place): string => `
  DECLARE moved NO SCROLL CURSOR FOR
  SELECT to_json(r)::text AS row FROM (${rowsOf(schema, table, place)} ${orders[table.name] ?? ""}) r
`

/** Writes rows of a project: a JSON array of them, `$1`. */
export const write = (schema: string, { columns, has_number, name }: TableRow, number: string) => {
  const all = columns.join(", ")
  // The same key may belong to a request of another project there.
  const numbers = name === "answers" ? ["project_number", "moved_with"] : ["project_number"]
  return has_number
    ? `INSERT INTO ${schema}.${name} (${numbers.join(", ")}, ${all}) OVERRIDING SYSTEM VALUE
       SELECT ${numbers.map(() => number).join(", ")}, ${all} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)`
    : `INSERT INTO ${schema}.${name} (${all}) OVERRIDING SYSTEM VALUE
       SELECT ${all} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)`
}

/** Returns the last position of a delivery of a project. */
export const lastPosition = (schema: string, number: string): string => `
  SELECT greatest(
    (SELECT max(d.position) FROM ${schema}.deliveries d WHERE d.event_id IN (
      SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})),
    (SELECT max(d.position) FROM ${schema}.ended_deliveries d WHERE d.event_id IN (
      SELECT e.id FROM ${schema}.events e WHERE e.project_number = ${number})),
    0
  )::text AS position
`

/** Returns a project itself, as JSON. */
export const readProject = (schema: string, columns: string, number: string): string => `
  SELECT to_json(r)::text AS row
  FROM (SELECT ${columns} FROM ${schema}.projects WHERE number = ${number}) r
`

/**
 * Writes a project, parked: its id `$1`, and what was read of it, `$2`. It keeps the number that the directory
 * has for it. Returns the number.
 */
export const writeProject = (schema: string, columns: string): string => `
  INSERT INTO ${schema}.projects (id, number, ${columns}) OVERRIDING SYSTEM VALUE
  SELECT chr(1) || $1::text, coalesce(
    (SELECT e.number FROM ${schema}.elsewhere e WHERE e.id = $1::text),
    nextval(pg_get_serial_sequence('${schema}.projects', 'number'))
  ), ${columns} FROM json_populate_record(NULL::${schema}.projects, $2::text::json)
  RETURNING number::text
`

/** Deletes the answers that an earlier stay of a project has left: housekeeping leaves them until they are old. */
export const deleteAnswers = (schema: string, number: string): string => `
  DELETE FROM ${schema}.answers WHERE project_number = ${number}
`

/** Holds the webhooks of a project forever. */
export const hold = (schema: string, number: string): string => `
  UPDATE ${schema}.webhooks SET held_until = 'infinity' WHERE project_number = ${number}
`

/** Returns whether nothing is left of projects that were deleted. */
export const isSwept = (schema: string): string => `
  SELECT NOT EXISTS (SELECT FROM ${schema}.deleted_projects) AS holds
`
