/** Outboxes that break a promise. */

import { type AttemptResult, type Backlog, Outbox, type PublishedEvent } from "@tenure/core/store"
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

/** Changes the deliveries of events that are found. */
const findingDeliveries = (
  change: (all: PublishedEvent["deliveries"]) => PublishedEvent["deliveries"],
) => finding((found) => ({ ...found, deliveries: change(found.deliveries) }))

const leaving =
  (change: (backlog: Backlog) => Backlog) =>
  ({ backlog }: Store): Partial<Store> => ({
    backlog: (most) => Effect.map(backlog(most), change),
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
  "returns a delivery again after its lease, and only the new claim can settle it": asking(
    (options) => ({ ...options, leaseMillis: 10 ** 9 }),
  ),
  "counts none of them towards the limit of the project, of which half must be left": asking(
    (options) => ({ ...options, ahead: new Map() }),
  ),
  "changes nothing with a claim whose lease has ended": ({ settle }) => ({
    settle: (...settlement) => Effect.as(settle(...settlement), "Settled"),
  }),
  "is not claimed while a retry holds it, and holds up no other": settling((settlement) =>
    settlement._tag === "Retry" ? { ...settlement, holdMillis: 0 } : settlement,
  ),
  "is not claimed while a failure holds it, and holds up no other": settling((settlement) =>
    settlement._tag === "Failed" ? { ...settlement, holdMillis: 0 } : settlement,
  ),
  "waits for a publication": () => ({
    nextChange: Effect.succeed({ _tag: "Due" }),
  }),
  "are replayed once with an idempotency key": ({ replay }) => ({
    replay: (webhook, which) => replay(webhook, which),
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
  "is counted no further than asked": ({ backlog }) => ({ backlog: () => backlog(1000) }),
})
