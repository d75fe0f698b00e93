/** Outboxes that break a promise. */

import {
  type AttemptResult,
  type Backlog,
  type DeliveryProgress,
  Outbox,
  type PublishedEvent,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { p1 } from "../../src/support/fixtures.ts"
import { wrongStores } from "./wrong-store.ts"

type Store = Outbox["Service"]
type ClaimOptions = Parameters<Store["claim"]>[0]

const asking =
  (change: (options: ClaimOptions) => ClaimOptions) =>
  ({ claim }: Store): Partial<Store> => ({
    claim: (options) => claim(change(options)),
  })

/** Asks for a lease that is so many milliseconds longer. */
const longer = (millis: number) => (options: ClaimOptions) => ({
  ...options,
  leaseMillis: options.leaseMillis + millis,
})

const settling =
  (change: (settlement: AttemptResult) => AttemptResult) =>
  ({ settle }: Store): Partial<Store> => ({
    settle: (claim, settlement) => settle(claim, change(settlement)),
  })

const finding =
  (change: (found: PublishedEvent) => PublishedEvent) =>
  ({ find }: Store): Partial<Store> => ({
    find: (...ids) => Effect.map(find(...ids), change),
  })

/** Changes the deliveries that `find` returns. */
const findingDeliveries = (
  change: (all: PublishedEvent["deliveries"]) => PublishedEvent["deliveries"],
) => finding((found) => ({ ...found, deliveries: change(found.deliveries) }))

const leaving =
  (change: (backlog: Backlog) => Backlog) =>
  ({ backlog }: Store): Partial<Store> => ({
    backlog: (most) => Effect.map(backlog(most), change),
  })

const progressing =
  (change: (progress: DeliveryProgress) => DeliveryProgress) =>
  ({ progress }: Store): Partial<Store> => ({
    progress: (...ids) =>
      Effect.map(
        progress(...ids),
        (all) => new Map([...all].map(([id, one]) => [id, change(one)] as const)),
      ),
  })

export const wrongOutboxes = wrongStores("Outbox", Outbox, {
  "stores bodies unchanged": ({ publish }) => ({
    publish: (event) => publish({ ...event, body: event.body.replaceAll("\\u0000", "") }),
  }),
  "publishes an event with an idempotency key once": ({ publish }) => ({
    publish: (event) => publish(event),
  }),
  "publishes to one webhook with an idempotency key once": ({ publishTo }) => ({
    publishTo: (event, webhookId) => publishTo(event, webhookId),
  }),
  "says of which webhooks a limit keeps back deliveries, until nothing of them is ready": (
    right,
  ) => ({
    claim: (options) =>
      Effect.map(right.claim(options), (claimed) => ({ ...claimed, keptBack: [] })),
  }),
  "is claimed as often, and returns when the next delivery may be claimed": (right) => ({
    claim: (options) =>
      Effect.map(right.claim(options), (claimed) => ({ ...claimed, nextDueMillis: undefined })),
  }),
  "returns a delivery again after its lease, and only the new claim can settle it": {
    "holds it for longer": asking(longer(1)),
    "returns it earlier": asking(longer(-500)),
  },
  "returns the time until the next delivery is due": {
    "holds it for longer": asking(longer(1)),
    "returns it earlier": asking(longer(-500)),
    "forgets half a retry": settling((settlement) =>
      settlement._tag === "Retry"
        ? { ...settlement, delayMillis: settlement.delayMillis / 2 }
        : settlement,
    ),
    "retries later": settling((settlement) =>
      settlement._tag === "Retry"
        ? { ...settlement, delayMillis: settlement.delayMillis + 1 }
        : settlement,
    ),
  },
  "counts none of them towards the limit of the project, of which half must be left": asking(
    (options) => ({ ...options, ahead: new Map() }),
  ),
  "changes nothing with a claim whose lease has ended": ({ settle }) => ({
    settle: (...settlement) => Effect.as(settle(...settlement), "Settled"),
  }),
  "is announced once for each share of a run of failures, before it is disabled": settling(
    (settlement) =>
      settlement._tag === "Retry" ? { ...settlement, failing: undefined } : settlement,
  ),
  "is neither announced nor disabled for a run of failures that is over": settling((settlement) =>
    settlement._tag === "Disabled" ? { ...settlement, failing: undefined } : settlement,
  ),
  "is not claimed while a retry holds it, and holds up no other": settling((settlement) =>
    settlement._tag === "Retry" ? { ...settlement, holdMillis: 0 } : settlement,
  ),
  "is not claimed while a failure holds it, and holds up no other": settling((settlement) =>
    settlement._tag === "Failed" ? { ...settlement, holdMillis: 0 } : settlement,
  ),
  "waits for a publication": () => ({
    nextChange: Effect.succeed({ _tag: "Due" }),
  }),
  "that are due are not replayed, also while nobody has claimed since": ({ replay }) => ({
    replay: (...delivery) => Effect.as(replay(...delivery), 1),
  }),
  "are replayed once with an idempotency key": ({ replayMany }) => ({
    replayMany: (webhook, selection) => replayMany(webhook, selection),
  }),
  "lists what became of deliveries, whichever were settled together or replayed": ({
    attempted,
  }) => ({
    attempted: (webhook, page) =>
      Effect.map(attempted(webhook, page), (all) =>
        all.filter(({ attemptedAt }) => attemptedAt !== page.before?.attemptedAt),
      ),
  }),
  "returns an event with its deliveries in all states, as they are listed": findingDeliveries(
    (all) => all.slice(0, 1),
  ),
  "returns the deliveries in the order of the list of webhooks": findingDeliveries((all) =>
    all.filter(({ state }) => state === "waiting"),
  ),
  "returns all attempts, also those before a replay": findingDeliveries((all) =>
    all.map((delivery) => ({ ...delivery, attempts: delivery.attempts.slice(-1) })),
  ),
  "fails for an unknown event and through another project": ({ find }) => ({
    find: (projectId, eventId) => Effect.catch(find(projectId, eventId), () => find(p1, eventId)),
  }),
  "has the deliveries that were given up, until they are sent again": leaving((left) => ({
    ...left,
    failedDeliveries: 0,
  })),
  "has the webhooks that are disabled, in all projects": leaving((left) => ({
    ...left,
    disabledWebhooks: 0,
  })),
  "returns a delivery that waited for its turn before those that were published later": leaving(
    (left) => ({ ...left, dueForMillis: 0 }),
  ),
  "is not late beside a claimed one of an ordered webhook": leaving((left) => ({
    ...left,
    lateForMillis: left.dueForMillis,
  })),
  "is late if it waits for a dispatcher, but not while its webhook fails or is busy": leaving(
    (left) => ({ ...left, lateForMillis: left.dueForMillis }),
  ),
  "is counted no further than asked": ({ backlog }) => ({ backlog: () => backlog(1000) }),
  "are listed by their latest attempt, unless there was none": ({ deliveries }) => ({
    attempted: (webhook, page) => deliveries(webhook, { limit: page.limit }),
  }),
  "are listed by their latest attempt in each state": ({ attempted }) => ({
    attempted: (webhook, { limit }) => attempted(webhook, { limit }),
  }),
  "are listed by their latest attempt page by page": ({ attempted }) => ({
    attempted: (webhook, page) =>
      Effect.map(attempted(webhook, { ...page, limit: 100 }), (all) =>
        all.toReversed().slice(0, page.limit),
      ),
  }),
  "come first by their latest attempt after another one": ({ attempted }) => ({
    attempted: (webhook, page) =>
      Effect.map(attempted(webhook, page), (all) =>
        all.toSorted((one, other) => one.attempts.length - other.attempts.length),
      ),
  }),
  "say when their event happened and of whom it is, until the person is erased": (right) => ({
    deliveries: (...page) =>
      Effect.map(right.deliveries(...page), (all) =>
        all.map((delivery) => ({ ...delivery, userId: undefined })),
      ),
  }),
  "has the latest attempt as soon as it is settled": progressing((one) => ({
    ...one,
    latestAttempt: undefined,
  })),
  "says how many deliveries wait, and when the next attempt is due": progressing((one) => ({
    ...one,
    nextAttemptAt: undefined,
  })),
  "says when the next attempt of those whose turn has come is due, also before another claim":
    progressing((one) => ({ ...one, nextAttemptAt: 0 })),
  "says that the next attempt was due when a hold ended, until it is made": progressing((one) => ({
    ...one,
    nextAttemptAt: 0,
  })),
  "has no next attempt for a webhook that is disabled": progressing((one) => ({
    ...one,
    nextAttemptAt: 0,
  })),
  "counts the attempts for a webhook by the quarter of an hour, for a day": ({ activity }) => ({
    activity: (webhook) =>
      Effect.map(activity(webhook), (day) => ({ ...day, quarters: day.quarters.slice(1) })),
  }),
  "counts no attempt that was interrupted, or whose claim has lapsed": ({ activity }) => ({
    activity: (webhook) =>
      Effect.map(activity(webhook), (day) => ({
        ...day,
        quarters: day.quarters.map((cell) => ({ ...cell, delivered: 2 * cell.delivered })),
      })),
  }),
  "counts attempts by the minute, for an hour, of each project and of all": ({ minutes }) => ({
    minutes: () => minutes(undefined),
  }),
  "are failing ones, the longest failing first, and then disabled ones, the latest first": ({
    troubled,
  }) => ({ troubled: (most) => Effect.map(troubled(most), (all) => all.toReversed()) }),
  "are ordered by id if they were disabled in the same millisecond": ({ troubled }) => ({
    troubled: (most) => Effect.map(troubled(most), (all) => all.toReversed()),
  }),
})
