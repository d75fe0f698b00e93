/** Checks before a cell moves: what both ends need, and which roles have rights on the cell. */

import type { PgClient } from "@effect/sql-pg/PgClient"
import { TaggedError } from "@tenure/core/internal"
import * as Effect from "effect/Effect"
import { findIdentity } from "../connection/host-transaction.ts"
import { parseUrl } from "../connection/url.ts"
import { checkSchema } from "../schema/migrate.ts"
import { quoted } from "../sql/clauses.ts"
import { textParam, textsParam } from "../sql/values.ts"

/** The move cannot begin or continue. The message says why, and what to do. */
export class MoveRefused extends TaggedError("MoveRefused")<{ readonly message: string }> {}

/** Fails with `MoveRefused`. */
export const refuse = (message: string) => Effect.fail(new MoveRefused({ message }))

/** A server that a cell moves from or to. */
export interface MoveServer {
  readonly name: string
  /** A client that connects straight to the server, without a pooler. */
  readonly client: PgClient
  /** The URL by which the other end reaches this one. */
  readonly replicationUrl: string
}

/** A cell's move from one server to another. */
export interface CellMove {
  readonly number: number
  /** The name of the cell's schema. */
  readonly schema: string
  /** The name of the home's schema, which has the directory. */
  readonly homeSchema: string
  readonly home: PgClient
  readonly source: MoveServer
  readonly target: MoveServer
}

/** What was found at the source. */
export interface SourceState {
  readonly database: string
  readonly wal_level: string
  readonly may_replicate: boolean
  readonly may_publish: boolean
  readonly owns_schema: boolean
  readonly free_slots: number
  readonly free_senders: number
}

/** What was found at the target. */
export interface TargetState {
  readonly database: string
  readonly may_subscribe: boolean
  readonly needs_password: boolean
  readonly free_workers: number
}

// Amazon RDS has these roles in place of the attributes.
const hasRole = (role: string, names: string): string =>
  `EXISTS (SELECT FROM pg_roles r WHERE r.rolname IN (${names}) AND pg_has_role(${role}, r.oid, 'USAGE'))`

const inspectSource = (schema: string): string => `
  SELECT (${findIdentity}) AS database,
         current_setting('wal_level') AS wal_level,
         coalesce((
           SELECT o.rolreplication OR o.rolsuper OR ${hasRole("o.oid", "'rds_replication'")}
           FROM pg_roles o WHERE o.rolname = coalesce($1, current_user)
         ), false) AS may_replicate,
         has_database_privilege(current_database(), 'CREATE') AS may_publish,
         pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = '${schema}'), 'USAGE') AS owns_schema,
         current_setting('max_replication_slots')::integer
           - (SELECT count(*) FROM pg_replication_slots)::integer AS free_slots,
         current_setting('max_wal_senders')::integer
           - (SELECT count(*) FROM pg_stat_replication)::integer AS free_senders
`

const inspectTarget = `
  SELECT (${findIdentity}) AS database,
         o.rolsuper OR ${hasRole("o.oid", "'pg_create_subscription', 'rds_superuser'")} AS may_subscribe,
         NOT o.rolsuper AS needs_password,
         current_setting('max_logical_replication_workers')::integer
           - (SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL)::integer AS free_workers
  FROM pg_roles o WHERE o.rolname = current_user
`

// The subscription itself, and one table at a time.
const leastWorkers = 2

/** Returns everything that is missing at both ends, in sentences. */
export const findProblems = (
  { source, target }: { readonly source: string; readonly target: string },
  from: SourceState,
  to: TargetState,
  replicationUrl: string,
): ReadonlyArray<string> => {
  const few = Math.min(from.free_slots, from.free_senders) < leastWorkers
  const hasPassword =
    /[?&]password=/.test(replicationUrl) || (parseUrl(replicationUrl)?.password ?? "") !== ""
  const checks: ReadonlyArray<readonly [boolean, string]> = [
    [from.database === to.database, `${source} and ${target} are the same database.`],
    [
      from.wal_level !== "logical",
      `Set wal_level = logical on ${source}, and restart it: it is ${from.wal_level}.`,
    ],
    [
      !from.may_replicate,
      `Give REPLICATION to the role in the URL of ${source}: ALTER ROLE … REPLICATION.`,
    ],
    [
      !from.may_publish,
      `Let the role in the URL of ${source} create publications: GRANT CREATE ON DATABASE.`,
    ],
    [!from.owns_schema, `The role in the URL of ${source} must own the tables.`],
    [
      few,
      `Raise max_replication_slots and max_wal_senders on ${source}: ${from.free_slots} and ${from.free_senders} are free, and ${leastWorkers} are needed.`,
    ],
    [
      !to.may_subscribe,
      `Let the role in the URL of ${target} create subscriptions: GRANT pg_create_subscription, or a superuser before PostgreSQL 16.`,
    ],
    [
      to.needs_password && !hasPassword,
      `The URL by which ${target} reaches ${source} must have a password, unless the role at ${target} is a superuser.`,
    ],
    [
      to.free_workers < leastWorkers,
      `Raise max_logical_replication_workers on ${target}: ${to.free_workers} are free, and ${leastWorkers} are needed.`,
    ],
  ]
  return checks.flatMap(([isMissing, problem]) => (isMissing ? [problem] : []))
}

