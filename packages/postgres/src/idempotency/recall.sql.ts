/** Returns the answer to an idempotency key, and the fingerprint of its request, if the key is known. */
export const recall = (schema: string): string => `
  SELECT fingerprint, answer FROM ${schema}.answers WHERE owner = $1::text AND key = $2::text
`

/** The row of `recall`. */
export interface AnswerRow {
  readonly fingerprint: string
  readonly answer: string
}
