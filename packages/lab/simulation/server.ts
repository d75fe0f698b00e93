/** What is done at the stores' server itself, where nothing is in the way. */

import { digestToken } from "@tenure/core/internal"
import {
  ApiKeyId,
  ApiKeyStore,
  type ChangeContext,
  FeedStore,
  MembershipStore,
  Outbox,
  ProjectId,
  type StorePorts,
  WebhookStore,
  hostOrigin,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { beginning } from "./loop.ts"
import type { Remains } from "./record.ts"
import { projects } from "./workload.ts"
import type { World } from "./world.ts"

/** The clients' token. */
export const token = "the-token-of-the-clients"

/** Runs something at the stores' server, between two steps. */
export const atServer = <A, E>({ server }: World, effect: Effect.Effect<A, E, StorePorts>): A => {
  let exit: Exit.Exit<A, E> | undefined
  server.run(Effect.provideContext(effect, server.stores()), (given) => (exit = given))
  if (exit === undefined) throw new Error("The stores do not answer at once.")
  return valueOf(exit)
}

/** The same for stores that do not answer at once. */
export const afterServer = <A, E>(
  { server }: World,
  effect: Effect.Effect<A, E, StorePorts>,
): Promise<A> =>
  new Promise<Exit.Exit<A, E>>((resolve) =>
    server.run(Effect.provideContext(effect, server.stores()), resolve),
  ).then(valueOf)

const valueOf = <A, E>(exit: Exit.Exit<A, E>): A => {
  if (Exit.isFailure(exit)) throw new Error(`The stores fail: ${exit.cause}`)
  return exit.value
}

const context: ChangeContext = { origin: hostOrigin, at: beginning }

/** Creates the projects, and the clients' key. */
export const prepare = Effect.gen(function* () {
  const memberships = yield* MembershipStore
  for (const id of projects) yield* memberships.createProject(ProjectId(id), context)
  const keys = yield* ApiKeyStore
  const key = {
    id: ApiKeyId("clients"),
    digest: digestToken(token),
    role: "admin",
    name: undefined,
    projects: "all",
    createdAt: beginning,
    expiresAt: undefined,
    revokedAt: undefined,
    lastUsedAt: undefined,
  } as const
  yield* keys.add(key, context)
})

const most = 1000

/** Reads all that is in the stores. */
export const readRemains = ({ server }: World) =>
  Effect.gen(function* () {
    const memberships = yield* MembershipStore
    const outbox = yield* Outbox
    const feed = yield* FeedStore
    const webhookStore = yield* WebhookStore
    const events: Array<Remains["events"][number]> = []
    const members: Array<Remains["members"][number]> = []
    const webhooks: Array<Remains["webhooks"][number]> = []
    const deliveries: Array<Remains["deliveries"][number]> = []
    for (const project of projects) {
      const projectId = ProjectId(project)
      const page = yield* feed.read([projectId], "start", { events: most, bytes: 10_000_000 })
      for (const { body, id, type } of page.events) {
        const { data, timestamp } = JSON.parse(body)
        events.push({ id, projectId, type, at: Date.parse(timestamp), data })
      }
      const all = yield* memberships.list(projectId, { after: undefined, limit: most })
      for (const { endDate, userId } of all) members.push({ projectId, userId, endDate })
      const kept = yield* webhookStore.list(projectId)
      for (const { id, url } of kept) webhooks.push({ id, url })
      for (const { id } of kept) {
        const list = yield* outbox.deliveries({ projectId, webhookId: id }, { limit: most })
        for (const { attempts, eventId, state } of list)
          deliveries.push({ eventId, webhookId: id, state, attempts: attempts.length })
      }
    }
    return {
      events,
      members,
      webhooks,
      deliveries,
      storeMillis: server.machine.wallMillis(),
    } satisfies Remains
  })
