/** The outbox on PostgreSQL. */

import { type Event, EventId, EventType } from "@tenure/core/Event"
import type { Attempt, Claim, Delivery, Outbox, Settlement } from "@tenure/core/Outbox"
import { ProjectId, ProjectNotFound } from "@tenure/core/Project"
import { WebhookDisabled, WebhookId, WebhookNotFound } from "@tenure/core/Webhook"
import { Secret, SigningKey } from "@tenure/core/WebhookSignature"
import * as Effect from "effect/Effect"
import { claim } from "../statements/claim.ts"
import * as Statements from "../statements/outbox.ts"
import { giveUp, settle } from "../statements/settle.ts"
import type { Database } from "./database.ts"
import * as Gather from "./gather.ts"
import type { Nudge } from "./nudge.ts"
import { bigints, instant, instants, integer, text, texts, uuid, uuids } from "./parameters.ts"

interface ClaimRow {
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

interface DeliveryRow {
  readonly event_id: string
  readonly type: string
  readonly due_at: Date
  readonly attempts: ReadonlyArray<Attempt>
  readonly state: Delivery["state"]
}

interface ReplayRow {
  readonly is_disabled: boolean
  readonly replayed: number
}

interface Settled {
  readonly claim: Claim
  readonly settlement: Settlement
}

// How many webhooks a claim takes from, so that it does not take long.
const lanes = 256

const outcomes = {
  Delivered: "delivered",
  Retry: "later",
  Failed: "failed",
  Disabled: "disabled",
  Released: "released",
} as const

/** Texts as PostgreSQL can keep them in JSON: without NUL, and with all surrogates in pairs. */
const storable = (_key: string, value: unknown): unknown =>
  typeof value === "string" ? value.replace(/[\0\p{Cs}]/gu, "\ufffd") : value

const attemptOf = (settlement: Settlement): string | undefined =>
  settlement._tag === "Released" ? undefined : JSON.stringify(settlement.attempt, storable)

const delayOf = (settlement: Settlement): bigint =>
  settlement._tag === "Retry" ? BigInt(Math.ceil(settlement.delayMillis)) : 0n

const holdOf = (settlement: Settlement): bigint =>
  settlement._tag === "Retry" || settlement._tag === "Failed"
    ? BigInt(Math.ceil(settlement.holdMillis))
    : 0n

const announcementOf = (settlement: Settlement): Event | undefined =>
  settlement._tag === "Disabled" ? settlement.announcement : undefined

const toClaims = (rows: ReadonlyArray<ClaimRow>): ReadonlyArray<Claim> =>
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
              secrets: row.secrets.filter(Secret.is),
              signingKey: row.signing_key === null ? undefined : SigningKey(row.signing_key),
              failures: row.failures,
              failingSince: row.failing_since === null ? undefined : Number(row.failing_since),
            },
            attempt: row.claims,
            lease: String(row.lease),
          },
        ],
  )