/** Returns roles with rights on the cell, and statements that grant them the same rights elsewhere. */
const listGrants = (schema: string): string => `
  WITH spaces AS (SELECT * FROM pg_namespace WHERE nspname = '${schema}'),
  grants AS (
    SELECT a.grantee, a.is_grantable, n.nspowner AS owner, a.privilege_type AS privilege,
           format('GRANT %%s ON SCHEMA %I', n.nspname) AS text
    FROM spaces n CROSS JOIN LATERAL aclexplode(n.nspacl) a
    UNION ALL
    SELECT a.grantee, a.is_grantable, c.relowner, a.privilege_type,
           format('GRANT %%s ON %s %I.%I', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.nspname, c.relname)
    FROM spaces n JOIN pg_class c ON c.relnamespace = n.oid CROSS JOIN LATERAL aclexplode(c.relacl) a
    UNION ALL
    SELECT a.grantee, a.is_grantable, c.relowner, format('%s (%I)', a.privilege_type, t.attname),
           format('GRANT %%s ON %I.%I', n.nspname, c.relname)
    FROM spaces n JOIN pg_class c ON c.relnamespace = n.oid JOIN pg_attribute t ON t.attrelid = c.oid
    CROSS JOIN LATERAL aclexplode(t.attacl) a
    UNION ALL
    SELECT a.grantee, a.is_grantable, d.defaclrole, a.privilege_type,
           format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT %%s ON %s', n.nspname,
                  CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'FUNCTIONS' ELSE 'TYPES' END)
    FROM spaces n JOIN pg_default_acl d ON d.defaclnamespace = n.oid AND d.defaclrole = n.nspowner
    CROSS JOIN LATERAL aclexplode(d.defaclacl) a
  )
  SELECT r.rolname AS role,
         format(text, privilege) || ' TO ' || coalesce(quote_ident(r.rolname), 'PUBLIC')
           || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS statement
  FROM grants g LEFT JOIN pg_roles r ON r.oid = g.grantee
  WHERE g.grantee <> g.owner
`

export interface GrantRow {
  /** Null for everybody. */
  readonly role: string | null
  readonly statement: string
}

const findAbsentRoles = `
  SELECT name FROM unnest($1::text[]) name WHERE name NOT IN (SELECT rolname FROM pg_roles)
`

/**
 * Checks both ends. Fails with `MoveRefused`, which names everything that is missing. Returns the rights to
 * grant at the target.
 */
export const checkEnds = Effect.fnUntraced(function* ({ schema, source, target }: CellMove) {
  yield* checkSchema(source.client, quoted(schema))
  const username = decodeURIComponent(parseUrl(source.replicationUrl)?.username ?? "")
  const params = [textParam(username === "" ? undefined : username)]
  const [from] = yield* source.client.unsafe<SourceState>(inspectSource(schema), params)
  const [to] = yield* target.client.unsafe<TargetState>(inspectTarget)
  if (from === undefined || to === undefined) return yield* refuse("A server does not answer.")
  const names = { source: source.name, target: target.name }
  const problems = findProblems(names, from, to, source.replicationUrl)
  const grants = yield* source.client.unsafe<GrantRow>(listGrants(schema))
  const roles = textsParam([...new Set(grants.flatMap(({ role }) => role ?? []))])
  const absent = yield* target.client.unsafe<{ readonly name: string }>(findAbsentRoles, [roles])
  const missing = absent.map(({ name }) => `Create the role ${name} on ${target.name}, too.`)
  const all = [...problems, ...missing]
  return all.length > 0 ? yield* refuse(all.join(" ")) : grants
})
