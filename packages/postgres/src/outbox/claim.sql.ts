import { EventId } from "@tenure/core/Event"
import type { Claim, Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { WebhookId } from "@tenure/core/Webhook"
import { integer, uuid, uuids } from "../connection/parameters.ts"

/** Claims deliveries, by calling the function `claim` of the migrations, where it is described. */
export const claim = (schema: string): string =>
  `SELECT * FROM ${schema}.claim($1, $2, $3, $4, $5, $6, $7)`

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** The parameters of `claim`. It looks at `firstWebhooks`, and at those after `lastWebhook`. */
export const claimParams = (
  { failing, leaseMillis, limit, perProject, perWebhook }: ClaimOptions,
  lastWebhook: string,
  firstWebhooks: ReadonlyArray<string>,
) => [
  integer(limit),
  integer(failing),
  integer(perWebhook),
  integer(perProject),
  integer(Math.ceil(leaseMillis)),
  uuid(lastWebhook),
  uuids(firstWebhooks),
]

/** A row of `claim`. Without an event, it only says when to look again. */
export interface ClaimRow {
  readonly event_id: string | null
  readonly body: string
  readonly project_id: string
  readonly webhook_id: string
  readonly failures: number
  readonly failing_since: Date | null
  readonly url: string
  readonly secrets: ReadonlyArray<string>
  readonly signing_key: string | null
  readonly claims: number
  readonly lease: bigint
  readonly looked_at: string
  readonly due_in: number | null
}

/** Converts the rows with an event to claims. */
export const toClaims = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<Claim> =>
  rows.flatMap((row) =>
    row.event_id === null
      ? []
      : [
          {
            event: { id: EventId(row.event_id), body: row.body },
            webhook: {
              projectId: ProjectId(row.project_id),
              webhookId: WebhookId(row.webhook_id),
              url: row.url,
              secrets: row.secrets.map(StoredSecret),
              signingKey: row.signing_key === null ? undefined : StoredSecret(row.signing_key),
              failures: row.failures,
              failingSince: row.failing_since === null ? undefined : Number(row.failing_since),
            },
            attemptNumber: row.claims,
            lease: String(row.lease),
          },
        ],
  )

/** Where the next claim starts: after the last webhook that this claim looked at. */
export const nextStart = (rows: ReadonlyArray<ClaimRow>): string | undefined => rows[0]?.looked_at

/** In how many milliseconds there may be more to claim, if it is known. */
export const nextDueMillis = (
  rows: ReadonlyArray<ClaimRow>,
  { limit }: ClaimOptions,
): number | undefined => {
  if (rows.length === limit && rows[0]?.event_id !== null) return 0
  const millis = rows[0]?.due_in ?? undefined
  return millis === undefined ? undefined : Math.max(0, Math.ceil(millis))
}
