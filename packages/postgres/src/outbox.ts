/** The claims that this process attempts or has in its queues, whatever others have made of them since. */

import { logGivenUp } from "@tenure/core/internal"
import {
  type Claim,
  type Event,
  EventNotFound,
  type IdempotencyKey,
  type Outbox,
  ProjectNotFound,
  type RedeliveryFilter,
  StoreUnavailable,
  WebhookDisabled,
  WebhookId,
  WebhookNotFound,
  type WebhookRef,
  readMonotonicMillis,
} from "@tenure/core/store"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { hasRowAt, makeBatcher } from "./connection/batch.ts"
import { type Executor, readsOf } from "./connection/executor.ts"
import type { IdempotencyStore } from "./idempotency.ts"
import type { Notifications } from "./notifications.ts"
import * as statements from "./outbox.sql.ts"
import { type AcceptedItemRow, hasDeliveries, pickForm, withAndWithoutKey } from "./sql/clauses.ts"
import {
  instantParam,
  integerParam,
  nilUuid,
  textParam,
  uuidParam,
  uuidsParam,
} from "./sql/values.ts"

/** Claims. Each is kept until it is settled or its lease passes. */
export interface HeldClaims {
  /** Adds claims whose lease passes at `until`, in milliseconds by the monotonic clock. */
  readonly add: (claims: ReadonlyArray<Claim>, until: number) => void
  readonly delete: (claim: Claim) => void
  /** Returns the webhooks of the claims, each once. */
  readonly webhooks: (now: number) => ReadonlyArray<WebhookId>
}

const keyOf = ({ event, webhook }: Claim): string => `${event.id} ${webhook.webhookId}`

/** Starts without claims. */
export const makeHeldClaims = (): HeldClaims => {
  const held = new Map<string, { readonly webhookId: WebhookId; readonly until: number }>()
  return {
    add: (claims, until) => {
      for (const claim of claims) {
        held.set(keyOf(claim), { webhookId: claim.webhook.webhookId, until })
      }
    },
    delete: (claim) => void held.delete(keyOf(claim)),
    webhooks: (now) => {
      for (const [key, { until }] of held) if (until <= now) held.delete(key)
      return [...new Set(Array.from(held.values(), ({ webhookId }) => webhookId))]
    },
  }
}

/** The presence of this process among those that dispatch deliveries. */

// Several reports fit into the silence after which a process counts as gone.
const reportMillis = 300

/** A dispatcher that the others know of. */
interface Presence {
  /** The id of the dispatcher: a new one in each process. */
  readonly id: string
  /** Starts to report that the dispatcher is alive. Does nothing if it reports already. */
  readonly begin: Effect.Effect<void>
}

/**
 * Makes a dispatcher that reports for as long as the scope is open. If another one is gone, it wakes those
 * that claim: the next claim takes over what that one had claimed. It also tells of the removal of
 * webhooks whose claims this process holds: the notification of it may have been lost.
 */
const makeHeartbeat = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  held: HeldClaims,
) {
  const clock = yield* Clock.Clock
  const id = (yield* WebCrypto).randomUUID()
  const begun = yield* Latch.make()
  const sql = statements.report(executor.schema)

  const reportOnce = Effect.gen(function* () {
    const webhooks = uuidsParam(held.webhooks(readMonotonicMillis(clock)))
    const [row] = yield* executor.executeApart<statements.ReportRow>(sql, [uuidParam(id), webhooks])
    if (row === undefined) return
    if (row.is_any_gone) yield* notifications.notify
    yield* notifications.removed(row.removed.map(WebhookId))
  })

  yield* Effect.forkScoped(
    Effect.andThen(
      begun.await,
      Effect.forever(Effect.andThen(Effect.ignoreCause(reportOnce), Effect.sleep(reportMillis))),
    ),
  )

  const presence: Presence = { id, begin: begun.open }
  return presence
})

/** The claims of this process. */

/** Claims deliveries. */
interface Claiming {
  readonly claim: Outbox["Service"]["claim"]
  /** Has the next claim look first at a webhook that has just received something. */
  readonly served: (webhookId: WebhookId) => void
  /** Forgets a claim that was settled, or that has lapsed. */
  readonly settled: (claim: Claim) => void
}

const maxServed = 256

