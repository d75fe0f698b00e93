import type { OncePart } from "../idempotency/fragments.sql.ts"

/**
 * Sets the end date of the memberships of a project that end earlier. Returns one row, with the number
 * of these memberships and of deliveries, if the project exists.
 */
export const extendShorter = (schema: string, once: OncePart): string => `
  WITH asked AS MATERIALIZED (SELECT WHERE true ${once.condition}),
  changed AS MATERIALIZED (
    SELECT e.* FROM asked, ${schema}.extend_shorter(
      $1::text, $2::text, $3::timestamptz, $4::timestamptz, $5::text, $6::text, $7::uuid, $8::text,
      $9::text, $10::text
    ) e
  )${once.keeping("changed", "total::text")}
  SELECT total, deliveries FROM changed
`
