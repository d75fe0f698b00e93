/** The map of projects to shards: a decision by the id alone, so that it costs no round trip. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type {
  ChangeContext,
  IdempotencyConflict,
  ReplayedResponse,
} from "../base/change-context.ts"
import { InvalidInput, StoreUnavailable } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { ProjectId } from "../base/values.ts"
import { FeedStore } from "../events/feed-store.ts"
import type { ApiKeyStore } from "../keys/store.ts"
import { MembershipStore } from "../memberships/store.ts"
import { Outbox } from "../webhooks/outbox.ts"
import { WebhookStore } from "../webhooks/store.ts"

/**
 * The projects of a shard: their ids; a function that tells whether a project is one of them; or `"others"`,
 * those that no shard names.
 */
export type Projects = ReadonlyArray<string> | ((projectId: string) => boolean) | "others"

const expected = 'an array of project ids, a function of a project id, or "others"'

/** The definition of the projects of a shard, as an option. */
export const shardProjectsOption = Setting.guarded<Projects>(
  expected,
  (given) =>
    given === "others" ||
    typeof given === "function" ||
    (Array.isArray(given) && given.every((id) => typeof id === "string" && ProjectId.is(id))),
)

/** Returns the number of the shard of a project, counted from 0; `undefined` if no shard has it. */
export type ShardMap = (projectId: ProjectId) => number | undefined

const twice = (field: string, what: string) =>
  Result.fail(
    new InvalidInput({ field, problem: `names ${what}, which an earlier entry names, too` }),
  )

/**
 * Makes a map. Ids come before functions, which are asked in the order of their shards.
 *
 * @param shards - the projects of each shard. Fails with `InvalidInput` if two of them name the same
 */
export const makeShardMap = (
  shards: ReadonlyArray<Projects>,
): Result.Result<ShardMap, InvalidInput> => {
  const named = new Map<string, number>()
  const asked: Array<readonly [(projectId: string) => boolean, number]> = []
  let others: number | undefined
  for (const [index, given] of shards.entries()) {
    const field = `[${index}].projects`
    if (typeof given === "function") asked.push([given, index])
    else if (given === "others") {
      if (others !== undefined) return twice(field, '"others"')
      others = index
    } else {
      for (const id of given) {
        if ((named.get(id) ?? index) !== index) return twice(field, id)
        named.set(id, index)
      }
    }
  }
  return Result.succeed(
    (projectId) => named.get(projectId) ?? asked.find(([has]) => has(projectId))?.[1] ?? others,
  )
}

/** Sharing among shards that take turns. */

/** Divides a number into shares that differ by one at most, the larger ones first. */
export const shareEvenly = (total: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => Math.ceil((total - index) / count))

/** Returns the items in their order, beginning with the item after `turn` others. */
export const rotate = <A>(items: ReadonlyArray<A>, turn: number): ReadonlyArray<A> => {
  const first = items.length === 0 ? 0 : turn % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}

/** The storage port for the names of projects that other stores have. */

/**
 * Knows the projects that are elsewhere, in the other stores of `Shards`. API keys open them as they open
 * those that are here. The other ports of the store know nothing of them.
 *
 * A change with an idempotency key is made once, as by a `MembershipStore`.
 */
