/** A shard: the stores of some projects, which are there as soon as they can be opened. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { StoreUnavailable } from "../base/StoreUnavailable.ts"
import { FeedStore } from "../events/FeedStore.ts"
import { MembershipStore } from "../memberships/MembershipStore.ts"
import { Outbox } from "../webhooks/Outbox.ts"
import { WebhookStore } from "../webhooks/WebhookStore.ts"

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
export const make = Effect.fnUntraced(function* <E>(
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
