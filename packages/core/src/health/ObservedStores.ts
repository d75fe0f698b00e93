/** The stores as the services see them: if somebody wants to know, each call of theirs is timed. */

import * as Cause from "effect/Cause"
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
import { Outbox } from "../webhooks/Outbox.ts"
import { WebhookStore } from "../webhooks/WebhookStore.ts"

type Stores =
  | MembershipStore
  | WebhookStore
  | ApiKeyStore
  | Outbox
  | FeedStore
  | RateLimitStore
  | TicketStore

/** Returns why a call has failed, if that is the fault of the store. */
const faultOf = (exit: Exit.Exit<unknown, unknown>): Parameters<Called>[0] => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasDies(exit.cause)) return "Defect"
  return Predicate.isTagged(Cause.squash(exit.cause), "StoreUnavailable")
    ? "StoreUnavailable"
    : undefined
}

/** Tells of a call that has ended; not of one that was interrupted, whose end nobody waited for. */
const tell = (
  called: Called,
  exit: Exit.Exit<unknown, unknown>,
  start: number,
  clock: Clock.Clock,
): void => {
  if (Exit.isSuccess(exit) || !Exit.hasInterrupts(exit)) {
    called(faultOf(exit), Moment.precise(clock) - start)
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

/** Makes a store whose methods are timed. What is no method, such as a ping, stays as it is. */
function observe<Store extends object>(store: Store, called: (method: string) => Called): Store
function observe(store: object, called: (method: string) => Called): object {
  const observed = (method: string): unknown => {
    const original: unknown = Reflect.get(store, method)
    if (!isMethod(original)) return original
    const ended = called(method)
    return (...args: ReadonlyArray<unknown>): unknown => {
      const result: unknown = Reflect.apply(original, store, args)
      return Effect.isEffect(result) ? timed(result, ended) : result
    }
  }
  return Object.fromEntries(namesOf(store).map((property) => [property, observed(property)]))
}

/** Observes the stores of the context, if there is an observer of their calls. */
export const layer: Layer.Layer<Stores, never, Stores> = Layer.effectContext(
  Effect.gen(function* () {
    const { called } = yield* Observer
    const seen = <Store extends object>(name: string, store: Store): Store =>
      called === undefined ? store : observe(store, (method) => called(name, method))
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
