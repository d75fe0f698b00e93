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
import { InvalidInput } from "../base/errors.ts"
import { Faults } from "../base/faults.ts"
import * as Setting from "../base/setting.ts"
import { FeedStore } from "../events/feed-store.ts"
import { ApiKeyStore, TicketStore } from "../keys/store.ts"
import { RateLimitStore } from "../limits/buckets.ts"
import { MembershipStore } from "../memberships/store.ts"
import { Outbox } from "../webhooks/outbox.ts"
import { WebhookStore } from "../webhooks/store.ts"
import {
  ProjectDirectory,
  type ProjectStores,
  type RoutedShards,
  Shards,
  makeShard,
  makeShardMap,
  makeShardRouting,
  opened,
  shardProjectsOption,
} from "./shard-map.ts"
import {
  makeFeedShards,
  makeMembershipShards,
  makeOutboxShards,
  makeWebhookShards,
} from "./sharded-stores.ts"

type HomeStores = ApiKeyStore | TicketStore | RateLimitStore

/** The options of a shard that do not depend on its stores. */
export const shardsOptions = Setting.object({
  /** What logs and errors call the shard. */
  name: Setting.string("1 to 48 letters, digits, - and _", (name) => /^[\w-]{1,48}$/.test(name)),
  /**
   * The projects of the shard: their ids; a function that tells whether a project is one of them; or
   * `"others"`, those that no entry names. Ids come before functions, which are asked in order.
   */
  projects: shardProjectsOption,
})

/** A shard. */
export interface ShardsOptions<out E = unknown> extends Setting.InputOf<typeof shardsOptions> {
  /** The stores. Those of the first shard need a `ProjectDirectory` as well. */
  readonly stores: Layer.Layer<ProjectStores | HomeStores, E>
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
 * import { shardsLayer } from "@tenure/core/internal"
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({
 *   stores: shardsLayer([
 *     { name: "main", projects: "others", stores: memory() },
 *     { name: "large", projects: ["p1", "p2"], stores: memory() },
 *   ]),
 * })
 * ```
 */
export const shardsLayer = <E>(
  shards: readonly [ShardsOptions<E>, ...ReadonlyArray<ShardsOptions<E>>],
  isForGood: (error: E) => boolean = () => true,
): Layer.Layer<ProjectStores | HomeStores, E | InvalidInput> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const [first, ...others] = shards
      const names = shards.map(({ name }) => name)
      const repeated = names.findIndex((name, index) => names.indexOf(name) !== index)
      if (repeated !== -1) {
        const problem = `is ${names[repeated]}, as that of an earlier entry`
        return yield* new InvalidInput({ field: `[${repeated}].name`, problem })
      }
      const map = yield* Effect.fromResult(makeShardMap(shards.map(({ projects }) => projects)))
      const stores = yield* Layer.build(Layer.fresh(first.stores))
      const directory = yield* Effect.fromOption(Context.getOption(stores, ProjectDirectory)).pipe(
        Effect.mapError(() => noDirectory),
      )
      const home = opened(first.name, stores)
      const rest = yield* Effect.forEach(
        others,
        (one) => makeShard(one.name, one.stores, isForGood),
        { concurrency: "unbounded" },
      )
      const apiKeys = Context.get(stores, ApiKeyStore)
      const all: RoutedShards = { all: [home, ...rest], home, directory, apiKeys, map }
      const routing = makeShardRouting(all)
      return Context.make(MembershipStore, makeMembershipShards(all, routing, yield* Faults)).pipe(
        Context.add(WebhookStore, makeWebhookShards(all, routing)),
        Context.add(Outbox, yield* makeOutboxShards(all, routing)),
        Context.add(FeedStore, makeFeedShards(all, routing)),
        Context.add(ApiKeyStore, apiKeys),
        Context.add(TicketStore, Context.get(stores, TicketStore)),
        Context.add(RateLimitStore, Context.get(stores, RateLimitStore)),
        Context.add(Shards, all.all),
      )
    }),
  )
