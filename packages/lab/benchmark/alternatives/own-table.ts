/**
 * A team's own tables on `pg`, in place of Tenure. An extension is one statement: a round trip, a
 * transaction. A job polls for deliveries.
 *
 * It does less than Tenure: no idempotency keys, bulk extensions, ordered feed, partitions, or history of
 * attempts; one slow receiver delays the others; a dead process is noticed after a minute.
 */

import { createHash, randomUUID } from "node:crypto"
import { setTimeout as pause } from "node:timers/promises"
import pg from "pg"
import { send } from "./send.ts"

/** The tables. `fillfactor` leaves room for new row versions, as Tenure's does. */
const tables = `
  CREATE TABLE memberships (
    project_id text, user_id text, end_date timestamptz NOT NULL, PRIMARY KEY (project_id, user_id)
  ) WITH (fillfactor = 60);
  CREATE TABLE api_keys (id uuid PRIMARY KEY, digest bytea UNIQUE, projects text[] NOT NULL);
  CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(),
    project_id text, user_id text, from_date timestamptz, to_date timestamptz,
    request_id uuid, key_id uuid
  );
  CREATE TABLE events (id uuid PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), body text NOT NULL);
  CREATE TABLE webhooks (id uuid PRIMARY KEY, project_id text, url text, secret text);
  CREATE TABLE deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL, webhook_id uuid NOT NULL,
    attempts integer NOT NULL DEFAULT 0, due_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz
  ) WITH (fillfactor = 60);
  CREATE INDEX ON deliveries (due_at) WHERE delivered_at IS NULL;`

const extendMembership = `
  WITH old AS (
    SELECT end_date FROM memberships WHERE project_id = $1 AND user_id = $2 FOR UPDATE
  ), changed AS (
    UPDATE memberships SET end_date = $3 FROM old WHERE project_id = $1 AND user_id = $2
    RETURNING old.end_date
  ), audited AS (
    INSERT INTO audit (project_id, user_id, from_date, to_date, request_id, key_id)
    SELECT $1, $2, end_date, $3, $4, $5 FROM changed
  ), event AS (
    INSERT INTO events (id, body) SELECT $6, $7 FROM changed RETURNING id
  ), queued AS (
    INSERT INTO deliveries (event_id, webhook_id)
    SELECT event.id, webhooks.id FROM event, webhooks WHERE project_id = $1
  )
  SELECT 1 FROM changed`

const publishEvents = `
  WITH given AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[]) AS given (id, project_id, body)
  ), event AS (
    INSERT INTO events (id, body) SELECT id, body FROM given
  )
  INSERT INTO deliveries (event_id, webhook_id)
  SELECT given.id, webhooks.id FROM given JOIN webhooks USING (project_id)`

// The due time is a lease meanwhile: if the process dies, the deliveries are due again in a minute.
const claim = `
  WITH due AS (
    SELECT id FROM deliveries WHERE delivered_at IS NULL AND due_at <= now()
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
  )
  UPDATE deliveries d SET attempts = attempts + 1, due_at = now() + interval '1 minute'
  FROM due, events e, webhooks w
  WHERE d.id = due.id AND e.id = d.event_id AND w.id = d.webhook_id
  RETURNING d.id AS delivery, e.id, e.body, w.url, w.secret`

// Failed deliveries are due again after 2, 4, 8… seconds; the tenth failure is the last.
const settle = `
  UPDATE deliveries SET
    delivered_at = CASE WHEN id = ANY($1) THEN now() END,
    due_at = CASE WHEN attempts < 10 THEN now() + interval '1 second' * 2 ^ attempts ELSE 'infinity' END
  WHERE id = ANY($1) OR id = ANY($2)`

const [lanes, batchSize, pollMillis, keyMillis] = [2, 100, 100, 10_000]

/** An event to publish. */
export interface OwnEvent {
  readonly id: string
  readonly projectId: string
  readonly body: string
}

