/** Tenure as a whole: a layer for Effect hosts, and promises for all others. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { InvalidInput, StoreUnavailable } from "./base/errors.ts"
import {
  type ErrorReporterOptions,
  errorReporterLayer,
  errorReporterOptions,
} from "./base/faults.ts"
import { projectDeletionsLayer } from "./base/project-deletions.ts"
import * as Setting from "./base/setting.ts"
import { currentMonotonicClock } from "./base/time.ts"
import { Transactions } from "./base/transactions.ts"
import { type HooksOptions, hooksLayer, hooksOptions } from "./events/event.ts"
import type { FeedStore } from "./events/feed-store.ts"
import { Feed } from "./events/feed.ts"
import { Listeners } from "./events/listeners.ts"
import { Activity, activityCounterLayer } from "./health/activity.ts"
import {
  Metrics,
  type MetricsOptions,
  metricsCounterLayer,
  metricsOptions,
} from "./health/metrics.ts"
import { observedStoresLayer } from "./health/observed-stores.ts"
import { Readiness, Status } from "./health/status.ts"
import { Handler, type HandlerOptions, handlerOptions } from "./http/handler.ts"
import { ApiKeys, type ApiKeysOptions, apiKeysOptions } from "./keys/api-keys.ts"
import type { ApiKeyStore, TicketStore } from "./keys/store.ts"
import { Tickets } from "./keys/tickets.ts"
import type { RateLimitStore } from "./limits/buckets.ts"
import {
  RateLimiter,
  type RateLimiterOptions,
  type RateLimiterSettings,
  rateLimiterOptions,
} from "./limits/rate-limiter.ts"
import {
  type ExpiryOptions,
  announcementsLayer,
  expiryOptions,
} from "./memberships/announcements.ts"
import { type MembershipsOptions, membershipsOptions } from "./memberships/membership-acts.ts"
import { Memberships } from "./memberships/memberships.ts"
import type { MembershipStore } from "./memberships/store.ts"
import { makeDocsOperations } from "./openapi/operations.ts"
import {
  fromCallSite,
  type CalledServices,
  type Promises,
  makeCallTracker,
  makePromises,
} from "./promises.ts"
import { type HostLogger, hostLoggerLayer, hostLoggerOption } from "./telemetry/host-logger.ts"
import {
  type HostTracer,
  hostTracerLayer,
  hostTracerOption,
  tracingLayer,
} from "./telemetry/tracing.ts"
import {
  Dispatcher,
  type DispatcherOptions,
  type FlushOptions,
  dispatcherOptions,
} from "./webhooks/dispatcher.ts"
import { EncryptionKeys } from "./webhooks/encryption-keys.ts"
import {
  type EncryptionOptions,
  encryptionLayer,
  encryptionOptions,
} from "./webhooks/encryption.ts"
import type { Outbox } from "./webhooks/outbox.ts"
import { Events, type EventsOptions, eventsOptions } from "./webhooks/published-events.ts"
import type { WebhookStore } from "./webhooks/store.ts"
import {
  AddressPolicy,
  type AddressPolicyOptions,
  WebhookTransport,
  addressPolicyOptions,
} from "./webhooks/transport.ts"
import { type WebhooksOptions, webhooksOptions } from "./webhooks/webhook-registry.ts"
import { Webhooks } from "./webhooks/webhooks.ts"

export { type Promises } from "./promises.ts"

/** The storage ports. */
export type StorePorts =
  | MembershipStore
  | WebhookStore
  | ApiKeyStore
  | Outbox
  | FeedStore
  | RateLimitStore
  | TicketStore

/** The services. */
export type Services = CalledServices | Tickets | Listeners | RateLimiter

/** Options for webhooks and their deliveries. */
export interface WebhookOptions
  extends
    WebhooksOptions,
    AddressPolicyOptions,
    EventsOptions,
    DispatcherOptions,
    EncryptionOptions {}

const webhookOptions = Setting.object({
  ...webhooksOptions.fields,
  ...addressPolicyOptions.fields,
  ...eventsOptions.fields,
  ...dispatcherOptions.fields,
  ...encryptionOptions.fields,
})

type Transport = Layer.Layer<WebhookTransport, never, AddressPolicy>

const transport = Setting.guarded<Transport>(
  "a layer of a transport, such as nodeTransport of tenure/node",
  Layer.isLayer,
)

const parts = Setting.object({
  /** The rate limits, and suspensions for clients that keep exceeding them. */
  rateLimits: Setting.withDefault<RateLimiterOptions, RateLimiterSettings>(rateLimiterOptions, {}),
  /** Webhooks and their deliveries. */
  webhooks: Setting.withDefault<WebhookOptions, Setting.OutputOf<typeof webhookOptions>>(
    webhookOptions,
    {},
  ),
  /**
   * Sends the notifications. By default, the runtime's `fetch` does. On Node, pass `nodeTransport` from
   * `tenure/node`: it checks the addresses it connects to.
   */
  transport: Setting.withDefault(transport, WebhookTransport.layerFetch),
})

