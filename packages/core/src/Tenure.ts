/** Tenure as a whole: a layer for hosts that use Effect, and promises for all others. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Faults from "./base/Faults.ts"
import * as HostClock from "./base/HostClock.ts"
import * as HostLogger from "./base/HostLogger.ts"
import type { InvalidInput } from "./base/InvalidInput.ts"
import * as ProjectDeletions from "./base/ProjectDeletions.ts"
import * as Setting from "./base/Setting.ts"
import type { StoreUnavailable } from "./base/StoreUnavailable.ts"
import { Transactions } from "./base/Transactions.ts"
import * as Draining from "./Draining.ts"
import * as Feed from "./events/Feed.ts"
import type { FeedStore } from "./events/FeedStore.ts"
import * as Hooks from "./events/Hooks.ts"
import * as Listeners from "./events/Listeners.ts"
import * as Activity from "./health/Activity.ts"
import * as Metrics from "./health/Metrics.ts"
import * as ObservedStores from "./health/ObservedStores.ts"
import { Readiness } from "./health/Readiness.ts"
import { Status } from "./health/Status.ts"
import * as Handler from "./http/Handler.ts"
import * as ApiKeys from "./keys/ApiKeys.ts"
import type { ApiKeyStore } from "./keys/ApiKeyStore.ts"
import * as Tickets from "./keys/Tickets.ts"
import type { TicketStore } from "./keys/TicketStore.ts"
import * as RateLimiter from "./limits/RateLimiter.ts"
import type { RateLimitStore } from "./limits/RateLimitStore.ts"
import * as Expiries from "./memberships/Expiries.ts"
import * as Memberships from "./memberships/Memberships.ts"
import type { MembershipStore } from "./memberships/MembershipStore.ts"
import * as Promises from "./Promises.ts"
import * as HostTracer from "./telemetry/HostTracer.ts"
import * as Tracing from "./telemetry/Tracing.ts"
import * as AddressPolicy from "./webhooks/AddressPolicy.ts"
import * as Dispatcher from "./webhooks/Dispatcher.ts"
import * as Encryption from "./webhooks/Encryption.ts"
import * as Events from "./webhooks/Events.ts"
import type * as Flush from "./webhooks/Flush.ts"
import type { Outbox } from "./webhooks/Outbox.ts"
import * as Webhooks from "./webhooks/Webhooks.ts"
import type { WebhookStore } from "./webhooks/WebhookStore.ts"
import { WebhookTransport } from "./webhooks/WebhookTransport.ts"

export type { Promised, PromisedServices, Promises } from "./Promises.ts"

/** The storage ports. */
export type Stores =
  | MembershipStore
  | WebhookStore
  | ApiKeyStore
  | Outbox
  | FeedStore
  | RateLimitStore
  | TicketStore

/** The services. */
export type Services =
  | Promises.Called
  | Tickets.Tickets
  | Listeners.Listeners
  | RateLimiter.RateLimiter

/** The options of webhooks and their deliveries. */
export interface WebhookOptions
  extends
    Webhooks.Options,
    AddressPolicy.Options,
    Events.Options,
    Dispatcher.Options,
    Encryption.Options {}

const webhookOptions = Setting.struct({
  ...Webhooks.options.fields,
  ...AddressPolicy.options.fields,
  ...Events.options.fields,
  ...Dispatcher.options.fields,
  ...Encryption.options.fields,
})

type Transport = Layer.Layer<WebhookTransport, never, AddressPolicy.AddressPolicy>

const transport = Setting.checked<Transport>(
  "a layer of a transport, such as nodeTransport of @tenure/node-http",
  Layer.isLayer,
)

const parts = Setting.struct({
  /** The rate limits, and what follows if a client keeps exceeding them. */
  rateLimits: Setting.withDefault<RateLimiter.Options, RateLimiter.Settings>(
    RateLimiter.options,
    {},
  ),
  /** Webhooks and their deliveries. */
  webhooks: Setting.withDefault<WebhookOptions, Setting.Output<typeof webhookOptions>>(
    webhookOptions,
    {},
  ),
  /**
   * Sends the notifications. By default, the `fetch` of the runtime does. On Node, pass `nodeTransport`
   * of `tenure/node`, which checks the addresses that it connects to.
   */
  transport: Setting.withDefault(transport, WebhookTransport.layerFetch),
})

/** The options of Tenure, as a host passes them. */
export interface Options
  extends
    Handler.Options,
    Memberships.Options,
    Expiries.Options,
    ApiKeys.Options,
    Hooks.Options,
    Faults.Options,
    Metrics.Options,
    Setting.Input<typeof parts> {}

