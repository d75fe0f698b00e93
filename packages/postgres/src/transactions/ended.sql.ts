import { texts, uuids } from "../connection/parameters.ts"

/**
 * Returns the positions, from 1, of the transactions `$1` that have ended, and whether the event in `$2`
 * that was stored in each is committed. An event of a savepoint may be undone by itself.
 */
export const findEnded = (schema: string): string => `
  SELECT a.n::integer, e.id IS NOT NULL AS is_committed
  FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS a (transaction_id, event_id, n)
  LEFT JOIN ${schema}.events e ON e.id = a.event_id
  -- Both are as of the same snapshot.
  WHERE pg_visible_in_snapshot(a.transaction_id::xid8, pg_current_snapshot())
`

/** An event, and the transaction in which it was stored. */
export interface Stored {
  readonly transactionId: string
  readonly eventId: string
}

/** The parameters of `findEnded`. */
export const findEndedParams = (stored: ReadonlyArray<Stored>) => [
  texts(stored.map(({ transactionId }) => transactionId)),
  uuids(stored.map(({ eventId }) => eventId)),
]

/** A row of `findEnded`. */
export interface EndedRow {
  readonly n: number
  readonly is_committed: boolean
}