/** Tenure's options, as a host passes them. */
export interface TenureOptions
  extends
    HandlerOptions,
    MembershipsOptions,
    ExpiryOptions,
    ApiKeysOptions,
    HooksOptions,
    ErrorReporterOptions,
    MetricsOptions,
    Setting.InputOf<typeof parts> {}

/** Tenure's options. */
export const tenureOptions = Setting.object({
  ...handlerOptions.fields,
  ...membershipsOptions.fields,
  ...expiryOptions.fields,
  ...apiKeysOptions.fields,
  ...hooksOptions.fields,
  ...errorReporterOptions.fields,
  ...metricsOptions.fields,
  ...parts.fields,
})

/**
 * The services on the context's stores. Dispatches deliveries until the layer is closed. Fails with
 * `InvalidInput` if an option is invalid.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import { Memberships, tenureLayer } from "tenure/effect"
 * import { memory } from "tenure/memory"
 *
 * const TenureLive = tenureLayer({ basePath: "/api" }).pipe(Layer.provide(memory()))
 *
 * const program = Effect.gen(function* () {
 *   const memberships = yield* Memberships
 *   yield* memberships.createProject("p1")
 * }).pipe(Effect.provide(TenureLive))
 * ```
 */
export const tenureLayer = (
  given: TenureOptions = {},
): Layer.Layer<Services, InvalidInput, StorePorts> =>
  Layer.unwrap(Effect.map(Setting.decode(tenureOptions, given), compose))

const compose = (settings: Setting.OutputOf<typeof tenureOptions>) => {
  const operations = Layer.mergeAll(
    Memberships.layer(settings),
    Webhooks.layer(settings.webhooks),
    ApiKeys.layer(settings),
    Events.layer(settings.webhooks),
    Feed.layer,
  )
  return Handler.layer(settings, makeDocsOperations(settings)).pipe(
    Layer.provideMerge(Tickets.layer),
    Layer.provideMerge(Metrics.layer(settings)),
    Layer.provideMerge(Status.layer()),
    Layer.provideMerge(Listeners.layer),
    Layer.provideMerge(Readiness.layer(settings.rateLimits)),
    Layer.provide(EncryptionKeys.layer(settings.webhooks)),
    Layer.provideMerge(RateLimiter.layer(settings.rateLimits)),
    Layer.provideMerge(operations),
    Layer.provideMerge(Dispatcher.layer(settings.webhooks)),
    Layer.merge(announcementsLayer(settings)),
    Layer.provide(settings.transport),
    Layer.provide([AddressPolicy.layer(settings.webhooks), encryptionLayer(settings.webhooks)]),
    Layer.provide(hooksLayer(settings)),
    Layer.provide(projectDeletionsLayer),
    Layer.provide(errorReporterLayer(settings)),
    Layer.provide(observedStoresLayer),
    Layer.provide(metricsCounterLayer(settings)),
    Layer.provide([activityCounterLayer, tracingLayer]),
    Layer.provideMerge(Activity.layer),
    Layer.provideMerge(transactions),
  )
}