/** A valid request for an extension. */
export interface OwnExtension {
  readonly keyId: string
  readonly requestId: string
  readonly project: string
  readonly user: string
  readonly endDate: Date
}

/** Creates the tables in their own schema. */
export const createOwnTables = async (url: string, schema: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${tables}`)
  await client.end()
}

const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest()

/** Opens the tables. As many connections as Tenure opens by default. */
export const openOwnTables = (url: string, schema: string) => {
  const options = `-c search_path=${schema}`
  const pool = new pg.Pool({ connectionString: url, max: 10, options })
  const keys = new Map<string, { readonly key: Promise<OwnKey | undefined>; readonly at: number }>()

  const findKey = async (token: string): Promise<OwnKey | undefined> => {
    const text = "SELECT id, projects FROM api_keys WHERE digest = $1"
    const { rows } = await pool.query<OwnKey>({ name: "key", text, values: [digestOf(token)] })
    return rows[0]
  }

  const publish = (events: ReadonlyArray<OwnEvent>) =>
    pool.query({
      name: "publish",
      text: publishEvents,
      values: [
        events.map(({ id }) => id),
        events.map(({ projectId }) => projectId),
        events.map(({ body }) => body),
      ],
    })

  const deliverSome = async (): Promise<number> => {
    const { rows } = await pool.query({ name: "claim", text: claim, values: [batchSize] })
    if (rows.length === 0) return 0
    const sent = await Promise.allSettled(rows.map(send))
    const idsOf = (status: string) =>
      rows.filter((_, index) => sent[index]?.status === status).map(({ delivery }) => delivery)
    const values = [idsOf("fulfilled"), idsOf("rejected")]
    await pool.query({ name: "settle", text: settle, values })
    return rows.length
  }

  return {
    pool,
    publish,

    /** Finds a key, which may be ten seconds old, as in Tenure. */
    authenticate: (token: string): Promise<OwnKey | undefined> => {
      const known = keys.get(token)
      if (known !== undefined && Date.now() - known.at < keyMillis) return known.key
      const key = findKey(token)
      keys.set(token, { key, at: Date.now() })
      return key
    },

    /** Extends a membership. Returns whether it exists. */
    extend: async ({ endDate, keyId, project, requestId, user }: OwnExtension) => {
      const ids = { project_id: project, user_id: user, request_id: requestId }
      const data = { ...ids, new_end_date: endDate }
      const body = { type: "membership.extended", timestamp: new Date(), data }
      const { rowCount } = await pool.query({
        name: "extend",
        text: extendMembership,
        values: [project, user, endDate, requestId, keyId, randomUUID(), JSON.stringify(body)],
      })
      return rowCount === 1
    },

    addKeys: (tokens: ReadonlyArray<string>, projects: ReadonlyArray<string>) =>
      pool.query(
        "INSERT INTO api_keys SELECT gen_random_uuid(), digest, $2 FROM unnest($1::bytea[]) digest",
        [tokens.map(digestOf), projects],
      ),

    addMembers: (project: string, count: number) =>
      pool.query("INSERT INTO memberships SELECT $1, n, now() FROM generate_series(1, $2::int) n", [
        project,
        count,
      ]),

    addWebhook: (project: string, receiver: string, secret: string) =>
      pool.query("INSERT INTO webhooks VALUES (gen_random_uuid(), $1, $2, $3)", [
        project,
        receiver,
        secret,
      ]),

    /** Delivers until it is stopped, and polls ten times a second while nothing is due. */
    startJob: () => {
      const stopping = new AbortController()
      const lane = async () => {
        while (!stopping.signal.aborted) {
          if ((await deliverSome()) < batchSize) await pause(pollMillis)
        }
      }
      const running = Promise.all(Array.from({ length: lanes }, lane))
      return async () => {
        stopping.abort()
        await running
      }
    },
  }
}

/** A client's key. */
export interface OwnKey {
  readonly id: string
  readonly projects: ReadonlyArray<string>
}