/** The options of Tenure. */
export const options = Setting.struct({
  ...Handler.options.fields,
  ...Memberships.options.fields,
  ...Expiries.options.fields,
  ...ApiKeys.options.fields,
  ...Hooks.options.fields,
  ...Faults.options.fields,
  ...Metrics.options.fields,
  ...parts.fields,
})

/**
 * The services on the stores of the context. Dispatches deliveries until the layer is closed. Fails
 * with `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import { Tenure } from "tenure"
 * import { Memberships } from "tenure/Memberships"
 * import { memory } from "tenure/memory"
 *
 * const TenureLive = Tenure.layer({ basePath: "/api" }).pipe(Layer.provide(memory()))
 *
 * const program = Effect.gen(function* () {
 *   const memberships = yield* Memberships
 *   yield* memberships.createProject("p1")
 * }).pipe(Effect.provide(TenureLive))
 * ```
 */
export const layer = (given: Options = {}): Layer.Layer<Services, InvalidInput, Stores> =>
  Layer.unwrap(Effect.map(Setting.read(options, given), compose))

const compose = (settings: Setting.Output<typeof options>) => {
  const operations = Layer.mergeAll(
    Memberships.Memberships.layer(settings),
    Webhooks.Webhooks.layer(settings.webhooks),
    ApiKeys.ApiKeys.layer(settings),
    Events.Events.layer(settings.webhooks),
    Feed.Feed.layer,
  )
  return Handler.Handler.layer(settings).pipe(
    Layer.provideMerge(Tickets.Tickets.layer),
    Layer.provideMerge(Metrics.Metrics.layer(settings)),
    Layer.provideMerge(Status.layer()),
    Layer.provideMerge(Listeners.Listeners.layer),
    Layer.provideMerge(Readiness.layer(settings.rateLimits)),
    Layer.provideMerge(RateLimiter.RateLimiter.layer(settings.rateLimits)),
    Layer.provideMerge(operations),
    Layer.provideMerge(Dispatcher.Dispatcher.layer(settings.webhooks)),
    Layer.merge(Expiries.layer(settings)),
    Layer.provide(settings.transport),
    Layer.provide(AddressPolicy.AddressPolicy.layer(settings.webhooks)),
    Layer.provide(Encryption.layer(settings.webhooks)),
    Layer.provide(Hooks.layer(settings)),
    Layer.provide(ProjectDeletions.layer),
    Layer.provide(Faults.layer(settings)),
    Layer.provide(ObservedStores.layer),
    Layer.provide(Metrics.counting(settings)),
    Layer.provide([Activity.counting, Tracing.layer]),
    Layer.provideMerge(Activity.Activity.layer),
    Layer.provideMerge(transactions),
  )
}

/** Passes on the ability of the stores to work in transactions of the host, if they have it. */
const transactions: Layer.Layer<never> = Layer.effectContext(
  Effect.map(
    Effect.serviceOption(Transactions),
    Option.match({
      onNone: () => Context.empty(),
      onSome: (found) => Context.make(Transactions, found),
    }),
  ),
)

/**
 * Whether requests can be answered: every store that they need answers and accepts changes. The store
 * of rate limits counts only if `rateLimits.onStoreFailure` is `"closed"`.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { HttpRouter, HttpServerResponse } from "effect/http"
 * import { Tenure } from "tenure"
 *
 * const readiness = HttpRouter.add(
 *   "GET",
 *   "/readyz",
 *   Effect.map(Tenure.isReady, (isReady) =>
 *     HttpServerResponse.empty({ status: isReady ? 200 : 503 }),
 *   ),
 * )
 * ```
 */
export const isReady: Effect.Effect<boolean, never, Readiness> = Effect.flatMap(
  Readiness,
  (readiness) => readiness.isReady,
)

/**
 * Sends the notifications that are due, as `flush` of `Tenure.make` does. Fails with `InvalidInput` if
 * the timeout is invalid, and with `StoreUnavailable` if the store does not answer.
 */
export const flush = (
  given?: Flush.Options,
): Effect.Effect<number, InvalidInput | StoreUnavailable, Dispatcher.Dispatcher> =>
  Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.flush(given))

/** Returns the services of an Effect host with promises, for example to mount them with an adapter. */
export const promises: Effect.Effect<Promises.Promises, never, Services> = Effect.flatMap(
  Effect.context<Services>(),
  (services) =>
    Promises.make(
      (effect, _closed, done) => void Effect.runCallbackWith(services)(effect, { onExit: done }),
    ),
)

const closingTimeout = "5 seconds"

/** Closes a scope. Leaves it behind if that takes too long. */
const closeInTime = Effect.fnUntraced(function* (scope: Scope.Closeable) {
  // At once, since the timers of the runtime may be those of a test, which stand still.
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), {
    startImmediately: true,
  })
  const closed = yield* Effect.timeoutOption(Fiber.join(closing), closingTimeout)
  if (Option.isNone(closed)) yield* Effect.logWarning("The stores do not close")
})

