/** The status of Tenure for operators: whether its stores answer, and how far deliveries are. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import type { StoreUnavailable } from "../base/errors.ts"
import type { ApiKeyId } from "../base/values.ts"
import { version } from "../base/version.ts"
import { ApiKeyStore } from "../keys/store.ts"
import { RateLimitStore } from "../limits/buckets.ts"
import type { LimitMode } from "../limits/outages.ts"
import { RateLimiter, type RateLimiterSettings } from "../limits/rate-limiter.ts"
import { MembershipStore } from "../memberships/store.ts"
import { type TroubledWebhook, compareTroubles } from "../webhooks/delivery-activity.ts"
import { EncryptionKeys } from "../webhooks/encryption-keys.ts"
import { type Backlog, Outbox, maxCountedBacklog } from "../webhooks/outbox.ts"
import { WebhookStore } from "../webhooks/store.ts"

type Limits = Pick<RateLimiterSettings, "onStoreFailure">

type Stores = MembershipStore | WebhookStore | ApiKeyStore | Outbox | RateLimitStore

/** A store's name, after its contents. */
export type StoreName = "memberships" | "webhooks" | "apiKeys" | "deliveries" | "rateLimits"

/** Tells whether the stores answer. */
export class Readiness extends Context.Service<
  Readiness,
  {
    /** Whether every store necessary for requests answers its ping, within 5 seconds. */
    readonly isReady: Effect.Effect<boolean>
    /** Whether each store answers its ping, within 5 seconds. */
    readonly stores: Effect.Effect<Readonly<Record<StoreName, boolean>>>
  }
>()("@tenure/core/Readiness") {
  static readonly layer = (limits: Limits): Layer.Layer<Readiness, never, Stores> =>
    Layer.effect(Readiness, readinessMake(limits))
}

type Ping = Effect.Effect<void, StoreUnavailable>

/** Whether a ping succeeds in time. */
const succeeds = (ping: Ping): Effect.Effect<boolean> =>
  ping.pipe(
    Effect.matchCause({ onSuccess: () => true, onFailure: () => false }),
    Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => Effect.succeed(false) }),
  )

/** Asks stores whether they answer their pings in time. A shared ping runs once. */
export const askAll = <Name extends string>(
  pings: Readonly<Record<Name, Ping>>,
): Effect.Effect<Record<Name, boolean>> => {
  const distinct = [...new Set(Record.values(pings))]
  return Effect.map(Effect.forEach(distinct, succeeds, { concurrency: "unbounded" }), (answers) =>
    Record.map(pings, (ping) => answers[distinct.indexOf(ping)] === true),
  )
}

const readinessMake = Effect.fnUntraced(function* ({ onStoreFailure }: Limits) {
  const pings: Readonly<Record<StoreName, Ping>> = {
    memberships: (yield* MembershipStore).ping,
    webhooks: (yield* WebhookStore).ping,
    apiKeys: (yield* ApiKeyStore).ping,
    deliveries: (yield* Outbox).ping,
    rateLimits: (yield* RateLimitStore).ping,
  }
  const { rateLimits: _, ...others } = pings
  // In the other mode, requests are answered even during an outage of the rate limit store.
  const needed = Object.values(onStoreFailure === "closed" ? pings : others)
  return {
    isReady: succeeds(Effect.all(new Set(needed), { concurrency: "unbounded", discard: true })),
    stores: askAll(pings),
  }
})

/** Why a webhook needs attention. */
const attentionReasons = ["unreadableSecret", "failing", "disabled"] as const

/** A webhook that operators should look at. */
export interface WebhookNeedingAttention extends Omit<TroubledWebhook, "trouble"> {
  /** Whether its attempts fail, nothing can be signed, or nothing is sent until somebody enables it. */
  readonly reason: (typeof attentionReasons)[number]
}

