import { publishing } from "./publish.ts"

/**
 * Stores events and their deliveries: one element of each array for each event. Gives the positions,
 * from 1, of those whose project exists.
 */
export const publish = (schema: string): string => `
  WITH found AS MATERIALIZED (
    SELECT a.*
    FROM unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[])
    WITH ORDINALITY AS a (project_id, event_id, event_type, at, body, n)
    JOIN ${schema}.projects p ON p.id = a.project_id
  ),${publishing(schema, "found")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/** Stores an event and its delivery to one webhook. Gives a row if the webhook exists. */
export const publishTo = (schema: string): string => `
  WITH asked AS (
    SELECT $1::text AS project_id, $2::uuid AS event_id, $3::text AS event_type,
           $4::timestamptz AS at, $5::text AS body
  ),
  webhook AS (
    SELECT id, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $6::uuid AND project_id = $1
  ),
  published AS (
    INSERT INTO ${schema}.events (id, project_id, type, at, body)
    SELECT a.event_id, a.project_id, a.event_type, a.at, a.body
    FROM asked a, webhook w WHERE NOT w.is_disabled
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, due_at)
    SELECT a.event_id, w.id, clock_timestamp() FROM asked a, webhook w WHERE NOT w.is_disabled
  )
  SELECT is_disabled FROM webhook
`

/** Reads deliveries of a webhook, newest first. */
export const deliveries = (schema: string): string => `
  SELECT d.event_id, e.type, d.due_at, d.attempts, s.state
  FROM ${schema}.deliveries d
  JOIN ${schema}.events e ON e.id = d.event_id AND e.project_id = $1::text
  LEFT JOIN ${schema}.webhooks w ON w.id = d.webhook_id
  CROSS JOIN LATERAL (
    SELECT CASE
      WHEN d.state NOT IN ('ready', 'later', 'leased') THEN d.state
      WHEN w.id IS NULL THEN 'cancelled'
      ELSE 'waiting'
    END AS state
  ) s
  WHERE d.webhook_id = $2::uuid
    AND ($3::text IS NULL OR s.state = $3::text)
    AND ($4::uuid IS NULL OR d.position < (
      SELECT o.position FROM ${schema}.deliveries o
      WHERE o.event_id = $4::uuid AND o.webhook_id = $2::uuid
    ))
  ORDER BY d.position DESC
  LIMIT $5::integer
`

/**
 * Begins deliveries that have ended anew: that of the event `$3`, or those that have failed, of
 * events since `$4`. Gives a row if the webhook exists.
 */
export const replay = (schema: string): string => `
  WITH webhook AS (
    SELECT id, disabled_at IS NOT NULL AS is_disabled FROM ${schema}.webhooks
    WHERE id = $2::uuid AND project_id = $1::text
  ),
  replayed AS (
    UPDATE ${schema}.deliveries d
    SET state = 'ready', due_at = clock_timestamp(), claims = 0
    FROM webhook w, ${schema}.events e
    WHERE d.webhook_id = w.id AND NOT w.is_disabled AND e.id = d.event_id
      AND (d.state = 'failed' OR d.state = 'delivered' AND $3::uuid IS NOT NULL)
      AND (d.event_id = $3::uuid OR e.at >= $4::timestamptz)
    RETURNING d.event_id
  )
  SELECT is_disabled, (SELECT count(*) FROM replayed)::integer AS replayed FROM webhook
`