/** Starts without claims. */
const makeClaiming = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
) {
  const { schema } = executor
  const sql = { claim: statements.claim(schema), giveUp: statements.failUnreadable(schema) }
  const clock = yield* Clock.Clock
  const held = makeHeldClaims()
  const presence = yield* makeHeartbeat(executor, notifications, held)
  // One claim at a time: an answer is lost only if the next claim does not know of its leases.
  const turn = yield* Semaphore.make(1)
  const served = new Set<WebhookId>()
  let position: statements.Position = {
    dispatcher: presence.id,
    lastLease: 0n,
    lastWebhook: nilUuid,
  }

  /** Ends deliveries that cannot be read. What fails here is repeated when the leases have passed. */
  const giveUpOn = Effect.fnUntraced(
    function* (leases: ReadonlyArray<statements.Lease>) {
      if (leases.length === 0) return
      const at = yield* Clock.currentTimeMillis
      yield* executor.executeApart(sql.giveUp, statements.giveUpParams(leases, at))
      for (const { attemptNumber, event, webhook } of leases) {
        const last = {
          ...webhook,
          eventId: event.id,
          attemptNumber,
          result: statements.unreadableError,
        }
        yield* logGivenUp(last)
      }
      // Their webhooks may have others.
      yield* notifications.notify
    },
    Effect.catchCause((cause) => Effect.logWarning("Deliveries cannot be ended", cause)),
  )

  const claim: Claiming["claim"] = Effect.fnUntraced(function* (options) {
    yield* presence.begin
    const params = statements.claimParams(options, position, [...served])
    served.clear()
    const rows = yield* executor.executeApart<statements.ClaimRow>(sql.claim, params)
    position = statements.nextPosition(position, rows)
    const claimed = statements.toClaimedAll(rows)
    yield* giveUpOn(claimed.flatMap((one) => (one.claim === undefined ? [one.lease] : [])))
    const claims = claimed.flatMap((one) => one.claim ?? [])
    held.add(claims, readMonotonicMillis(clock) + options.leaseMillis)
    return {
      claims,
      nextDueMillis: statements.nextDueMillis(rows, options),
      keptBack: statements.keptBack(rows),
    }
  }, turn.withPermit)

  const claiming: Claiming = {
    claim,
    served: (webhookId) => {
      if (served.size < maxServed) served.add(webhookId)
    },
    settled: held.delete,
  }
  return claiming
})

/** The outbox on PostgreSQL. */

