import { EventId } from "@tenure/core/Event"
import type { Claim, Outbox } from "@tenure/core/Outbox"
import { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { WebhookId } from "@tenure/core/Webhook"
import { bigint, integer, integers, uuid, uuids } from "../connection/parameters.ts"

/** Claims deliveries, by calling the function `claim` of the migrations, where it is described. */
export const claim = (schema: string): string =>
  `SELECT * FROM ${schema}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
   $11, $12)`

type ClaimOptions = Parameters<Outbox["Service"]["claim"]>[0]

/** Where a claim continues. */
export interface Position {
  /** The id of the dispatcher. */
  readonly dispatcher: string
  /** The last lease that it has received. */
  readonly lastLease: bigint
  /** The last webhook that it has looked at. */
  readonly lastWebhook: string
}

/** The parameters of `claim`. It looks at `firstWebhooks`, and at those after the last one. */
export const claimParams = (
  { ahead, failing, leaseMillis, limit, perProject, perWebhook }: ClaimOptions,
  { dispatcher, lastLease, lastWebhook }: Position,
  firstWebhooks: ReadonlyArray<string>,
) => [
  uuid(dispatcher),
  bigint(lastLease),
  integer(limit),
  integer(failing),
  integer(perWebhook.least),
  integer(perWebhook.most),
  integer(perProject),
  uuids([...ahead.keys()]),
  integers([...ahead.values()]),
  integer(Math.ceil(leaseMillis)),
  uuid(lastWebhook),
  uuids(firstWebhooks),
]

/** A row of `claim`. Without an event, it only says when to look again. */
export interface ClaimRow {
  readonly event_id: string | null
  readonly body: string | null
  readonly project_id: string
  readonly webhook_id: string
  readonly failures: number
  readonly failing_since: Date | null
  readonly url: string | null
  readonly secrets: ReadonlyArray<string> | null
  readonly signing_key: string | null
  readonly claims: number
  readonly lease: bigint | null
  readonly concurrency: number
  readonly looked_at: string
  readonly due_in: number | null
  readonly kept_back: ReadonlyArray<string> | null
}

/** A claimed delivery. */
export interface Lease {
  readonly event: Pick<Claim["event"], "id">
  readonly webhook: { readonly projectId: string; readonly webhookId: WebhookId }
  readonly attemptNumber: number
  readonly lease: string
}

/** A claim, unless the event or the webhook cannot be read. */
export interface Claimed {
  readonly lease: Lease
  readonly claim: Claim | undefined
}

const toClaimed = (row: ClaimRow & { readonly event_id: string }): Claimed => {
  const { body, project_id: projectId, secrets, signing_key: signingKey, url } = row
  const id = EventId(row.event_id)
  const webhookId = WebhookId(row.webhook_id)
  const lease = {
    event: { id },
    webhook: { projectId, webhookId },
    attemptNumber: row.claims,
    lease: String(row.lease),
  }
  if (body === null || url === null || secrets === null || !ProjectId.is(projectId)) {
    return { lease, claim: undefined }
  }
  const webhook = {
    projectId,
    webhookId,
    url,
    secrets: secrets.map(StoredSecret),
    signingKey: signingKey === null ? undefined : StoredSecret(signingKey),
    failures: row.failures,
    failingSince: row.failing_since === null ? undefined : Number(row.failing_since),
    concurrency: row.concurrency,
  }
  return { lease, claim: { ...lease, event: { id, body }, webhook } }
}

const hasEvent = <Row extends ClaimRow>(row: Row): row is Row & { readonly event_id: string } =>
  row.event_id !== null

/** Reads the rows with an event. */
export const toClaimedAll = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<Claimed> =>
  rows.filter(hasEvent).map(toClaimed)

/** Where the next claim continues. */
export const nextPosition = (
  { dispatcher, lastLease, lastWebhook }: Position,
  rows: ReadonlyArray<ClaimRow>,
): Position => {
  const leases = rows.map(({ lease }) => lease ?? 0n)
  return {
    dispatcher,
    lastLease: leases.reduce((last, lease) => (lease > last ? lease : last), lastLease),
    lastWebhook: rows[0]?.looked_at ?? lastWebhook,
  }
}

/** The webhooks of which a limit has kept back deliveries. */
export const keptBack = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<WebhookId> =>
  rows[0]?.kept_back?.map(WebhookId) ?? []

/** In how many milliseconds there may be more to claim, if it is known. */
export const nextDueMillis = (
  rows: ReadonlyArray<ClaimRow>,
  { limit }: ClaimOptions,
): number | undefined => {
  if (rows.length === limit && rows[0]?.event_id !== null) return 0
  const millis = rows[0]?.due_in ?? undefined
  return millis === undefined ? undefined : Math.max(0, Math.ceil(millis))
}