/** Passes on the stores' ability to work in the host's transactions, if they have it. */
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
 * Whether requests can be answered: every required store answers and accepts changes. The rate limits'
 * store counts only if `rateLimits.onStoreFailure` is `"closed"`.
 *
 * @example
 * ```ts
 * import * as Effect from "effect/Effect"
 * import { HttpRouter, HttpServerResponse } from "effect/http"
 * import { isReady } from "tenure/effect"
 *
 * const readiness = HttpRouter.add(
 *   "GET",
 *   "/readyz",
 *   Effect.map(isReady, (isReady) =>
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
 * Sends due notifications, as `createTenure`'s `flush` does. Fails with `InvalidInput` if the timeout
 * is invalid, and with `StoreUnavailable` if the store does not answer.
 */
export const flushDeliveries = (
  given?: FlushOptions,
): Effect.Effect<number, InvalidInput | StoreUnavailable, Dispatcher> =>
  Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.flush(given))

/** Returns an Effect host's services with promises, for example to mount them with an adapter. */
export const promisesFromEffect: Effect.Effect<Promises, never, Services> = Effect.flatMap(
  Effect.context<Services>(),
  (services) =>
    makePromises(
      (effect, _closed, done) => void Effect.runCallbackWith(services)(effect, { onExit: done }),
    ),
)

const closingTimeout = "5 seconds"

/** Closes a scope. Leaves it behind if closing takes too long. */
const closeInTime = Effect.fnUntraced(function* (scope: Scope.Closeable) {
  // At once, because a test may have replaced the runtime's timers with fake ones.
  const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), {
    startImmediately: true,
  })
  const closed = yield* Effect.timeoutOption(Fiber.join(closing), closingTimeout)
  if (Option.isNone(closed)) yield* Effect.logWarning("The stores do not close")
})

/** Tenure as `createTenure` returns it. */
export interface Tenure extends Promises {
  /**
   * Waits up to 10 seconds for the calls under way, stops dispatching, and closes the stores, waiting
   * for up to 5 seconds. Further calls return the same promise. Later requests are answered 503, and
   * later calls to the services reject with `StoreUnavailable`. Rejects only if a store fails to close.
   */
  readonly close: () => Promise<void>
}

/**
 * Storage for all of Tenure's data: pass it to `createTenure` as `stores`. An Effect app provides it as
 * a layer.
 */
export interface Store<Failure = InvalidInput> extends Layer.Layer<StorePorts, Failure> {}

/**
 * A store with all ports, or an array of stores. The first store in the array provides all ports. Each
 * later one replaces the ports it provides, and may use earlier stores' services.
 */
export type StoreLayers<Provided = never> =
  | Layer.Layer<StorePorts | Provided, unknown>
  | readonly [
      Layer.Layer<StorePorts | Provided, unknown>,
      ...ReadonlyArray<Layer.Layer<never, unknown, StorePorts | Provided>>,
    ]

const isList = (given: unknown): given is ReadonlyArray<unknown> => Array.isArray(given)

const areStores = (given: unknown): given is StoreLayers =>
  isList(given) ? given.length > 0 && given.every(Layer.isLayer) : Layer.isLayer(given)

const combine = (stores: StoreLayers): Layer.Layer<StorePorts, unknown> => {
  if (!isList(stores)) return stores
  const [first, ...others] = stores
  return others.reduce<Layer.Layer<StorePorts, unknown>>(
    (earlier, later) => Layer.provideMerge(later, earlier),
    first,
  )
}

/** Options for `make`, as a host passes them. */
export interface CreateTenureOptions<Provided = never> extends TenureOptions {
  /**
   * The store, for example `memory()` from `tenure/memory`, or an array in which a later store replaces
   * an earlier one's ports.
   */
  readonly stores: StoreLayers<Provided>
  /** Receives Tenure's log, for example `pino()` or Fastify's `app.log`. Default: the console. */
  readonly logger?: HostLogger | undefined
  /**
   * Makes a span for each request, each store call and each delivery attempt, for example
   * `trace.getTracer("tenure")` from `@opentelemetry/api`. By default, there are none.
   */
  readonly tracer?: HostTracer | undefined
}

/** Options for `make`. */
export const createTenureOptions = Setting.object({
  stores: Setting.custom<StoreLayers, Layer.Layer<StorePorts, unknown>>(
    "a store, such as memory() of tenure/memory, or an array of stores",
    (given) => (areStores(given) ? combine(given) : undefined),
  ),
  /** Receives Tenure's log, for example `pino()` or Fastify's `app.log`. Default: the console. */
  logger: Setting.optional(hostLoggerOption),
  /**
   * Makes a span for each request, each store call and each delivery attempt, for example
   * `trace.getTracer("tenure")` from `@opentelemetry/api`. By default, there are none.
   */
  tracer: Setting.optional(hostTracerOption),
  ...tenureOptions.fields,
})

/**
 * Starts Tenure: opens the stores and begins to dispatch deliveries.
 *
 * @returns Tenure. The promise rejects with `InvalidInput` if an option is invalid: the error names the
 *   option and describes valid values. It rejects with a store's error if the store cannot be opened.
 * @example
 * ```ts
 * import { createTenure } from "tenure"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 * await tenure.memberships.createProject("p1")
 * const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
 * ```
 */
export const createTenure = <Provided = never>(
  given: CreateTenureOptions<Provided>,
): Promise<Tenure> =>
  fromCallSite(createTenure, () =>
    startTenure(given, Context.make(Clock.Clock, Effect.runSync(currentMonotonicClock))),
  )

/**
 * Starts Tenure as `createTenure` does.
 *
 * @param runtime - the clock, and other runtime services to replace
 */
export const startTenure = async <Provided = never>(
  given: CreateTenureOptions<Provided>,
  runtime: Context.Context<never>,
): Promise<Tenure> => {
  const { logger, stores, tracer, ...settings } = Setting.parse(createTenureOptions, given)
  const scope = Scope.makeUnsafe()
  const services = await Layer.provide(compose(settings), stores).pipe(
    // For the stores.
    Layer.provide(errorReporterLayer(settings)),
    Layer.provideMerge(logger === undefined ? Layer.empty : hostLoggerLayer(logger)),
    Layer.provideMerge(tracer === undefined ? Layer.empty : hostTracerLayer(tracer)),
    // Two Tenures in one process keep separate metrics.
    Layer.provideMerge(Layer.sync(Metric.MetricRegistry, () => new Map())),
    Layer.buildWithScope(scope),
    Effect.map((built) => Context.merge(built, runtime)),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
    Effect.runPromiseWith(runtime),
  )
  const { drain, start } = makeCallTracker(services)
  let closed: Promise<void> | undefined
  const { release } = Context.get(services, Feed)
  return {
    ...(await Effect.runPromiseWith(services)(makePromises(start))),
    close: () =>
      (closed ??= Effect.runPromiseWith(services)(
        Effect.all([release, drain, closeInTime(scope)], { discard: true }),
      )),
  }
}
