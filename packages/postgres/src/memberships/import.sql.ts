import type { Import } from "@tenure/core/MembershipStore"
import { instant, instants, text, texts, uuid } from "../connection/parameters.ts"
import type { OncePart } from "../idempotency/fragments.sql.ts"
import { nextRound } from "../sequence.sql.ts"
import { auditing, granting, lockedProject, publishingChange } from "./fragments.sql.ts"

/**
 * Creates memberships of a project, or sets the end dates of those that exist. Returns one row, with the
 * number of deliveries, if the project exists.
 */
export const importAll = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (
    SELECT $1::text AS project_id, user_id, to_date, n
    FROM unnest($2::text[], $3::timestamptz[]) WITH ORDINALITY AS a (user_id, to_date, n)
  ),
  ${lockedProject(schema, once.condition)},
  ${granting(schema, nextRound("p.seq"))},
  counted AS (
    UPDATE ${schema}.projects p
    SET members = p.members + (SELECT count(*) FROM granted WHERE is_new), seq = ${nextRound("p.seq")}
    FROM project WHERE p.number = project.number
  ),
  -- Who has which place in the import, in the order of the user ids. Not joined with what was granted: a plan made
  -- for few rows would compare each with each.
  placed AS MATERIALIZED (SELECT array_agg(n ORDER BY user_id COLLATE "C") AS places FROM asked),
  changed AS (
    SELECT project_number, user_id, seq, from_date, to_date, $4::timestamptz AS at,
           $5::text AS request_id, $6::text AS key_id, $10::text AS reason,
           (SELECT places FROM placed)[row_number() OVER (ORDER BY user_id COLLATE "C")] AS n
    FROM granted
  ),
  ${auditing(schema, "changed", "imported")},
  happened AS (
    SELECT number AS project_number, ${nextRound("seq")} AS seq, $7::uuid AS event_id, $8::text AS event_type, $4::timestamptz AS at,
           $9::text AS head, 1 AS n
    FROM project
  ),${publishingChange(schema, "happened")}${once.keeping("project", undefined, "number")}
  SELECT seq, (SELECT count(*) FROM delivered)::integer AS deliveries FROM happened
`

/** The parameters of `importAll`. */
export const importParams = ({ at, event, memberships, origin, projectId, reason }: Import) => [
  text(projectId),
  texts(memberships.map(({ userId }) => userId)),
  instants(memberships.map(({ endDate }) => endDate)),
  instant(at),
  text(origin.requestId),
  text(origin.keyId),
  uuid(event.id),
  text(event.type),
  text(event.head),
  text(reason),
]
