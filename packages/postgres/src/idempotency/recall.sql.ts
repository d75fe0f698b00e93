import { isKnown } from "./fragments.sql.ts"

/** Returns the answer to an idempotency key, and the fingerprint of its request, if the key is known. */
export const recall = (schema: string): string => `
  SELECT k.fingerprint, k.answer FROM ${schema}.answers k
  WHERE k.owner = $1::text AND k.key = $2::text AND ${isKnown(schema)}
`

/** The row of `recall`. */
export interface AnswerRow {
  readonly fingerprint: string
  readonly answer: string
}
