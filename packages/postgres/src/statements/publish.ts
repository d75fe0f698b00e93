/** The steps that every change ends with: an event, and its deliveries. */

/**
 * Common table expressions that store the events of `source`, a table with the columns `project_id`,
 * `event_id`, `event_type`, `at`, `body` and `n`, and a delivery of each to every webhook of its
 * project that is enabled and gets events of its type. They are named `published` and `delivered`.
 *
 * @param condition - what else has to hold of a webhook `w` and an event `s`
 */
export const publishing = (schema: string, source: string, condition = "true"): string => `
  published AS (
    INSERT INTO ${schema}.events (id, project_id, type, at, body)
    SELECT event_id, project_id, event_type, at, body FROM ${source}
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, due_at)
    SELECT s.event_id, w.id, clock_timestamp()
    FROM ${source} s
    JOIN ${schema}.webhooks w ON w.project_id = s.project_id AND w.disabled_at IS NULL
      AND (w.event_types IS NULL OR s.event_type = ANY (w.event_types))
      AND ${condition}
    ORDER BY s.n
    RETURNING webhook_id
  )`

/**
 * A common table expression, named `audited`, that records the changes of `source`: a table with the
 * columns `project_id`, `user_id`, `from_date`, `to_date`, `at`, `request_id`, `key_id` and `n`.
 */
export const auditing = (schema: string, source: string, action: string): string => `
  audited AS (
    INSERT INTO ${schema}.audit
      (project_id, user_id, action, from_date, to_date, at, request_id, key_id)
    SELECT project_id, user_id, '${action}', from_date, to_date, at, request_id, key_id
    FROM ${source}
    ORDER BY n
  )`
