/**
 * Stores of several databases, the shards, among which projects are spread by a map.
 *
 * Everything of a project is in one shard: memberships, webhooks, events and deliveries, audit trail, and the
 * answers to idempotency keys of its changes. So each change stays one statement in one database, and finding
 * the shard of a project takes no round trip: the map is a function of its id. The first shard is the home.
 * It also has what belongs to no project: API keys, tickets, limits, the audit trail of projects and keys,
 * and a `ProjectDirectory` with the names of the projects in the other shards.
 *
 * - **Projects** are created in their shard, then in the directory, and deleted in the opposite order, so
 *   that no key opens a project that is created again. Either can be repeated after a crash. If both are done
 *   at the same time, the directory may name a project that is nowhere: it does not exist, and the next
 *   creation or deletion removes the name. A list has the order of the ids, and one cursor: names come from
 *   the home, and what belongs to them from each shard.
 * - **A wrong map** is noticed where a project is missing: if another shard has it, the request is answered
 *   503 rather than 404, and nothing is created beside it. So is the time in which a project is moved. What
 *   is found costs nothing more.
 * - **Deliveries** are claimed from all shards at the same time, an equal share of each; shares that are not
 *   used go to the others, in turns. A claim is settled where its project is.
 * - **The feed** has a history for each shard, which is read apart. A cursor of a project that was moved has
 *   expired, so readers start again and miss nothing.
 * - **A shard that does not answer** fails the requests for its projects. It is opened later if it was down at
 *   the start. Without the home, nobody can be authenticated beyond what is cached.
 *
 * Transactions of a host (`Tenure.within`) are not supported: a connection does not tell its shard.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Faults } from "../base/Faults.ts"
import { InvalidInput } from "../base/InvalidInput.ts"
import * as Setting from "../base/Setting.ts"
import { FeedStore } from "../events/FeedStore.ts"
import { ApiKeyStore } from "../keys/ApiKeyStore.ts"
import { TicketStore } from "../keys/TicketStore.ts"
import { RateLimitStore } from "../limits/RateLimitStore.ts"
import { MembershipStore } from "../memberships/MembershipStore.ts"
import { Outbox } from "../webhooks/Outbox.ts"
import { WebhookStore } from "../webhooks/WebhookStore.ts"
import * as feedShards from "./feedShards.ts"
import * as membershipShards from "./membershipShards.ts"
import * as outboxShards from "./outboxShards.ts"
import { ProjectDirectory } from "./ProjectDirectory.ts"
import * as Routing from "./Routing.ts"
import * as Shard from "./Shard.ts"
import * as ShardMap from "./ShardMap.ts"
import * as webhookShards from "./webhookShards.ts"

export type { Projects } from "./ShardMap.ts"

type HomeStores = ApiKeyStore | TicketStore | RateLimitStore

/** The options of a shard that do not depend on its stores. */
export const options = Setting.struct({
  /** What logs and errors call the shard. */
  name: Setting.text("1 to 48 letters, digits, - and _", (name) => /^[\w-]{1,48}$/.test(name)),
  /**
   * The projects of the shard: their ids; a function that tells whether a project is one of them; or
   * `"others"`, those that no entry names. Ids come before functions, which are asked in order.
   */
  projects: ShardMap.projects,
})

/** A shard. */
export interface Options<out E = unknown> extends Setting.Input<typeof options> {
  /** The stores. Those of the first shard need a `ProjectDirectory` as well. */
  readonly stores: Layer.Layer<Shard.ProjectStores | HomeStores, E>
}

const noDirectory = new InvalidInput({
  field: "[0].stores",
  problem: "must have a ProjectDirectory, as those of memory() and postgres() do",
})

/**
 * Makes stores of several ones.
 *
 * Fails with `InvalidInput` if two shards have the same name or name the same project, and with the error of
 * the first shard. Another one that cannot be opened is tried again once a second, unless that is in vain.
 *
 * @param isForGood - tells whether another attempt to open a shard would fail with the same error. By
 *   default, it would
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { memory } from "tenure/memory"
 * import * as Shards from "tenure/Shards"
 *
 * const tenure = await Tenure.make({
 *   stores: Shards.layer([
 *     { name: "main", projects: "others", stores: memory() },
 *     { name: "large", projects: ["p1", "p2"], stores: memory() },
 *   ]),
 * })
 * ```
 */
export const layer = <E>(
  shards: readonly [Options<E>, ...ReadonlyArray<Options<E>>],
  isForGood: (error: E) => boolean = () => true,
): Layer.Layer<Shard.ProjectStores | HomeStores, E | InvalidInput> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const [first, ...others] = shards
      const names = shards.map(({ name }) => name)
      const repeated = names.findIndex((name, index) => names.indexOf(name) !== index)
      if (repeated !== -1) {
        const problem = `is ${names[repeated]}, as that of an earlier entry`
        return yield* new InvalidInput({ field: `[${repeated}].name`, problem })
      }
      const map = yield* Effect.fromResult(ShardMap.make(shards.map(({ projects }) => projects)))
      const stores = yield* Layer.build(Layer.fresh(first.stores))
      const directory = yield* Effect.fromOption(Context.getOption(stores, ProjectDirectory)).pipe(
        Effect.mapError(() => noDirectory),
      )
      const home = Shard.opened(first.name, stores)
      const rest = yield* Effect.forEach(
        others,
        (one) => Shard.make(one.name, one.stores, isForGood),
        { concurrency: "unbounded" },
      )
      const apiKeys = Context.get(stores, ApiKeyStore)
      const all: Routing.Shards = { all: [home, ...rest], home, directory, apiKeys, map }
      const routing = Routing.make(all)
      return Context.make(MembershipStore, membershipShards.make(all, routing, yield* Faults)).pipe(
        Context.add(WebhookStore, webhookShards.make(all, routing)),
        Context.add(Outbox, yield* outboxShards.make(all, routing)),
        Context.add(FeedStore, feedShards.make(all, routing)),
        Context.add(ApiKeyStore, apiKeys),
        Context.add(TicketStore, Context.get(stores, TicketStore)),
        Context.add(RateLimitStore, Context.get(stores, RateLimitStore)),
        Context.add(Shard.Shards, all.all),
      )
    }),
  )
