/**
 * Gates: places at which an operation stands still until a test lets it go on. The stores' statements run as they are.
 * A row gate is a row-level security policy, whose function PostgreSQL calls for each row that it scans, before it
 * locks the row, again when it rechecks a row that has changed meanwhile, and before it writes a row. A trigger adds a
 * gate at the end of a statement, before it commits. A statement gate holds a statement back before it is sent, so it
 * is between two statements of one operation.
 */

import * as Net from "node:net"
import { Duplex, Transform } from "node:stream"
import * as Pg from "pg"

/** The stores' role. A superuser would bypass the policies. */
export const role = "tenure_gated"

/** The tables that have gates. */
export const gatedTables = [
  "projects",
  "memberships",
  "bulk_extensions",
  "webhooks",
  "events",
  "deliveries",
  "finished_deliveries",
  "delivered_runs",
  "audit",
  "idempotency_keys",
  "expiry_passes",
  "deleted_projects",
  "erasures",
] as const

/** What an operation's session is called. The gates are for the first operation. */
export const sessionName = (schema: string, slot: "first" | "second"): string => `${schema} ${slot}`

// The dispatcher reports in the background, as many times as a second has passed.
const isInBackground = `current_query() LIKE '%dispatchers_gone WHERE noticed_by%'`

/** The statements that put gates on a schema's tables, which the role owns. */
export const installGates = (schema: string, lock: number): ReadonlyArray<string> => [
  `CREATE SEQUENCE ${schema}.gate_visits`,
  `CREATE TABLE ${schema}.gate_stop (visit bigint NOT NULL)`,
  `INSERT INTO ${schema}.gate_stop VALUES (0)`,
  // It waits without a time limit, whatever the statement's is.
  `CREATE FUNCTION ${schema}.gate_wait(place text) RETURNS void LANGUAGE plpgsql SET lock_timeout = 0 AS $$
   DECLARE
     name CONSTANT text := current_setting('application_name');
   BEGIN
     PERFORM set_config('application_name', name || ' at ' || place, false);
     PERFORM pg_advisory_lock_shared(${lock});
     PERFORM pg_advisory_unlock_shared(${lock});
     PERFORM set_config('application_name', name, false);
   END $$`,
  `CREATE FUNCTION ${schema}.gate(place text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
   DECLARE
     visited bigint;
   BEGIN
     IF current_setting('application_name') <> '${sessionName(schema, "first")}' OR ${isInBackground} THEN
       RETURN true;
     END IF;
     visited := nextval('${schema}.gate_visits');
     IF visited = (SELECT visit FROM ${schema}.gate_stop) THEN PERFORM ${schema}.gate_wait(place); END IF;
     RETURN true;
   END $$`,
  // One trigger for each statement is enough.
  `CREATE FUNCTION ${schema}.gate_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
   DECLARE
     began CONSTANT text := statement_timestamp()::text;
   BEGIN
     IF current_setting('gate.ended', true) IS DISTINCT FROM began THEN
       PERFORM set_config('gate.ended', began, false);
       PERFORM ${schema}.gate('the end');
     END IF;
     RETURN NULL;
   END $$`,
  ...gatedTables.flatMap((table) => [
    `ALTER TABLE ${schema}.${table} ENABLE ROW LEVEL SECURITY`,
    `ALTER TABLE ${schema}.${table} FORCE ROW LEVEL SECURITY`,
    `CREATE POLICY gate ON ${schema}.${table} USING (${schema}.gate('${table}'))`,
    `CREATE TRIGGER gate AFTER INSERT OR UPDATE OR DELETE ON ${schema}.${table}
     FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.gate_at_end()`,
  ]),
]

/** Where the first operation is stopped: at a visit to row gates, or before it sends a statement; from 1. */
export interface Stop {
  readonly kind: "row" | "statement"
  readonly n: number
}

/** Where the operations are. */
export interface Standing {
  /** The place where the first operation stands, if it does. */
  readonly place: string | undefined
  /** Whether the second operation waits for a lock that the first holds. */
  readonly isBlocked: boolean
}

