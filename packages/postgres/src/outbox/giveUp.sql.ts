import type { Attempt } from "@tenure/core/Outbox"
import { bigints, text, uuids } from "../connection/parameters.ts"
import type { Lease } from "./claim.sql.ts"

/**
 * Ends claimed deliveries as failed, because they cannot be read: another attempt would not help. Each
 * array has one element for each delivery, and `$4` is the record of their attempts, as JSON.
 */
export const giveUp = (schema: string): string => `
  UPDATE ${schema}.deliveries d
  SET state = 'failed', lease = NULL, dispatcher = NULL, attempts = d.attempts || $4::jsonb
  FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) a (event_id, webhook_id, lease)
  WHERE d.event_id = a.event_id AND d.webhook_id = a.webhook_id
    AND d.state = 'leased' AND d.lease = a.lease
`

/** The result of the attempts. */
export const unreadable: Attempt["result"] = { _tag: "Failed", reason: "Unreadable" }

/** The parameters of `giveUp`. */
export const giveUpParams = (leases: ReadonlyArray<Lease>, at: number) => {
  const attempt: Attempt = { at, durationMillis: 0, result: unreadable }
  return [
    uuids(leases.map(({ event }) => event.id)),
    uuids(leases.map(({ webhook }) => webhook.webhookId)),
    bigints(leases.map(({ lease }) => BigInt(lease))),
    text(JSON.stringify(attempt)),
  ]
}
