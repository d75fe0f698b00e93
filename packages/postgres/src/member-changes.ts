/** Changes several memberships in one step. */

import type { MemberChanges, Term } from "@tenure/core/store"
import { type KeyClause, auditRowsAs, publishChange } from "./sql/clauses.ts"
import {
  flagsParam,
  instantParam,
  instantsParam,
  smallintsParam,
  textParam,
  textsParam,
  uuidsParam,
} from "./sql/values.ts"

/**
 * Makes changes with a function in the migrations, in the project `$1`. Returns one row for each, or none if a membership is
 * not as expected.
 */
export const changeEach = (schema: string, idempotency: KeyClause): string => `
  WITH asked AS MATERIALIZED (
    SELECT $2::timestamptz AS at, $14::text AS request_id, $15::text AS key_id, $16::text AS reason, $17::text AS action
    WHERE true ${idempotency.condition}
  ),
  changed AS MATERIALIZED (
    SELECT c.*, a.*, e.event_id, e.event_type, e.head
    FROM asked a
    CROSS JOIN LATERAL ${schema}.change_each(
      $1::text, $2::timestamptz, $3::text[], $4::timestamptz[], $5::boolean[], $6::smallint[], $7::timestamptz[],
      $8::timestamptz[], $9::timestamptz[], $10::boolean[], $11::smallint[], $12::timestamptz[], $13::timestamptz[]
    ) c
    JOIN unnest($18::uuid[], $19::text[], $20::text[]) WITH ORDINALITY AS e (event_id, event_type, head, n) ON e.n = c.n
  ),
  ${auditRowsAs(schema, "changed", "CASE action WHEN 'extended' THEN 'extended' ELSE 'reverted' END", true)},${publishChange(schema, "changed", "metadata")}${idempotency.keeping("(SELECT project_number FROM changed LIMIT 1) one")}
  SELECT seq, metadata, (SELECT count(*) FROM delivered)::integer AS deliveries FROM changed ORDER BY n
`

const termsParams = (terms: ReadonlyArray<Term | undefined>) => [
  instantsParam(terms.map((term) => term?.endDate)),
  flagsParam(terms.map((term) => term?.inDays)),
  smallintsParam(terms.map((term) => term?.keptDay)),
  instantsParam(terms.map((term) => term?.pause?.since)),
  instantsParam(terms.map((term) => term?.pause?.until)),
]

/** The parameters for `changeEach`. */
export const changeEachParams = ({
  action,
  at,
  changes,
  origin,
  projectId,
  reason,
}: MemberChanges) => [
  textParam(projectId),
  instantParam(at),
  textsParam(changes.map(({ userId }) => userId)),
  ...termsParams(changes.map(({ to }) => to)),
  ...termsParams(changes.map(({ from }) => from)),
  textParam(origin.requestId),
  textParam(origin.keyId),
  textParam(reason),
  textParam(action),
  uuidsParam(changes.map(({ event }) => event.id)),
  textsParam(changes.map(({ event }) => event.type)),
  textsParam(changes.map(({ event }) => event.head)),
]