// The messages that begin a statement: Bind, Parse and Query.
const beginnings = new Set(["B", "P", "Q"].map((letter) => letter.charCodeAt(0)))

/** Makes the gates between the first operation's statements. */
const statementGates = ({ hostname, port }: URL) => {
  let stopAt = 0
  let sent = 0
  let goOn: (() => void) | undefined
  const open = (): void => {
    stopAt = 0
    goOn?.()
    goOn = undefined
  }
  const pass = (chunk: Buffer): Promise<void> | undefined => {
    if (!beginnings.has(chunk[0] ?? 0)) return undefined
    sent++
    if (sent !== stopAt) return undefined
    return new Promise((resolve) => {
      goOn = resolve
    })
  }
  const stream = (): Duplex => {
    const socket = Net.connect({ host: hostname, port: Number(port), noDelay: true })
    const writable = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const opened = pass(chunk)
        if (opened === undefined) done(null, chunk)
        else void opened.then(() => done(null, chunk))
      },
    })
    writable.pipe(socket)
    return Duplex.from({ readable: socket, writable })
  }
  return {
    stream,
    open,
    close: (n: number) => {
      open()
      sent = 0
      stopAt = n
    },
    isStanding: () => goOn !== undefined,
    sent: () => sent,
  }
}

/** Makes the gates for a schema, on which `installGates` was run. */
export const makeGates = async (url: string, schema: string, lock: number) => {
  const statements = statementGates(new URL(url))
  const client = new Pg.Client({ connectionString: url })
  // What fails says so itself.
  client.on("error", () => undefined)
  await client.connect()
  let isHeld = false
  /** Runs a statement past all gates. */
  const run = async <Row extends Pg.QueryResultRow>(
    statement: string,
    params: ReadonlyArray<unknown> = [],
  ): Promise<ReadonlyArray<Row>> => (await client.query<Row>(statement, [...params])).rows
  const names = [sessionName(schema, "first"), sessionName(schema, "second")]

  /** Lets the first operation go on. */
  const open = async (): Promise<void> => {
    statements.open()
    if (isHeld) await run(`SELECT pg_advisory_unlock(${lock})`)
    isHeld = false
  }

  return {
    /** Makes the first operation's sockets. */
    stream: statements.stream,
    run,
    open,

    /** Closes a gate, or none, and counts from 1 again. */
    close: async (stop?: Stop) => {
      await open()
      await run(
        `WITH stopped AS (UPDATE ${schema}.gate_stop SET visit = $1)
         SELECT setval('${schema}.gate_visits', 1, false)`,
        [stop?.kind === "row" ? stop.n : 0],
      )
      statements.close(stop?.kind === "statement" ? stop.n : 0)
      if (stop?.kind !== "row") return
      await run(`SELECT pg_advisory_lock(${lock})`)
      isHeld = true
    },

    look: async (): Promise<Standing> => {
      const [row] = await run<{ readonly place: string | null; readonly is_blocked: boolean }>(
        `WITH session AS MATERIALIZED (
           SELECT pid, application_name AS name FROM pg_stat_activity
           WHERE application_name LIKE $1 || '%' OR application_name = $2
         )
         SELECT (SELECT min(substr(name, length($1) + 5)) FROM session WHERE name LIKE $1 || ' at %') AS place,
                EXISTS (
                  SELECT FROM session s
                  WHERE s.name = $2 AND pg_blocking_pids(s.pid) && ARRAY(SELECT pid FROM session WHERE name <> $2)
                ) AS is_blocked`,
        names,
      )
      const place = statements.isStanding() ? "between statements" : row?.place
      return { place: place ?? undefined, isBlocked: row?.is_blocked === true }
    },

    /** How many row gates and statements the first operation has passed since a gate was closed. */
    passed: async () => {
      const [row] = await run<{ readonly visits: string }>(
        `SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END AS visits FROM ${schema}.gate_visits`,
      )
      return { row: Number(row?.visits), statement: statements.sent() }
    },

    end: () => client.end(),
  }
}