/** Makes the outbox. */
export const make = Effect.fnUntraced(function* (database: Database, nudge: Nudge) {
  const { schema } = database
  const sql = {
    publish: Statements.publish(schema),
    publishTo: Statements.publishTo(schema),
    deliveries: Statements.deliveries(schema),
    replay: Statements.replay(schema),
    claim: claim(schema),
    settle: settle(schema),
    giveUp: giveUp(schema),
  }
  // The webhook that was looked at last; if there was more to claim than asked for, the last of which
  // something was.
  let lookedAt = "00000000-0000-0000-0000-000000000000"

  const settleMany = Effect.fnUntraced(function* (all: ReadonlyArray<Settled>) {
    const announcements = all.map(({ settlement }) => announcementOf(settlement))
    const rows = yield* database.query<{ n: number; deliveries: number }>(sql.settle, [
      uuids(all.map((one) => one.claim.event.id)),
      uuids(all.map((one) => one.claim.webhook.webhookId)),
      bigints(all.map((one) => BigInt(one.claim.lease))),
      texts(all.map(({ settlement }) => outcomes[settlement._tag])),
      texts(all.map(({ settlement }) => attemptOf(settlement))),
      bigints(all.map(({ settlement }) => delayOf(settlement))),
      bigints(all.map(({ settlement }) => holdOf(settlement))),
      uuids(announcements.map((event) => event?.id)),
      texts(announcements.map((event) => event?.type)),
      instants(announcements.map((event) => event?.at)),
      texts(announcements.map((event) => event?.body)),
    ])
    if (rows.some(({ deliveries }) => deliveries > 0)) yield* nudge.tell
    const disabled = all.filter(({ settlement }) => settlement._tag === "Disabled")
    if (disabled.length > 0) {
      yield* database.query(sql.giveUp, [uuids(disabled.map((one) => one.claim.webhook.webhookId))])
    }
    return Gather.isAmong(all, rows)
  })

  /** Publishes events; tells of each whether its project exists. */
  const publishMany = Effect.fnUntraced(function* (events: ReadonlyArray<Event>) {
    const rows = yield* database.join<{ n: number; deliveries: number }>(sql.publish, [
      texts(events.map(({ projectId }) => projectId)),
      uuids(events.map(({ id }) => id)),
      texts(events.map(({ type }) => type)),
      instants(events.map(({ at }) => at)),
      texts(events.map(({ body }) => body)),
    ])
    if (rows.some(({ deliveries }) => deliveries > 0)) yield* database.afterCommit(nudge.tell)
    return Gather.isAmong(events, rows)
  })

  const publishGathered = yield* Gather.make({
    run: publishMany,
    keyOf: (event: Event) => event.id,
    isOwn: () => false,
    maxBatch: 256,
    maxInFlight: 2,
  })

  const settleGathered = yield* Gather.make({
    run: settleMany,
    isOwn: () => false,
    keyOf: (one: Settled) => `${one.claim.event.id} ${one.claim.webhook.webhookId}`,
    maxBatch: 256,
    maxInFlight: 2,
  })

  const outbox: Outbox["Service"] = {
    publish: Effect.fnUntraced(function* (event) {
      const isFound = (yield* database.isJoined)
        ? (yield* publishMany([event]))[0]
        : yield* publishGathered(event)
      if (isFound !== true) return yield* new ProjectNotFound({ projectId: event.projectId })
    }),

    publishTo: Effect.fnUntraced(function* (event, webhookId) {
      const [row] = yield* database.join<{ readonly is_disabled: boolean }>(sql.publishTo, [
        text(event.projectId),
        uuid(event.id),
        text(event.type),
        instant(event.at),
        text(event.body),
        uuid(webhookId),
      ])
      if (row === undefined) return yield* new WebhookNotFound({ webhookId })
      if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
      yield* database.afterCommit(nudge.tell)
    }),

    claim: Effect.fnUntraced(function* ({ leaseMillis, limit, perWebhook }) {
      const rows = yield* database.query<ClaimRow>(sql.claim, [
        integer(limit),
        integer(perWebhook),
        integer(Math.ceil(leaseMillis)),
        uuid(lookedAt),
        integer(lanes),
      ])
      const [first] = rows
      const last = rows.length === limit ? rows.at(-1)?.webhook_id : first?.looked_at
      lookedAt = last ?? lookedAt
      const dueIn = first?.due_in ?? undefined
      return {
        claims: toClaims(rows),
        nextDueMillis: dueIn === undefined ? undefined : Math.max(0, Math.ceil(dueIn)),
      }
    }),

    settle: Effect.fnUntraced(function* (claimed, settlement) {
      const isSettled = yield* settleGathered({ claim: claimed, settlement })
      if (isSettled && settlement._tag === "Released") yield* nudge.tell
      return isSettled
    }),

    changes: nudge.heard,

    deliveries: Effect.fnUntraced(function* ({ projectId, webhookId }, page) {
      const rows = yield* database.join<DeliveryRow>(sql.deliveries, [
        text(projectId),
        uuid(webhookId),
        text(page.state),
        uuid(page.olderThan),
        integer(page.limit),
      ])
      return rows.map(({ attempts, due_at, event_id, state, type }) => ({
        eventId: EventId(event_id),
        type: EventType(type),
        webhookId,
        state,
        dueAt: Number(due_at),
        attempts,
      }))
    }),

    replay: Effect.fnUntraced(function* ({ projectId, webhookId }, which) {
      const [row] = yield* database.join<ReplayRow>(sql.replay, [
        text(projectId),
        uuid(webhookId),
        uuid(which._tag === "One" ? which.eventId : undefined),
        instant(which._tag === "FailedSince" ? which.at : undefined),
      ])
      if (row === undefined) return yield* new WebhookNotFound({ webhookId })
      if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
      if (row.replayed > 0) yield* database.afterCommit(nudge.tell)
      return row.replayed
    }),
  }
  return outbox
})