/** Makes the outbox. */
export const makePostgresOutbox = Effect.fnUntraced(function* (
  executor: Executor,
  notifications: Notifications,
  answers: IdempotencyStore,
) {
  const { schema } = executor
  const sql = {
    publish: withAndWithoutKey(schema, statements.publish, 5),
    publishTo: withAndWithoutKey(schema, statements.publishTo, 6),
    listDeliveries: statements.listDeliveries(schema),
    findEvent: statements.findEvent(schema),
    replay: {
      One: withAndWithoutKey(schema, (name, once) => statements.replay(name, "One", once), 3),
      FailedSince: withAndWithoutKey(
        schema,
        (name, once) => statements.replay(name, "FailedSince", once),
        3,
      ),
    },
    settle: statements.settle(schema),
    endDisabled: statements.endDisabled(schema),
    backlog: statements.backlog(schema),
  }
  const claiming = yield* makeClaiming(executor, notifications)

  const notifyAfterCommit = executor.afterCommit(notifications.notify)

  /** Settles claims. Returns for each what came of it. */
  const settleMany = Effect.fnUntraced(function* (all: ReadonlyArray<statements.Settling>) {
    const rows = yield* executor.executeApart<statements.SettledRow>(
      sql.settle,
      statements.settleParams(all),
    )
    if (hasDeliveries(rows)) yield* notifications.notify
    const disabled = all.filter(({ settlement }) => settlement._tag === "Disabled")
    if (disabled.length > 0) {
      const webhookIds = disabled.map((one) => one.claim.webhook.webhookId)
      yield* executor.executeApart(sql.endDisabled, [uuidsParam(webhookIds)])
    }
    return statements.settledOf(all, rows)
  })

  /** Publishes events, of which one alone may have a key. Returns for each whether its project exists. */
  const publishMany = Effect.fnUntraced(function* (
    events: ReadonlyArray<Event>,
    once?: IdempotencyKey,
  ) {
    const form = pickForm(sql.publish, statements.publishParams(events), once)
    const rows = yield* executor.execute<AcceptedItemRow>(...form, { owner: "events" })
    if (hasDeliveries(rows)) yield* notifyAfterCommit
    return hasRowAt(events, rows)
  })

  const publishGathered = yield* makeBatcher({
    run: (events: ReadonlyArray<Event>) => publishMany(events),
    keysOf: (event: Event) => [event.id],
    isOwn: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const settleGathered = yield* makeBatcher({
    run: settleMany,
    isOwn: () => false,
    keysOf: (one: statements.Settling) => [`${one.claim.event.id} ${one.claim.webhook.webhookId}`],
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const publishOne = Effect.fnUntraced(function* (event: Event, once: IdempotencyKey | undefined) {
    const isFound =
      once !== undefined || (yield* executor.isInTransaction)
        ? (yield* publishMany([event], once))[0]
        : yield* publishGathered(event)
    if (isFound !== true) return yield* new ProjectNotFound({ projectId: event.projectId })
  })

  const publishToOne = Effect.fnUntraced(function* (
    event: Event,
    webhookId: WebhookId,
    once: IdempotencyKey | undefined,
  ) {
    const form = pickForm(sql.publishTo, statements.publishToParams(event, webhookId), once)
    const [row] = yield* executor.execute<{ readonly is_disabled: boolean }>(...form, {
      owner: event.projectId,
    })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    yield* notifyAfterCommit
  })

  const replayDeliveries = Effect.fnUntraced(function* (
    { projectId, webhookId }: WebhookRef,
    which: RedeliveryFilter,
    once: IdempotencyKey | undefined,
  ) {
    const selected = which._tag === "One" ? uuidParam(which.eventId) : instantParam(which.at)
    const params = [textParam(projectId), uuidParam(webhookId), selected]
    const form = pickForm(sql.replay[which._tag], params, once)
    const [row] = yield* executor.execute<statements.ReplayRow>(...form, { owner: projectId })
    if (row === undefined) return yield* new WebhookNotFound({ webhookId })
    if (row.is_disabled) return yield* new WebhookDisabled({ webhookId })
    if (row.replayed > 0) yield* notifyAfterCommit
    return row.replayed
  })

  const outbox: Outbox["Service"] = {
    ping: executor.ping,

    publish: (event, once) => answers.change(once, publishOne(event, once)),

    publishTo: (event, webhookId, once) =>
      answers.change(once, publishToOne(event, webhookId, once)),

    claim: claiming.claim,

    settle: Effect.fnUntraced(function* (claimed, settlement) {
      const settled = yield* settleGathered({ claim: claimed, settlement })
      claiming.settled(claimed)
      if (settled !== "Lapsed" && settlement._tag === "Released") yield* notifications.notify
      if (settlement._tag === "Delivered") claiming.served(claimed.webhook.webhookId)
      return settled
    }),

    nextChange: notifications.next,

    deliveries: Effect.fnUntraced(function* ({ projectId, webhookId }, page) {
      const params = [
        textParam(projectId),
        uuidParam(webhookId),
        textParam(page.state),
        uuidParam(page.olderThan),
        integerParam(page.limit),
      ]
      const rows = yield* executor.execute<statements.DeliveryRow>(sql.listDeliveries, params, {
        owner: readsOf(projectId),
      })
      return rows.map((row) => statements.toDelivery(webhookId, row))
    }),

    find: Effect.fnUntraced(function* (projectId, eventId) {
      const params = [textParam(projectId), uuidParam(eventId)]
      const [row] = yield* executor.execute<statements.EventRow>(sql.findEvent, params, {
        owner: readsOf(projectId),
      })
      return row === undefined
        ? yield* new EventNotFound({ eventId })
        : statements.toPublishedEvent({ projectId, id: eventId }, row)
    }),

    replay: (webhook, which, once) => answers.change(once, replayDeliveries(webhook, which, once)),

    backlog: (most) =>
      Effect.map(
        executor.execute<statements.BacklogRow>(sql.backlog, [integerParam(most)], {
          owner: "backlog",
        }),
        statements.toBacklog,
      ),
  }
  return outbox
})
