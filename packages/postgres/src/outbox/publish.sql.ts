import type { Event } from "@tenure/core/Event"
import { instants, texts, uuids } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { publishing } from "./fragments.sql.ts"

/**
 * Stores events and their deliveries. Each array has one element for each event. Returns the
 * positions, from 1, of the events whose project exists, and the number of deliveries.
 */
export const publish = (schema: string, once: OncePart): string => `
  WITH found AS MATERIALIZED (
    SELECT a.*, p.number AS project_number
    FROM unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[])
    WITH ORDINALITY AS a (project_id, event_id, event_type, at, body, n)
    JOIN ${schema}.projects p ON p.id = a.project_id ${once.condition}
  ),${publishing(schema, "found")}${once.keeping("found", "event_id::text")}
  SELECT n::integer, (SELECT count(*) FROM delivered)::integer AS deliveries FROM found
`

/** The parameters of `publish`. */
export const publishParams = (events: ReadonlyArray<Event>) => [
  texts(events.map(({ projectId }) => projectId)),
  uuids(events.map(({ id }) => id)),
  texts(events.map(({ type }) => type)),
  instants(events.map(({ at }) => at)),
  texts(events.map(({ body }) => body)),
]
