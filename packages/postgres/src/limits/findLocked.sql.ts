import { texts } from "../connection/parameters.ts"

/** Returns the keys of buckets that somebody has locked. */
export const findLocked = (schema: string): string => `
  SELECT a.key
  FROM unnest($1::text[]) AS a (key)
  CROSS JOIN LATERAL (SELECT 1 FROM ${schema}.buckets WHERE key = a.key) b
  LEFT JOIN LATERAL (
    SELECT true AS is_free FROM ${schema}.buckets WHERE key = a.key FOR UPDATE SKIP LOCKED
  ) f ON true
  WHERE f.is_free IS NULL
`

/** The parameters of `findLocked`. */
export const findLockedParams = (keys: ReadonlyArray<string>) => [texts(keys)]

/** A row of `findLocked`. */
export interface LockedRow {
  readonly key: string
}
