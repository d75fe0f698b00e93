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
const faultOf = (exit: Exit.Exit<unknown, unknown>): Called["fault"] => {
  if (Exit.isSuccess(exit)) return undefined
  if (Cause.hasDies(exit.cause)) return "Defect"
  return Predicate.isTagged(Cause.squash(exit.cause), "StoreUnavailable")
    ? "StoreUnavailable"
    : undefined
}

type Told = (exit: Exit.Exit<unknown, unknown>, durationMillis: number) => void

/** Times an effect. One that is interrupted is not told: nobody waited for its end. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>, tell: Told): Effect.Effect<A, E, R> =>
  Step.make((clock: Clock.Clock) => {
    const start = Moment.precise(clock)
    const end = (exit: Exit.Exit<A, E>): void => {
      if (Exit.hasInterrupts(exit)) return
      tell(exit, Moment.precise(clock) - start)
    }
    const begun = Step.begin(effect, clock)
    if (!Step.isDone(begun)) return Effect.onExit(begun, (exit) => Effect.sync(() => end(exit)))
    end(begun)
    return begun
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
function observe<Store extends object>(
  name: string,
  store: Store,
  called: (call: Called) => void,
): Store
function observe(name: string, store: object, called: (call: Called) => void): object {
  const observed = (method: string): unknown => {
    const original: unknown = Reflect.get(store, method)
    if (!isMethod(original)) return original
    return (...args: ReadonlyArray<unknown>): unknown => {
      const result: unknown = Reflect.apply(original, store, args)
      return Effect.isEffect(result)
        ? timed(result, (exit, durationMillis) =>
            called({ store: name, method, fault: faultOf(exit), durationMillis }),
          )
        : result
    }
  }
  return Object.fromEntries(namesOf(store).map((property) => [property, observed(property)]))
}

/** Observes the stores of the context, if there is an observer of their calls. */
export const layer: Layer.Layer<Stores, never, Stores> = Layer.effectContext(
  Effect.gen(function* () {
    const { called } = yield* Observer
    const seen = <Store extends object>(name: string, store: Store): Store =>
      called === undefined ? store : observe(name, store, called)
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
