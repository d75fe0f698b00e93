/** The stores as the services see them: if somebody wants to know, each call is timed, or in a span. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { readMonotonic } from "../base/time.ts"
import { FeedStore } from "../events/feed-store.ts"
import { ApiKeyStore, TicketStore } from "../keys/store.ts"
import { RateLimitStore } from "../limits/buckets.ts"
import { MembershipStore } from "../memberships/store.ts"
import { Observer, type StoreCall, storeFaultOf } from "../telemetry/observer.ts"
import { Tracing } from "../telemetry/tracing.ts"
import { Outbox } from "../webhooks/outbox.ts"
import { WebhookStore } from "../webhooks/store.ts"

/** Reports a completed call. Interrupted calls are not reported, because nobody waited for their end. */
const reportCall = (
  called: StoreCall,
  exit: Exit.Exit<unknown, unknown>,
  start: number,
  clock: Clock.Clock,
): void => {
  if (Exit.isSuccess(exit) || !Exit.hasInterrupts(exit)) {
    called(storeFaultOf(exit), readMonotonic(clock) - start)
  }
}

/** Times an effect. */
const timed = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  called: StoreCall,
): Effect.Effect<A, E, R> =>
  Clock.clockWith((clock) => {
    const start = readMonotonic(clock)
    return Effect.onExit(effect, (exit) =>
      Effect.sync(() => reportCall(called, exit, start, clock)),
    )
  })

const isMethod = (value: unknown): value is (...args: ReadonlyArray<unknown>) => unknown =>
  Predicate.isFunction(value)

/** Returns the names of a store's properties. The store may be a class instance. */
const namesOf = (store: object): ReadonlyArray<string> => {
  const parent: unknown = Object.getPrototypeOf(store)
  const inherited = Predicate.isObject(parent) && parent !== Object.prototype ? namesOf(parent) : []
  return [...inherited, ...Object.getOwnPropertyNames(store)]
}

/** Runs something around an effect. */
type Around = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Creates a store with a wrapper around each call. Values other than methods, such as a ping, stay
 * unchanged.
 */
function observe<Store extends object>(store: Store, around: (method: string) => Around): Store
function observe(store: object, around: (method: string) => Around): object {
  const observed = (method: string): unknown => {
    const original: unknown = Reflect.get(store, method)
    if (!isMethod(original)) return original
    const aroundCall = around(method)
    return (...args: ReadonlyArray<unknown>): unknown => {
      const result: unknown = Reflect.apply(original, store, args)
      return Effect.isEffect(result) ? aroundCall(result) : result
    }
  }
  return Object.fromEntries(namesOf(store).map((property) => [property, observed(property)]))
}

/** Observes the context's stores, if there is an observer or a tracer for calls. */
export const observedStoresLayer = Layer.effectContext(
  Effect.gen(function* () {
    const { called } = yield* Observer
    const tracing = yield* Tracing
    const seen = <Store extends object>(name: string, store: Store): Store => {
      const counted =
        called === undefined
          ? store
          : observe(store, (method) => {
              const ended = called(name, method)
              return (effect) => timed(effect, ended)
            })
      return tracing === undefined
        ? counted
        : observe(counted, (method) => (effect) => tracing.call(effect, name, method))
    }
    return Context.make(MembershipStore, seen("memberships", yield* MembershipStore)).pipe(
      Context.add(WebhookStore, seen("webhooks", yield* WebhookStore)),
      Context.add(ApiKeyStore, seen("apiKeys", yield* ApiKeyStore)),
      Context.add(Outbox, seen("deliveries", yield* Outbox)),
      Context.add(FeedStore, seen("feed", yield* FeedStore)),
      Context.add(RateLimitStore, seen("rateLimits", yield* RateLimitStore)),
      Context.add(TicketStore, seen("tickets", yield* TicketStore)),
    )
  }),
)
