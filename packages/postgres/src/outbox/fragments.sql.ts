/** What the statements that publish events share. */

/**
 * The common table expressions `published` and `delivered`: they store the events of `source`, and a
 * delivery of each to every webhook of its project that is enabled and receives its type. `source` has
 * the columns `project_number`, `event_id`, `event_type`, `at`, `body` and `n`, which gives the order; the
 * deliveries of an event are in that of the list of webhooks.
 *
 * @param options.body - an expression for the body, in place of that column
 * @param options.condition - a further condition on a webhook `w` and a row `s` of `source`
 */
export const publishing = (
  schema: string,
  source: string,
  { body = "body", condition = "true" } = {},
): string => `
  published AS (
    INSERT INTO ${schema}.events (id, project_number, type, at, body)
    SELECT event_id, project_number, event_type, at, ${body} FROM ${source}
  ),
  delivered AS (
    INSERT INTO ${schema}.deliveries (event_id, webhook_id, due_at)
    SELECT s.event_id, w.id, clock_timestamp()
    FROM ${source} s
    JOIN ${schema}.webhooks w ON w.project_number = s.project_number AND w.disabled_at IS NULL
      AND (w.event_types IS NULL OR s.event_type = ANY (w.event_types))
      AND ${condition}
    ORDER BY s.n, w.position
    RETURNING webhook_id
  )`

/** The row for each event or attempt of a batch that the statement accepted. */
export interface AcceptedRow {
  /** The position in the batch, from 1. */
  readonly n: number
  readonly deliveries: number
}

/** Whether a statement has stored deliveries. */
export const hasDeliveries = (rows: ReadonlyArray<AcceptedRow>): boolean =>
  rows.some(({ deliveries }) => deliveries > 0)
