/** Adds a webhook, unless the project has as many as it may have. Says whether it exists at all. */
export const addWebhook = (schema: string): string => `
  WITH counted AS (
    UPDATE ${schema}.projects SET webhooks = webhooks + 1
    WHERE id = $2::text AND webhooks < $6::integer
    RETURNING id
  ),
  added AS (
    INSERT INTO ${schema}.webhooks (id, project_id, url, secret, created_at, event_types)
    SELECT $1::uuid, id, $3::text, $4::text, $5::timestamptz, $7::text[] FROM counted
    RETURNING id
  )
  SELECT EXISTS (SELECT FROM added) AS added,
         EXISTS (SELECT FROM ${schema}.projects WHERE id = $2::text) AS project_exists
`

/** Reads the webhooks of a project, oldest first: one empty row if it has none, none if there is no project. */
export const listWebhooks = (schema: string): string => `
  SELECT w.id, w.url, w.secret, w.previous_secret, w.previous_until, w.signing_key, w.event_types,
         w.created_at, w.disabled_at
  FROM ${schema}.projects p
  LEFT JOIN ${schema}.webhooks w ON w.project_id = p.id
  WHERE p.id = $1::text
  ORDER BY w.position
`

/** Gives a webhook a new secret, and keeps the old one for a time. Gives a row if it exists. */
export const rotateSecret = (schema: string): string => `
  UPDATE ${schema}.webhooks
  SET secret = $3::text, previous_secret = secret, previous_until = $4::timestamptz
  WHERE id = $2::uuid AND project_id = $1::text
  RETURNING id
`

/** Gives a webhook a signing key, unless it has one. Gives the one that it has. */
export const signWebhook = (schema: string): string => `
  UPDATE ${schema}.webhooks SET signing_key = coalesce(signing_key, $3::text)
  WHERE id = $2::uuid AND project_id = $1::text
  RETURNING signing_key
`

/** Enables a webhook. Gives a row if it exists. */
export const enableWebhook = (schema: string): string => `
  UPDATE ${schema}.webhooks SET disabled_at = NULL, failures = 0, failing_since = NULL, held_until = NULL
  WHERE id = $2::uuid AND project_id = $1::text
  RETURNING id
`

/**
 * Removes a webhook, and tells the channel `$3` of it. Its deliveries are cancelled with it: what is
 * open is claimed by nobody.
 */
export const removeWebhook = (schema: string): string => `
  WITH removed AS (
    DELETE FROM ${schema}.webhooks WHERE id = $2::uuid AND project_id = $1::text
    RETURNING id
  ),
  counted AS (
    UPDATE ${schema}.projects SET webhooks = webhooks - 1
    WHERE id = $1::text AND EXISTS (SELECT FROM removed)
  )
  SELECT id, pg_notify($3::text, id::text) FROM removed
`
