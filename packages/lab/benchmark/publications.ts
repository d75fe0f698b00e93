/** Publications to many webhooks, on stores without a dispatcher. */

import {
  MembershipStore,
  Outbox,
  ProjectId,
  StoredSecret,
  WebhookId,
  WebhookStore,
  hostOrigin,
} from "@tenure/core/store"
import { memory } from "@tenure/memory"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { eventOf } from "./backlog.ts"
import { type Database, schema } from "./database.ts"
import { type Contestant, sample } from "./rounds.ts"

const projectOf = (webhooks: number) => ProjectId(`webhooks-${webhooks}`)

const webhookOf = (projectId: ProjectId, index: number) => ({
  id: WebhookId(crypto.randomUUID()),
  projectId,
  url: `http://127.0.0.1:4000/${index}`,
  secret: StoredSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
  previous: undefined,
  signingKey: undefined,
  eventTypes: undefined,
  ordered: false,
  rate: undefined,
  createdAt: 0,
  description: undefined,
  headers: undefined,
  disabled: undefined,
})

const fill = Effect.fnUntraced(function* (counts: ReadonlyArray<number>) {
  const projects = yield* MembershipStore
  const webhooks = yield* WebhookStore
  for (const count of counts) {
    const projectId = projectOf(count)
    yield* projects.createProject(projectId, { origin: hostOrigin, at: 0 })
    for (let index = 0; index < count; index++) {
      yield* webhooks.add(webhookOf(projectId, index), count, { origin: hostOrigin, at: 0 })
    }
  }
})

const publish = Effect.fnUntraced(function* (webhooks: number) {
  const outbox = yield* Outbox
  yield* outbox.publish(eventOf(projectOf(webhooks)))
})

/**
 * Passes contestants that publish to this many webhooks to a function. They count deliveries.
 *
 * @param deliveries - how many deliveries one turn makes; all of them are kept
 */
export const publications = async <A>(
  database: Database | undefined,
  counts: ReadonlyArray<number>,
  deliveries: number,
  use: (contestants: ReadonlyMap<number, Contestant>) => Promise<A>,
): Promise<A> => {
  const stores = database === undefined ? memory() : postgres({ url: database.url, schema })
  const runtime = ManagedRuntime.make(stores)
  const contestant = (webhooks: number): Contestant => ({
    name: `${webhooks} webhooks`,
    run: () =>
      sample(async () => {
        const events = Math.ceil(deliveries / webhooks)
        await runtime.runPromise(
          Effect.replicateEffect(publish(webhooks), events, { discard: true }),
        )
        return events * webhooks
      }),
  })
  try {
    await runtime.runPromise(fill(counts))
    return await use(new Map(counts.map((count) => [count, contestant(count)])))
  } finally {
    await runtime.dispose()
  }
}
