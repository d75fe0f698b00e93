/** Outboxes that are wrong. */

import {
  type Attempt,
  type AttemptResult,
  type Backlog,
  type Claim,
  type Delivery,
  type EventId,
  EventNotFound,
  Outbox,
  type PublishedEvent,
  type StoredWebhook,
  type WebhookId,
  WebhookStore,
  replayedResponse,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { p1 } from "../../src/support/fixtures.ts"
import { mutantsOf } from "./Mutant.ts"

type Store = Outbox["Service"]
type ClaimOptions = Parameters<Store["claim"]>[0]

/** Changes the options of claims. */
const asking =
  (change: (options: ClaimOptions) => ClaimOptions) =>
  ({ claim }: Store): Partial<Store> => ({
    claim: (options) => claim(change(options)),
  })

/** Changes claims. */
const claiming =
  (change: (claim: Claim) => Claim) =>
  ({ claim }: Store): Partial<Store> => ({
    claim: (options) =>
      Effect.map(claim(options), (claimed) => ({ ...claimed, claims: claimed.claims.map(change) })),
  })

/** Changes settlements. */
const settling =
  (change: (settlement: AttemptResult) => AttemptResult) =>
  ({ settle }: Store): Partial<Store> => ({
    settle: (claim, settlement) => settle(claim, change(settlement)),
  })

/** Changes the deliveries that are listed. */
const listing =
  (change: (delivery: Delivery) => Delivery) =>
  ({ deliveries }: Store): Partial<Store> => ({
    deliveries: (webhook, page) => Effect.map(deliveries(webhook, page), (all) => all.map(change)),
  })

/** Changes the events that are found. */
const finding =
  (change: (found: PublishedEvent) => PublishedEvent) =>
  ({ find }: Store): Partial<Store> => ({
    find: (...ids) => Effect.map(find(...ids), change),
  })

/** Changes the deliveries of events that are found. */
const findingDeliveries = (
  change: (all: PublishedEvent["deliveries"]) => PublishedEvent["deliveries"],
) => finding((found) => ({ ...found, deliveries: change(found.deliveries) }))

/** Changes how much is left to deliver. */
const leaving =
  (change: (backlog: Backlog) => Backlog) =>
  ({ backlog }: Store): Partial<Store> => ({
    backlog: (most) => Effect.map(backlog(most), change),
  })

/** The attempt of a claim that was released. */
const released: Attempt = {
  at: 0,
  durationMillis: 0,
  result: { _tag: "Failed", reason: "Released" },
}

/** Outboxes that are wrong. */
export const outbox = mutantsOf(Outbox, {
  "ignores the idempotency keys of events": ({ publish }) => ({
    publish: (event) => publish(event),
  }),

  "answers the id of a new event to an idempotency key that is known": ({ publish }) => ({
    publish: (event, once) =>
      Effect.map(publish(event, once), (known) => known && { ...known, answer: event.id }),
  }),

  "keeps the idempotency key of an event that it cannot publish": ({ publish }) => {
    const known = new Set<string>()
    return {
      publish: Effect.fnUntraced(function* (event, once) {
        if (once !== undefined && known.has(once.key)) return replayedResponse(event.id)
        if (once !== undefined) known.add(once.key)
        yield* publish(event)
      }),
    }
  },

  "ignores the idempotency keys of events for one webhook": ({ publishTo }) => ({
    publishTo: (event, webhookId) => publishTo(event, webhookId),
  }),

  "ignores the idempotency keys of replays": ({ replay }) => ({
    replay: (webhook, which) => replay(webhook, which),
  }),

  "counts anew for a replay that is repeated": ({ replay }) => ({
    replay: (webhook, which, once) =>
      Effect.map(replay(webhook, which, once), (count) =>
        typeof count === "number" ? count : replayedResponse("0"),
      ),
  }),

  "delivers every event to every webhook": ({ publish, publishTo }, context) => ({
    publish: Effect.fnUntraced(function* (event) {
      const webhooks = yield* Context.get(context, WebhookStore).list(event.projectId)
      if (webhooks.length === 0) yield* publish(event)
      for (const { id } of webhooks) yield* Effect.ignore(publishTo(event, id))
    }),
  }),

  "respects event types also for an event to one webhook": ({ publishTo }, context) => ({
    publishTo: Effect.fnUntraced(function* (event, webhookId) {
      const webhooks = yield* Effect.orDie(Context.get(context, WebhookStore).list(event.projectId))
      const types = webhooks.find(({ id }) => id === webhookId)?.eventTypes
      if (types === undefined || types.includes(event.type)) yield* publishTo(event, webhookId)
    }),
  }),

  "stores bodies without the characters that databases refuse": ({ publish }) => ({
    publish: (event) => publish({ ...event, body: event.body.replaceAll("\\u0000", "") }),
  }),

  "signs with the secret that a webhook had at the publication": (right, context) => {
    const known = new Map<EventId, ReadonlyArray<StoredWebhook>>()
    return {
      publish: Effect.fnUntraced(function* (event) {
        known.set(event.id, yield* Context.get(context, WebhookStore).list(event.projectId))
        yield* right.publish(event)
      }),
      ...claiming((one) => {
        const webhook = known.get(one.event.id)?.find(({ id }) => id === one.webhook.webhookId)
        const secrets = webhook === undefined ? one.webhook.secrets : [webhook.secret]
        return { ...one, webhook: { ...one.webhook, secrets } }
      })(right),
    }
  },

  "claims more deliveries of a webhook than it may": asking(({ perWebhook, ...options }) => ({
    ...options,
    perWebhook: { least: perWebhook.least + 1, most: perWebhook.most + 1 },
  })),

  "claims no more deliveries of a webhook that succeeds": asking(({ perWebhook, ...options }) => ({
    ...options,
    perWebhook: { ...perWebhook, most: perWebhook.least },
  })),

  "claims as many deliveries of a new webhook as of any": asking(({ perWebhook, ...options }) => ({
    ...options,
    perWebhook: { ...perWebhook, least: perWebhook.most },
  })),

  "claims as many deliveries of a webhook after a failure as before": ({ claim, settle }) => {
    let successes = 0
    return {
      settle: (one, settlement) => {
        if (settlement._tag === "Delivered") successes++
        return settle(one, settlement)
      },
      claim: ({ perWebhook: { least, most }, ...options }) =>
        claim({
          ...options,
          perWebhook: { most, least: Math.min(most, least + successes) },
        }),
    }
  },

  "claims nothing ahead": asking((options) => ({ ...options, ahead: new Map() })),

  "claims more ahead than is asked for": asking((options) => ({
    ...options,
    ahead: new Map([...options.ahead].map(([id, count]) => [id, count + 1])),
  })),

  "claims ahead although its project has used up half of its limit": ({ claim }) => ({
    claim: (options) =>
      claim({
        ...options,
        perProject: options.ahead.size > 0 ? 2 * options.perProject : options.perProject,
      }),
  }),

  "claims ahead without regard to the total limit": ({ claim }) => ({
    claim: ({ limit, ...options }) =>
      claim({ ...options, limit: options.ahead.size > 0 ? limit + 1 : limit }),
  }),

  "does not say how many attempts may be in flight": claiming((one) => ({
    ...one,
    webhook: { ...one.webhook, concurrency: 0 },
  })),

  "claims more deliveries of a project than it may": asking((options) => ({
    ...options,
    perProject: options.perProject + 1,
  })),

  "lets a lease end too early": asking((options) => ({
    ...options,
    leaseMillis: options.leaseMillis - 5000,
  })),

  "never claims a delivery again": asking((options) => ({ ...options, leaseMillis: 10 ** 9 })),

  "hands a delivery out twice": ({ claim, settle }) => ({
    claim: Effect.fnUntraced(function* (options) {
      const claimed = yield* claim(options)
      yield* Effect.forEach(claimed.claims, (one) => settle(one, { _tag: "Released" }))
      return claimed
    }),
  }),

  "claims what was published first before what was due first": ({ claim, publish }) => {
    const published: Array<EventId> = []
    const order = (one: Claim) => published.indexOf(one.event.id)
    return {
      publish: (event) => {
        published.push(event.id)
        return publish(event)
      },
      claim: (options) =>
        Effect.map(claim(options), (claimed) => ({
          ...claimed,
          claims: claimed.claims.every((one) => order(one) !== -1)
            ? claimed.claims.toSorted((one, other) => order(one) - order(other))
            : claimed.claims,
        })),
    }
  },

  "does not say when the next delivery is due": ({ claim }) => ({
    claim: (options) =>
      Effect.map(claim(options), (claimed) => ({ ...claimed, nextDueMillis: undefined })),
  }),

  "does not say what a limit has kept back": ({ claim }) => ({
    claim: (options) => Effect.map(claim(options), (claimed) => ({ ...claimed, keptBack: [] })),
  }),

  "says that a limit has kept something back when nothing is ready": ({ claim }, context) => ({
    claim: Effect.fnUntraced(function* (options) {
      const claimed = yield* claim(options)
      const webhooks = yield* Effect.orDie(Context.get(context, WebhookStore).list(p1))
      return { ...claimed, keptBack: webhooks.map(({ id }) => id) }
    }),
  }),

  "counts no failures of webhooks": claiming((one) => ({
    ...one,
    webhook: { ...one.webhook, failures: 0 },
  })),

  "holds no webhook after a retry": settling((settlement) =>
    settlement._tag === "Retry" ? { ...settlement, holdMillis: 0 } : settlement,
  ),

  "holds no webhook after a failure": settling((settlement) =>
    settlement._tag === "Failed" ? { ...settlement, holdMillis: 0 } : settlement,
  ),

  "counts released claims as attempts": settling((settlement) =>
    settlement._tag === "Released"
      ? { _tag: "Retry", attempt: released, delayMillis: 0, holdMillis: 0 }
      : settlement,
  ),

  "says that it settled a claim whose lease has ended": ({ settle }) => ({
    settle: (...settlement) => Effect.as(settle(...settlement), "Settled"),
  }),

  "announces that a webhook is gone although the claim is void": ({ publish, settle }) => ({
    settle: Effect.fnUntraced(function* (claim, settlement) {
      const settled = yield* settle(claim, settlement)
      if (settled === "Lapsed" && settlement._tag === "Disabled") {
        yield* Effect.ignore(publish(settlement.announcement))
      }
      return settled
    }),
  }),

  "says that each claim has disabled the webhook": ({ settle }) => ({
    settle: (claim, settlement) =>
      Effect.map(settle(claim, settlement), (settled) =>
        settled === "Settled" && settlement._tag === "Disabled" ? "WebhookDisabled" : settled,
      ),
  }),

  "announces for each claim that a webhook is gone": ({ publish, settle }) => {
    const gone = new Set<WebhookId>()
    return {
      settle: Effect.fnUntraced(function* (claim, settlement) {
        const settled = yield* settle(claim, settlement)
        if (settled !== "Lapsed" && settlement._tag === "Disabled") {
          if (gone.has(claim.webhook.webhookId)) {
            yield* Effect.ignore(publish(settlement.announcement))
          }
          gone.add(claim.webhook.webhookId)
        }
        return settled
      }),
    }
  },

  "drops the responses of receivers": listing((delivery) => ({
    ...delivery,
    attempts: delivery.attempts.map((attempt) =>
      attempt.result._tag === "Answered"
        ? { ...attempt, result: { ...attempt.result, body: "" } }
        : attempt,
    ),
  })),

  "dates all attempts to the epoch": listing((delivery) => ({
    ...delivery,
    attempts: delivery.attempts.map((attempt) => ({ ...attempt, at: 0 })),
  })),

  "lists the last attempt alone": listing((delivery) => ({
    ...delivery,
    attempts: delivery.attempts.slice(-1),
  })),

  "limits the list of deliveries before it selects their state": ({ deliveries }) => ({
    deliveries: (webhook, { state, ...page }) =>
      Effect.map(deliveries(webhook, page), (all) =>
        all.filter((delivery) => state === undefined || delivery.state === state),
      ),
  }),

  "does not list the deliveries of webhooks that were removed": ({ deliveries }, context) => ({
    deliveries: Effect.fnUntraced(function* (webhook, page) {
      const webhooks = yield* Effect.orDie(
        Context.get(context, WebhookStore).list(webhook.projectId),
      )
      const isKnown = webhooks.some(({ id }) => id === webhook.webhookId)
      return isKnown ? yield* deliveries(webhook, page) : []
    }),
  }),

  "finds events of other projects": ({ find }) => ({
    find: (projectId, eventId) => Effect.catch(find(projectId, eventId), () => find(p1, eventId)),
  }),

  "finds no event without deliveries": ({ find }) => ({
    find: (projectId, eventId) =>
      Effect.filterOrFail(
        find(projectId, eventId),
        ({ deliveries }) => deliveries.length > 0,
        () => new EventNotFound({ eventId }),
      ),
  }),

  "finds events without the deliveries that have ended": findingDeliveries((all) =>
    all.filter(({ state }) => state === "waiting"),
  ),

  "finds events without their deliveries to webhooks that were removed": findingDeliveries((all) =>
    all.filter(({ state }) => state !== "cancelled"),
  ),

  "finds deliveries to webhooks that were removed as if they waited": findingDeliveries((all) =>
    all.map((delivery) => ({
      ...delivery,
      state: delivery.state === "cancelled" ? "waiting" : delivery.state,
    })),
  ),

  "finds the last attempt alone": findingDeliveries((all) =>
    all.map((delivery) => ({ ...delivery, attempts: delivery.attempts.slice(-1) })),
  ),

  "finds one delivery of each event": findingDeliveries((all) => all.slice(0, 1)),

  "finds events at the time at which they were sent": finding((found) => ({
    ...found,
    at: found.deliveries[0]?.attempts[0]?.at ?? 0,
  })),

  "finds bodies that were parsed and serialized again": finding((found) => ({
    ...found,
    body: JSON.stringify(JSON.parse(found.body)),
  })),

  "does not replay what waits for its next attempt": ({ deliveries, replay }) => ({
    replay: Effect.fnUntraced(function* (webhook, which, once) {
      const waiting = yield* deliveries(webhook, { state: "waiting", limit: 10 })
      return which._tag === "One" && waiting.some(({ eventId }) => eventId === which.eventId)
        ? 0
        : yield* replay(webhook, which, once)
    }),
  }),

  "replays failed deliveries of later events only": ({ replay }) => ({
    replay: (webhook, which) =>
      replay(webhook, which._tag === "FailedSince" ? { ...which, at: which.at + 1 } : which),
  }),

  "counts claimed deliveries as if they had ended": ({ backlog, claim, settle }) => {
    const claimed = new Set<string>()
    return {
      claim: (options) =>
        Effect.tap(claim(options), ({ claims }) =>
          Effect.sync(() => claims.forEach(({ lease }) => claimed.add(lease))),
        ),
      settle: (one, settlement) => {
        claimed.delete(one.lease)
        return settle(one, settlement)
      },
      backlog: (most) =>
        Effect.map(backlog(most), (left) => ({ ...left, waiting: left.waiting - claimed.size })),
    }
  },

  "counts deliveries that have ended as if they waited": ({ backlog, settle }) => {
    let ended = 0
    return {
      settle: (one, settlement) => {
        if (settlement._tag === "Delivered") ended++
        return settle(one, settlement)
      },
      backlog: (most) =>
        Effect.map(backlog(most), (left) => ({ ...left, waiting: left.waiting + ended })),
    }
  },

  "counts further than it was asked": ({ backlog }) => ({ backlog: () => backlog(1000) }),

  "does not say for how long deliveries have been due": leaving((left) => ({
    ...left,
    dueForMillis: undefined,
  })),

  "says that something is due when nothing is": leaving((left) => ({
    ...left,
    dueForMillis: left.dueForMillis ?? 0,
  })),

  "says for how many seconds deliveries have been due": leaving(({ dueForMillis, ...left }) => ({
    ...left,
    dueForMillis: dueForMillis && dueForMillis / 1000,
  })),

  "counts no deliveries that were given up": leaving((left) => ({ ...left, failedDeliveries: 0 })),

  "counts deliveries as given up that were sent again": (right) => {
    let most = 0
    return leaving((left) => {
      most = Math.max(most, left.failedDeliveries)
      return { ...left, failedDeliveries: most }
    })(right)
  },

  "counts no disabled webhooks": leaving((left) => ({ ...left, disabledWebhooks: 0 })),

  "counts webhooks as disabled that were enabled again": (right) => {
    let most = 0
    return leaving((left) => {
      most = Math.max(most, left.disabledWebhooks)
      return { ...left, disabledWebhooks: most }
    })(right)
  },

  "tells dispatchers of a change again and again": () => ({
    nextChange: Effect.succeed({ _tag: "Due" }),
  }),

  "tells dispatchers nothing of changes of memberships": (right) => {
    const changed = Latch.makeUnsafe()
    const opening = <A, E>(operation: Effect.Effect<A, E>) =>
      Effect.tap(operation, () => changed.open)
    return {
      publish: (event) => opening(right.publish(event)),
      settle: (...settlement) => opening(right.settle(...settlement)),
      replay: (...which) => opening(right.replay(...which)),
      nextChange: Effect.map(changed.await, () => {
        changed.closeUnsafe()
        return { _tag: "Due" } as const
      }),
    }
  },
})
