/**
 * Migration 1: the audit trail, in parts that can be dropped whole.
 *
 * The ids of a part are a range, and the sequence of the ids jumps to the first of them when the part
 * begins. So the order of ids is the order in which rows were written, in whichever part they are.
 */

import { asOwner, getsLock } from "./migration0001Days.ts"

/** Creates the table `audit` and its ids. */
export const createAudit = (schema: string): ReadonlyArray<string> => [
  // Without a cache, so that all connections continue behind a jump.
  `CREATE SEQUENCE ${schema}.audit_ids CACHE 1`,
  `
  CREATE TABLE ${schema}.audit (
    id         bigint NOT NULL DEFAULT nextval('${schema}.audit_ids'),
    -- 0 for what belongs to no project.
    project_number bigint NOT NULL,
    -- The round of the seq of the change. It puts an extension that a bulk extension overrode before that,
    -- whichever of them was recorded first.
    seq        bigint NOT NULL,
    -- NULL for a change of all memberships of the project, of somebody who was erased, or of something
    -- else: of the webhook, the API key or the project \`subject\`.
    user_id    text COLLATE "C",
    subject    text,
    action     text NOT NULL CHECK (action IN (
                 'granted', 'imported', 'extended', 'bulk_extended', 'bulk_lengthened', 'ended', 'expiring', 'expired', 'person_erased', 'project_created', 'project_deleted',
                 'webhook_created', 'webhook_deleted', 'webhook_enabled', 'webhook_disabled',
                 'secret_rotated', 'secret_shown', 'data_shown', 'signing_key_added', 'key_issued', 'key_opened', 'key_revoked'
               )),
    from_date  timestamptz,
    to_date    timestamptz,
    at         timestamptz NOT NULL,
    request_id text,
    key_id     text,
    reason     text,
    PRIMARY KEY (project_number, seq, id)
  ) PARTITION BY RANGE (id)
  `,
  `CREATE INDEX audit_of_user ON ${schema}.audit (project_number, user_id, seq, id)`,
  `
  CREATE INDEX audit_of_all_users ON ${schema}.audit (project_number, seq, id)
  WHERE action IN ('bulk_extended', 'bulk_lengthened')
  `,
  // Finds out that there are none.
  `
  CREATE INDEX audit_of_shorter ON ${schema}.audit (project_number, seq, id)
  WHERE action = 'bulk_lengthened'
  `,
  createFirstAuditId(schema),
  createAuditPart(schema),
  createAuditParts(schema),
  createBeginAudit(schema),
  createDropAudit(schema),
  // The only part, as long as rows are kept forever.
  `SELECT ${schema}.create_audit_part(today), setval('${schema}.audit_ids', ${schema}.first_audit_id(today))
   FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS today) t`,
]

/** Creates the function `first_audit_id`: the first id of the part that begins on a day. */
const createFirstAuditId = (schema: string): string => `
  CREATE FUNCTION ${schema}.first_audit_id(day date) RETURNS bigint LANGUAGE sql IMMUTABLE
  AS $$ SELECT (day - date '1970-01-01')::bigint << 40 $$
`

/**
 * Creates the function `create_audit_part`, which creates the part that begins on a day. It is written
 * through `audit` alone, so that a role without the right to change that cannot change the parts either.
 */
const createAuditPart = (schema: string): string => `
  CREATE FUNCTION ${schema}.create_audit_part(day date) RETURNS void LANGUAGE plpgsql
  AS $$
  DECLARE
    name CONSTANT text := '${schema}.audit' || to_char(day, '_YYYYMMDD');
    role text;
  BEGIN
    EXECUTE 'CREATE TABLE ' || name || ' (LIKE ${schema}.audit INCLUDING ALL)';
    FOR role IN
      SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
      FROM pg_class c, aclexplode(c.relacl) a
      WHERE c.oid = name::regclass AND a.grantee <> c.relowner
    LOOP
      EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON ' || name || ' FROM ' || role;
    END LOOP;
    EXECUTE format(
      'ALTER TABLE ${schema}.audit ATTACH PARTITION ' || name || ' FOR VALUES FROM (%s) TO (%s)',
      ${schema}.first_audit_id(day), ${schema}.first_audit_id(day + 1));
  END $$
`

/** Creates the view `audit_parts`: for each part, when it has begun, and the next one. */
const createAuditParts = (schema: string): string => `
  CREATE VIEW ${schema}.audit_parts AS
  SELECT c.relname AS name, d.day, lead(d.day) OVER (ORDER BY d.day) AS next_day
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL (SELECT to_date(right(c.relname, 8), 'YYYYMMDD') AS day) d
  WHERE i.inhparent = '${schema}.audit'::regclass
`

/**
 * Creates the function `begin_audit`, which begins a part if the newest one has covered a day, or a
 * thirtieth of the time that rows are kept: whatever reads rows of all parts has to open each. Returns
 * the day after each of two steps. In the first one, the part is created, and in the second one, the
 * sequence jumps to it, which no rollback could undo. Nobody writes meanwhile, because a statement that
 * has begun before knows nothing of the part.
 */
const createBeginAudit = (schema: string): string => `
  CREATE FUNCTION ${schema}.begin_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    today CONSTANT date := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    newest date;
    unused name;
  BEGIN
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    SELECT max(p.day) INTO newest
    FROM ${schema}.audit_parts p, ${schema}.audit_ids s
    WHERE ${schema}.first_audit_id(p.day) <= s.last_value;
    IF newest + greatest(interval '1 day', kept / 30) > today THEN RETURN; END IF;
    IF EXISTS (SELECT FROM ${schema}.audit_parts p WHERE p.day = today) THEN
      LOCK TABLE ONLY ${schema}.audit IN SHARE ROW EXCLUSIVE MODE;
      PERFORM setval('${schema}.audit_ids', ${schema}.first_audit_id(today));
    ELSE
      -- A part of an earlier day that has not begun would tell a wrong end of the one before it.
      FOR unused IN SELECT p.name FROM ${schema}.audit_parts p WHERE p.day > newest LOOP
        EXECUTE format('DROP TABLE ${schema}.%I', unused);
      END LOOP;
      PERFORM ${schema}.create_audit_part(today);
    END IF;
    RETURN NEXT today;
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`

/**
 * Creates the function `drop_audit`, which drops the oldest part if all of it is older than `kept`, and
 * returns its day. A part is written until some time of the day on which the next one begins.
 */
const createDropAudit = (schema: string): string => `
  CREATE FUNCTION ${schema}.drop_audit(kept interval) RETURNS SETOF date LANGUAGE plpgsql ${asOwner}
  AS $$
  DECLARE
    oldest record;
  BEGIN
    IF NOT has_table_privilege(session_user, '${schema}.audit', 'DELETE') THEN
      RAISE insufficient_privilege USING MESSAGE = 'permission denied to delete audit rows';
    END IF;
    IF NOT ${getsLock(schema)} THEN RETURN; END IF;
    SELECT * INTO oldest FROM ${schema}.audit_parts ORDER BY day LIMIT 1;
    IF oldest.next_day + 1 <= (clock_timestamp() AT TIME ZONE 'UTC') - kept
       AND ${schema}.first_audit_id(oldest.next_day) <= (SELECT last_value FROM ${schema}.audit_ids) THEN
      EXECUTE format('DROP TABLE ${schema}.%I', oldest.name);
      RETURN NEXT oldest.day;
    END IF;
  EXCEPTION WHEN lock_not_available THEN RETURN;
  END $$
`
