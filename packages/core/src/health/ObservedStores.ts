/** The stores as the services see them: if somebody wants to know, each call is timed, or in a span. */

import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Moment from "../base/Moment.ts"
import * as Step from "../base/Step.ts"
import { FeedStore } from "../events/FeedStore.ts"
import { ApiKeyStore } from "../keys/ApiKeyStore.ts"
import { TicketStore } from "../keys/TicketStore.ts"
import { RateLimitStore } from "../limits/RateLimitStore.ts"
import { MembershipStore } from "../memberships/MembershipStore.ts"
import { type Called, Observer } from "../telemetry/Observer.ts"
import * as StoreFault from "../telemetry/StoreFault.ts"
import { Tracing } from "../telemetry/Tracing.ts"
import { Outbox } from "../webhooks/Outbox.ts"
import { WebhookStore } from "../webhooks/WebhookStore.ts"

/** Tells of a call that has ended; not of one that was interrupted, whose end nobody waited for. */
const tell = (
  called: Called,
  exit: Exit.Exit<unknown, unknown>,
  start: number,
  clock: Clock.Clock,
): void => {
  if (Exit.isSuccess(exit) || !Exit.hasInterrupts(exit)) {
    called(StoreFault.of(exit), Moment.precise(clock) - start)
  }
}

/** Times an effect. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>, called: Called): Effect.Effect<A, E, R> =>
  Step.make((clock) => {
    const start = Moment.precise(clock)
    const begun = Step.begin(effect, clock)
    if (Step.isDone(begun)) {
      tell(called, begun, start, clock)
      return begun
    }
    return Effect.onExit(begun, (exit) => Effect.sync(() => tell(called, exit, start, clock)))
  })

const isMethod = (value: unknown): value is (...args: ReadonlyArray<unknown>) => unknown =>
  Predicate.isFunction(value)

/** The names of the properties of a store, which may be an instance of a class. */
const namesOf = (store: object): ReadonlyArray<string> => {
  const parent: unknown = Object.getPrototypeOf(store)
  const inherited = Predicate.isObject(parent) && parent !== Object.prototype ? namesOf(parent) : []
  return [...inherited, ...Object.getOwnPropertyNames(store)]
}

/** Runs something around an effect. */
type Around = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Makes a store with something around each call. What is no method, such as a ping, stays as it is. */
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

/** Observes the stores of the context, if there is an observer of their calls, or a tracer. */
export const layer = Layer.effectContext(
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
