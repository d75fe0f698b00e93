import { isKnown, type OncePart } from "./fragments.sql.ts"

/**
 * Returns the answer to an idempotency key, and the fingerprint of its request, if the key is known. Of several
 * requests, which a move has brought together, it is the one with the fingerprint `$3`.
 */
export const recall = (schema: string): string => `
  SELECT k.fingerprint, k.answer FROM ${schema}.answers k
  WHERE k.owner = $1::text AND k.key = $2::text AND ${isKnown(schema)}
  ORDER BY k.fingerprint = $3::text DESC
  LIMIT 1
`

/** The row of `recall`. */
export interface AnswerRow {
  readonly fingerprint: string
  readonly answer: string
}

/** Stores an idempotency key for the project `$1`, unless the key is known. Returns a row if it is stored. */
export const keep = (schema: string, once: OncePart): string => `
  WITH found AS MATERIALIZED (
    SELECT p.number AS project_number FROM ${schema}.projects p
    WHERE p.id = $1::text ${once.condition}
  )${once.keeping("found")}
  SELECT 1 FROM found
`