const reasonOf = ({
  latestAttempt,
  trouble,
}: TroubledWebhook): WebhookNeedingAttention["reason"] => {
  if (trouble === "disabled") return "disabled"
  const isUnreadable =
    latestAttempt?.result._tag === "Failed" && latestAttempt.result.reason === "SecretUnreadable"
  return isUnreadable ? "unreadableSecret" : "failing"
}

/** Moves webhooks to the front whose notifications cannot be signed: that is a mistake on this side. */
const toAttention = (
  troubled: ReadonlyArray<TroubledWebhook>,
): ReadonlyArray<WebhookNeedingAttention> => {
  const all = troubled
    .toSorted(compareTroubles)
    .map(({ trouble, ...webhook }) => ({ ...webhook, reason: reasonOf({ ...webhook, trouble }) }))
  return attentionReasons.flatMap((reason) => all.filter((one) => one.reason === reason))
}

/** The maximum number of webhooks in the status. */
const maxNeedingAttention = 50

/** How Tenure is doing. */
export interface StatusReport {
  /** Tenure's version. */
  readonly version: string
  /** Whether each store answers. */
  readonly stores: Readonly<Record<StoreName, boolean>>
  /**
   * The backlog and the failed deliveries, counted up to 10,000, meaning 10,000 or more. The oldest
   * delivery is the oldest among the first 10,000 webhooks with due deliveries; failed ones are counted
   * among the first 10,000 webhooks with any. `undefined` if the store does not answer.
   */
  readonly backlog: Backlog | undefined
  /**
   * Up to 50 webhooks: failing ones by how long they fail, then disabled ones, the latest first; among these, unreadable
   * secrets first. `undefined` if the store does not answer.
   */
  readonly webhooksNeedingAttention: ReadonlyArray<WebhookNeedingAttention> | undefined
  /**
   * How this process limits requests: by the store, or as `rateLimits.onStoreFailure` says, because the store
   * does not answer, or has failed in the last 10 seconds.
   */
  readonly rateLimiting: LimitMode
  /** The ids of API keys suspended by this process, at most 10,000. */
  readonly suspendedKeys: ReadonlyArray<ApiKeyId>
  /**
   * The ids of encryption keys of stored secrets that this process lacks or has with another value, up to
   * 20 seconds ago. `undefined` if the store does not answer.
   */
  readonly missingEncryptionKeys: ReadonlyArray<string> | undefined
}

/** Tells how Tenure is doing. */
export class Status extends Context.Service<
  Status,
  {
    /** How Tenure is doing. Waits up to 5 seconds for the stores. */
    readonly report: Effect.Effect<StatusReport>
  }
>()("@tenure/core/Status") {
  static readonly layer = (): Layer.Layer<
    Status,
    never,
    Outbox | RateLimiter | Readiness | EncryptionKeys
  > => Layer.effect(Status, make)
}

const unknown = Effect.succeed(undefined)

/** Asks a store: unknown if there is no answer within 5 seconds. */
export const orNull = <A, E>(question: Effect.Effect<A, E>): Effect.Effect<A | undefined> =>
  question.pipe(
    Effect.catchCause(() => unknown),
    Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => unknown }),
  )

const make = Effect.gen(function* () {
  const readiness = yield* Readiness
  const outbox = yield* Outbox
  const { mode, suspended } = yield* RateLimiter
  const { missing } = yield* EncryptionKeys
  const questions = {
    stores: readiness.stores,
    backlog: orNull(outbox.backlog(maxCountedBacklog)),
    webhooksNeedingAttention: orNull(Effect.map(outbox.troubled(maxNeedingAttention), toAttention)),
    suspendedKeys: suspended,
    missingEncryptionKeys: orNull(missing),
  }
  return {
    report: Effect.flatMap(Effect.all(questions, { concurrency: "unbounded" }), (answers) =>
      Effect.map(mode(answers.stores.rateLimits), (rateLimiting) => ({
        version,
        rateLimiting,
        ...answers,
      })),
    ),
  }
})
