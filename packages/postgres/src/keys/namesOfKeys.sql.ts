/** Returns the names of the keys with the ids `$1`, of those that have one. */
export const namesOfKeys = (schema: string): string => `
  SELECT k.id, k.name FROM ${schema}.api_keys k
  WHERE k.id = ANY ($1::text[]) AND k.name IS NOT NULL
`

/** The row of `namesOfKeys`. */
export interface NameRow {
  readonly id: string
  readonly name: string
}