/** Tenure as `make` returns it. */
export interface Tenure extends Promises.Promises {
  /**
   * Waits up to 10 seconds for the calls under way, stops dispatching, and closes the stores, for
   * which it waits up to 5 seconds. Further calls return the same promise. Later requests are answered
   * 503, and later calls of the services reject with `StoreUnavailable`. Rejects only if a store fails
   * to close.
   */
  readonly close: () => Promise<void>
}

/**
 * A store of all ports, or an array of stores. The first store of the array provides all ports. Each
 * later one replaces the ports that it provides, and may use the services of those before it.
 */
export type StoreLayers<Provided = never> =
  | Layer.Layer<Stores | Provided, unknown>
  | readonly [
      Layer.Layer<Stores | Provided, unknown>,
      ...ReadonlyArray<Layer.Layer<never, unknown, Stores | Provided>>,
    ]

const isList = (given: unknown): given is ReadonlyArray<unknown> => Array.isArray(given)

const areStores = (given: unknown): given is StoreLayers =>
  isList(given) ? given.length > 0 && given.every(Layer.isLayer) : Layer.isLayer(given)

const combine = (stores: StoreLayers): Layer.Layer<Stores, unknown> => {
  if (!isList(stores)) return stores
  const [first, ...others] = stores
  return others.reduce<Layer.Layer<Stores, unknown>>(
    (earlier, later) => Layer.provideMerge(later, earlier),
    first,
  )
}

/** The options of `make`, as a host passes them. */
export interface MakeOptions<Provided = never> extends Options {
  /**
   * The store, for example `memory()` of `tenure/memory`, or an array in which a later store replaces
   * ports of an earlier one.
   */
  readonly stores: StoreLayers<Provided>
  /**
   * Takes what Tenure logs, for example `pino()` or `app.log` of Fastify. Default: the console.
   */
  readonly logger?: HostLogger.HostLogger | undefined
  /**
   * Makes a span of each request, each call of a store and each attempt to deliver an event, for example
   * `trace.getTracer("tenure")` of `@opentelemetry/api`. By default, there are none.
   */
  readonly tracer?: HostTracer.HostTracer | undefined
}

/** The options of `make`. */
export const makeOptions = Setting.struct({
  stores: Setting.make<StoreLayers, Layer.Layer<Stores, unknown>>(
    "a store, such as memory() of @tenure/memory, or an array of stores",
    (given) => (areStores(given) ? combine(given) : undefined),
  ),
  /**
   * Takes what Tenure logs, for example `pino()` or `app.log` of Fastify. Default: the console.
   */
  logger: Setting.optional(HostLogger.setting),
  /**
   * Makes a span of each request, each call of a store and each attempt to deliver an event, for example
   * `trace.getTracer("tenure")` of `@opentelemetry/api`. By default, there are none.
   */
  tracer: Setting.optional(HostTracer.setting),
  ...options.fields,
})

/**
 * Starts Tenure: opens the stores and begins to dispatch deliveries.
 *
 * @returns Tenure. The promise rejects with `InvalidInput`, which names the option and says what is
 *   valid, if an option is invalid, and with the error of a store that cannot be opened.
 * @example
 * ```ts
 * import { Tenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * await tenure.memberships.createProject("p1")
 * const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
 * ```
 */
export const make = async <Provided = never>(given: MakeOptions<Provided>): Promise<Tenure> => {
  const { logger, stores, tracer, ...settings } = Setting.readSync(makeOptions, given)
  const scope = Scope.makeUnsafe()
  const clock = Effect.runSync(HostClock.current)
  const services = await Layer.provide(compose(settings), stores).pipe(
    Layer.provideMerge(logger === undefined ? Layer.empty : HostLogger.layer(logger)),
    Layer.provideMerge(tracer === undefined ? Layer.empty : HostTracer.layer(tracer)),
    // Two of them in a process count apart.
    Layer.provideMerge(Layer.sync(Metric.MetricRegistry, () => new Map())),
    Layer.buildWithScope(scope),
    Effect.map(Context.add(Clock.Clock, clock)),
    Effect.provideService(Clock.Clock, clock),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
    Effect.runPromise,
  )
  const { drain, start } = Draining.make(services)
  let closed: Promise<void> | undefined
  const { release } = Context.get(services, Feed.Feed)
  return {
    ...(await Effect.runPromiseWith(services)(Promises.make(start))),
    close: () =>
      (closed ??= Effect.runPromiseWith(services)(
        Effect.all([release, drain, closeInTime(scope)], { discard: true }),
      )),
  }
}
