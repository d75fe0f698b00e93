/** Statements that read and write whole tables, whatever their columns are. */

/** Sets what the JSON of a row depends on, until the transaction ends. */
export const settle = "SET LOCAL TimeZone = 'UTC'"

/**
 * Returns the tables with data, each with its columns and with those that it refers to. Partitions belong
 * to their tables. Columns with numbers of transactions mean nothing elsewhere: rows get new ones. Nor do
 * the tables that tell readers of the feed which transactions are late.
 */
export const listTables = (schema: string): string => `
  SELECT c.relname AS name, (
           SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             AND a.atttypid <> 'xid8'::regtype
         ) AS columns, ARRAY(
           SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
           WHERE k.conrelid = c.oid AND k.contype = 'f' AND f.oid <> c.oid
         ) AS refers_to
  FROM pg_class c
  WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND c.relname NOT IN ('migrations', 'closed_days', 'late_events')
  ORDER BY c.relname
`

/** The row of `listTables`. */
export interface TableRow {
  readonly name: string
  /** Separated by commas. */
  readonly columns: string
  readonly refers_to: ReadonlyArray<string>
}

/**
 * Returns the number of rows of a table, and a digest of them, in which their order does not count: the
 * sum of a digest of each.
 */
export const summarize = (schema: string, { columns, name }: TableRow): string => `
  SELECT count(*)::float8 AS count,
         coalesce(sum(
           ('x' || encode(substr(sha256(convert_to(to_json(t)::text, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
         ), 0)::text AS digest
  FROM (SELECT ${columns} FROM ${schema}.${name}) t
`

/** The row of `summarize`. */
export interface Summary {
  readonly count: number
  readonly digest: string
}

/** Starts to read the rows of a table. */
export const startReading = (schema: string, { columns, name }: TableRow): string => `
  DECLARE moved NO SCROLL CURSOR FOR
  SELECT to_json(t)::text AS row FROM (SELECT ${columns} FROM ${schema}.${name}) t
`

/** Reads up to a number of further rows. */
export const readOn = (most: number): string => `FETCH ${most} FROM moved`

/** The row of `readOn`: a row of the table, as JSON. */
export interface ReadRow {
  readonly row: string
}

export const stopReading = "CLOSE moved"

/** Writes rows: a JSON array of them, `$1`. */
export const write = (schema: string, { columns, name }: TableRow): string => `
  INSERT INTO ${schema}.${name} (${columns}) OVERRIDING SYSTEM VALUE
  SELECT ${columns} FROM json_populate_recordset(NULL::${schema}.${name}, $1::text::json)
`

/** Returns the last numbers of the sequences that have been used. */
export const listSequences = (schema: string): string => `
  SELECT * FROM (
    SELECT c.oid::regclass::text AS name,
           CASE c.relkind WHEN 'S' THEN pg_sequence_last_value(c.oid)::text END AS last
    FROM pg_class c WHERE c.relnamespace = '${schema}'::regnamespace
  ) s
  WHERE last IS NOT NULL
`

/** The row of `listSequences`. */
export interface SequenceRow {
  readonly name: string
  readonly last: string
}

/** Continues a sequence `$1` after the number `$2`. */
export const continueSequence = "SELECT setval($1::text::regclass, $2::text::bigint)"

/** Returns the days that have partitions of events, and those with which parts of the audit trail begin. */
export const listDays = (schema: string): string => `
  SELECT c.relname ~ '^audit_' AS is_of_audit, right(c.relname, 8) AS day
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent IN ('${schema}.events'::regclass, '${schema}.audit'::regclass)
    AND c.relname ~ '_[0-9]{8}$'
`

/** The row of `listDays`. */
export interface DayRow {
  readonly is_of_audit: boolean
  readonly day: string
}

/** Drops the part of the audit trail that begins on a day. */
export const dropPart = (schema: string, day: string): string => `DROP TABLE ${schema}.audit_${day}`

/** Creates the partitions of a day. */
export const createDay = (schema: string, { day, is_of_audit }: DayRow): string =>
  `SELECT ${schema}.${is_of_audit ? "create_audit_part" : "create_day"}(to_date('${day}', 'YYYYMMDD'))`