export class ProjectDirectory extends Context.Service<
  ProjectDirectory,
  {
    /** Adds a project, with a row of the audit trail that says that it was created. Does nothing if it is known. */
    readonly add: (
      projectId: ProjectId,
      occasion: ChangeContext,
    ) => Effect.Effect<ReplayedResponse | void, IdempotencyConflict | StoreUnavailable>

    /**
     * Removes a project, and the access of API keys to it, with a row of the audit trail that says that it
     * was deleted. Does nothing if it is unknown.
     */
    readonly remove: (
      projectId: ProjectId,
      occasion: ChangeContext,
    ) => Effect.Effect<ReplayedResponse | void, IdempotencyConflict | StoreUnavailable>

    /** Tells whether a project is elsewhere. */
    readonly has: (projectId: ProjectId) => Effect.Effect<boolean, StoreUnavailable>

    /**
     * Returns at most `limit` projects that are elsewhere, as `listProjects` of a `MembershipStore` returns
     * those that are here.
     */
    readonly list: (page: {
      readonly within: ReadonlySet<string> | "all"
      readonly after: ProjectId | undefined
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<ProjectId>, StoreUnavailable>
  }
>()("@tenure/core/ProjectDirectory") {}

/** A shard: the stores of some projects, which are there as soon as they can be opened. */

/** The ports that each shard has for its own projects. */
export type ProjectStores = MembershipStore | WebhookStore | Outbox | FeedStore

/** The stores of a shard. */
export interface Stores {
  readonly memberships: MembershipStore["Service"]
  readonly webhooks: WebhookStore["Service"]
  readonly outbox: Outbox["Service"]
  readonly feed: FeedStore["Service"]
}

/** A shard. */
export interface Shard {
  readonly name: string
  /** Runs an operation on the stores. Fails at once while they are not open. */
  readonly use: <A, E>(
    operation: (stores: Stores) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, E | StoreUnavailable>
}

/** The shards of the stores, for those who look at each by itself. By default, there are none. */
export const Shards = Context.Reference<ReadonlyArray<Shard>>("@tenure/core/Shards", {
  defaultValue: () => [],
})

// How often a shard that could not be opened is tried again.
const retryPause = "1 second"

const storesOf = (context: Context.Context<ProjectStores>): Stores => ({
  memberships: Context.get(context, MembershipStore),
  webhooks: Context.get(context, WebhookStore),
  outbox: Context.get(context, Outbox),
  feed: Context.get(context, FeedStore),
})

/** A shard that was open from the start. */
export interface Opened extends Shard {
  readonly stores: Stores
}

/** Makes a shard of stores that are open. */
export const opened = (name: string, context: Context.Context<ProjectStores>): Opened => {
  const stores = storesOf(context)
  return { name, stores, use: (operation) => operation(stores) }
}

/** Opens stores until the scope closes, or leaves nothing behind. */
const open = <E>(layer: Layer.Layer<ProjectStores, E>, scope: Scope.Scope) =>
  Effect.flatMap(Scope.fork(scope), (own) =>
    Effect.onError(Layer.buildWithScope(Layer.fresh(layer), own), (cause) =>
      Scope.close(own, Exit.failCause(cause)),
    ),
  )

/**
 * Opens a shard, for as long as the scope is open. If that fails, the shard is unavailable, and is tried
 * again in the background, so that a database that is down does not keep the others from starting. Fails
 * only with an error for good.
 *
 * @param isForGood - tells whether another attempt would fail with the same error
 */
export const makeShard = Effect.fnUntraced(function* <E>(
  name: string,
  layer: Layer.Layer<ProjectStores, E>,
  isForGood: (error: E) => boolean,
): Effect.fn.Return<Shard, E, Scope.Scope> {
  const scope = yield* Effect.scope
  const opening = Effect.map(open(layer, scope), (context) => opened(name, context))
  let current: Shard | undefined
  let reason: unknown

  const attempt = Effect.matchEffect(opening, {
    onSuccess: (shard) =>
      Effect.sync(() => {
        current = shard
      }),
    onFailure: (error) => {
      if (isForGood(error)) return Effect.fail(error)
      reason = error
      return Effect.void
    },
  })
  const retried = Effect.ignoreCause(Effect.delay(attempt, retryPause))

  yield* attempt
  if (current === undefined) {
    yield* Effect.logWarning(`The shard ${name} cannot be opened yet`, reason)
    yield* Effect.repeat(retried, { while: () => current === undefined }).pipe(
      Effect.andThen(Effect.logInfo(`The shard ${name} is open now`)),
      Effect.forkScoped,
    )
  }
  return {
    name,
    use: (operation) =>
      current === undefined
        ? Effect.fail(new StoreUnavailable({ cause: reason }))
        : current.use(operation),
  }
})

/** Finds the shard of a project, and notices if the map names the wrong one. */

/** The shards, and which of them a project belongs to. */
export interface RoutedShards {
  /** All of them; the first is the home. */
  readonly all: readonly [Shard, ...ReadonlyArray<Shard>]
  readonly home: Opened
  /** The projects of the others, as the home knows them. */
  readonly directory: ProjectDirectory["Service"]
  /** The API keys, which the home has. */
  readonly apiKeys: ApiKeyStore["Service"]
  readonly map: ShardMap
}

/**
 * Where a project is found: in its shard; in the directory alone, which still names it after a creation and a
 * deletion at the same time; or nowhere.
 */
type Place = "shard" | "directory" | "nowhere"

/** Runs operations on the shards of projects. */
export interface Routing {
  /**
   * Runs an operation on the stores of a project. If these do not have the project, but it exists, the map
   * is wrong or the project is being moved: then fails with `StoreUnavailable` rather than as if there were
   * no such project.
   */
  readonly on: <A, E>(
    projectId: ProjectId,
    operation: (stores: Stores) => Effect.Effect<A, E>,
  ) => Effect.Effect<A, E | StoreUnavailable>
  /**
   * Finds a project. Fails with `StoreUnavailable` if it is in another shard than the map names, or is being
   * moved.
   */
  readonly locate: (projectId: ProjectId) => Effect.Effect<Place, StoreUnavailable>
  /** Returns the shard of a project. Whatever no shard names belongs to the home, which does not have it. */
  readonly shardOf: (projectId: ProjectId) => Shard
}

const missing: ReadonlySet<string> = new Set([
  "ProjectNotFound",
  "MembershipNotFound",
  "WebhookNotFound",
  "EventNotFound",
])

const isMissing = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  typeof error._tag === "string" &&
  missing.has(error._tag)

const exists = (shard: Shard, projectId: ProjectId): Effect.Effect<boolean, StoreUnavailable> =>
  shard.use(({ memberships }) =>
    Effect.as(memberships.findProject(projectId), true).pipe(
      Effect.catchTag("ProjectNotFound", () => Effect.succeed(false)),
    ),
  )

/** Makes the routing. */
export const makeShardRouting = ({ all, directory, home, map }: RoutedShards): Routing => {
  const shardOf = (projectId: ProjectId): Shard => all[map(projectId) ?? 0] ?? home

  const locate: Routing["locate"] = Effect.fnUntraced(function* (projectId) {
    const shard = shardOf(projectId)
    if (yield* exists(shard, projectId)) return "shard"
    const isNamed = yield* directory.has(projectId)
    const found = yield* Effect.filter(
      (isNamed ? all : [home]).filter((other) => other !== shard),
      (other) => exists(other, projectId),
      { concurrency: "unbounded" },
    )
    if (found.length > 0) {
      const cause = `The project ${projectId} is not in the shard ${shard.name}, where the map has it`
      return yield* new StoreUnavailable({ cause })
    }
    if (!isNamed) return "nowhere"
    // It may have been created since it was looked for, or may have come from where it was not any more.
    return (yield* exists(shard, projectId)) ? "shard" : "directory"
  })

  return {
    shardOf,
    locate,
    on: <A, E>(
      projectId: ProjectId,
      operation: (stores: Stores) => Effect.Effect<A, E>,
    ): Effect.Effect<A, E | StoreUnavailable> =>
      Effect.catch(
        Effect.suspend(() => shardOf(projectId).use(operation)),
        (error) =>
          isMissing(error)
            ? Effect.andThen(locate(projectId), Effect.fail(error))
            : Effect.fail(error),
      ),
  }
}
