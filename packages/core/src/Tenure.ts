/** Tenure as a whole: a layer for hosts that use Effect, and promises for all others. */

import * as Cause from "effect/Cause"
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
import { StoreUnavailable } from "./base/StoreUnavailable.ts"
import { type Connection, Transactions, TransactionsUnsupported } from "./base/Transactions.ts"
import * as Draining from "./Draining.ts"
import * as Feed from "./events/Feed.ts"
import * as FeedPromises from "./events/FeedPromises.ts"
import type { FeedStore } from "./events/FeedStore.ts"
import * as Hooks from "./events/Hooks.ts"
import * as Listeners from "./events/Listeners.ts"
import * as Activity from "./health/Activity.ts"
import * as Metrics from "./health/Metrics.ts"
import * as ObservedStores from "./health/ObservedStores.ts"
import { Readiness } from "./health/Readiness.ts"
import { type Report, Status } from "./health/Status.ts"
import type { ApiResponse } from "./http/Envelope.ts"
import * as Handler from "./http/Handler.ts"
import type { Connectable, Mountable } from "./http/Mountable.ts"
import * as ApiKeys from "./keys/ApiKeys.ts"
import type { ApiKeyStore } from "./keys/ApiKeyStore.ts"
import * as Tickets from "./keys/Tickets.ts"
import type { TicketStore } from "./keys/TicketStore.ts"
import * as RateLimiter from "./limits/RateLimiter.ts"
import type { RateLimitStore } from "./limits/RateLimitStore.ts"
import * as Expiries from "./memberships/Expiries.ts"
import * as Memberships from "./memberships/Memberships.ts"
import type { MembershipStore } from "./memberships/MembershipStore.ts"
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
  | Memberships.Memberships
  | Webhooks.Webhooks
  | ApiKeys.ApiKeys
  | Tickets.Tickets
  | Events.Events
  | Feed.Feed
  | Listeners.Listeners
  | RateLimiter.RateLimiter
  | Dispatcher.Dispatcher
  | Handler.Handler
  | Readiness
  | Status
  | Metrics.Metrics
  | Activity.Activity

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

/** A service whose methods return promises. */
export type Promised<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (
    ...args: infer Args
  ) => Effect.Effect<infer Value, infer _Error>
    ? (...args: Args) => Promise<Value>
    : never
}

/** The services that hosts call, with promises. */
export interface PromisedServices {
  /**
   * Grants, imports, extends, ends and finds memberships. Besides the errors that a method names, its promise
   * rejects with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store does
   * not answer.
   */
  readonly memberships: Promised<Memberships.Memberships["Service"]>
  /**
   * Registers webhooks, deletes them and replays deliveries. Besides the errors that a method names,
   * its promise rejects with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if
   * the store does not answer.
   */
  readonly webhooks: Promised<Webhooks.Webhooks["Service"]>
  /**
   * Issues, revokes and lists API keys. Besides the errors that a method names, its promise rejects
   * with `StoreUnavailable` if the store does not answer.
   */
  readonly apiKeys: Promised<ApiKeys.ApiKeys["Service"]>
  /**
   * Publishes events of the host, and shows what became of events. Besides the errors that a method
   * names, its promise rejects with `InvalidInput` if an argument is invalid and with
   * `StoreUnavailable` if the store does not answer.
   */
  readonly events: Promised<Events.Events["Service"]>
}

/**
 * Tenure for hosts that do not use Effect. Promises reject with the errors that the comment of the
 * method names, each an `Error` with a `_tag`, such as `ProjectNotFound`.
 */
export interface Promises extends Mountable, Connectable, PromisedServices {
  /** Also reads and follows the events of a project, in an order in which none is skipped. */
  readonly events: PromisedServices["events"] & FeedPromises.FeedPromises
  /**
   * Returns the services for the transaction that is open on a connection of the host. What they change,
   * with its audit rows, events and deliveries, is committed or rolled back together with the host's
   * own rows. Call it once in each transaction.
   *
   * Besides the errors that a method names, its promise rejects with `TransactionFailed` if a statement
   * fails, after which the host has to roll back, and with `NoTransaction` if no transaction is open.
   * After all other errors the transaction can go on. Throws `TransactionsUnsupported` if the stores
   * cannot do this: those of `tenure/postgres` can.
   *
   * @param connection - a client of `pg`, or what a function of `tenure/postgres/within` returns
   * @example
   * ```ts
   * import pg from "pg"
   * import { Tenure } from "tenure"
   * import { postgres } from "tenure/postgres"
   *
   * const url = "postgres://localhost/app"
   * const tenure = await Tenure.make({ stores: postgres({ url }) })
   * const client = await new pg.Pool({ connectionString: url }).connect()
   * await client.query("BEGIN")
   * await client.query("INSERT INTO payments (invoice) VALUES ('2026-117')")
   * const { memberships } = tenure.within(client)
   * await memberships.extend({ projectId: "p1", userId: "1001", endDate: new Date("2099-01-01") })
   * await client.query("COMMIT")
   * ```
   */
  readonly within: (connection: Connection) => PromisedServices
  /**
   * Tells whether requests can be answered: every store that they need answers and accepts changes.
   * Never rejects.
   */
  readonly isReady: () => Promise<boolean>
  /**
   * Sends the notifications that are due, for example before a serverless function is frozen. Returns
   * when nothing is due and no attempt of this process is in flight, or when the time is up. With
   * `webhooks.dispatch: false`, attempts that are then in flight are aborted, and can be made again at
   * once: by another process, or by the next `flush`.
   *
   * @param options.timeout - how long to send: text such as `"5 seconds"`, or milliseconds; `"10
   *   seconds"` by default. The store has up to 5 seconds more to take back what was aborted
   * @returns how many deliveries wait, of all projects, counted up to 10,000. Those that failed and will
   *   be retried later are among them. Rejects with `InvalidInput` if the timeout is invalid, and with
   *   `StoreUnavailable` if the store does not answer
   * @example
   * ```ts
   * import { Tenure } from "tenure"
   * import { memory } from "tenure/memory"
   *
   * const tenure = await Tenure.make({ stores: memory(), webhooks: { dispatch: false } })
   * const left = await tenure.flush({ timeout: "5 seconds" })
   * ```
   */
  readonly flush: (options?: Flush.Options) => Promise<number>
  /**
   * Tells how Tenure is doing: whether each store answers, how much is left to deliver, and which keys
   * are suspended. Rejects only with `StoreUnavailable`, after Tenure is closed.
   */
  readonly status: () => Promise<Report>
  /**
   * Returns what this process has done in each minute of the last hour: deliveries that succeeded and
   * failed, and requests that were refused, by API key. Rejects only with `StoreUnavailable`, after Tenure
   * is closed.
   */
  readonly activity: () => Promise<Activity.Report>
  /**
   * Returns all metrics of this process in the text format of Prometheus. Rejects with `InvalidInput` if
   * the option `metrics` is off, and with `StoreUnavailable` after Tenure is closed.
   *
   * @example
   * ```ts
   * import express from "express"
   * import { Tenure } from "tenure"
   * import { memory } from "tenure/memory"
   * import { contentType } from "tenure/Prometheus"
   *
   * const tenure = await Tenure.make({ stores: memory(), metrics: true })
   *
   * // On a port of its own, which only the monitoring reaches.
   * const monitoring = express()
   * monitoring.get("/metrics", async (_request, response) => {
   *   response.type(contentType).send(await tenure.metrics())
   * })
   * monitoring.listen(9464, "127.0.0.1")
   * ```
   */
  readonly metrics: () => Promise<string>
}

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

const failClosed = () => Effect.fail(new StoreUnavailable({ cause: "closed" }))

/** Runs an effect as a promise, which rejects with the error of the effect. */
const run = <A, E>(
  start: Draining.Start,
  effect: Effect.Effect<A, E>,
  closed: () => Effect.Effect<A, E | StoreUnavailable> = failClosed,
): Promise<A> =>
  new Promise((resolve, reject) => {
    start(effect, closed, (exit) => {
      if (Exit.isSuccess(exit)) resolve(exit.value)
      else reject(Cause.squash(exit.cause))
    })
  })

// The fiber of a request was interrupted, so nobody has answered it.
const defective: ApiResponse = { status: 500, headers: { Connection: "close" }, body: "" }

const responseOf: (exit: Exit.Exit<ApiResponse, unknown>) => ApiResponse = Exit.match({
  onSuccess: (response) => response,
  onFailure: () => defective,
})

type Run = <A, E>(effect: Effect.Effect<A, E>) => Promise<A>

type Method = (...args: ReadonlyArray<never>) => Effect.Effect<unknown, unknown>

/** Converts the methods of a service to methods that run its effects. */
function promised<Service extends object>(by: Run, service: Service): Promised<Service>
function promised(by: Run, service: Readonly<Record<string, Method>>): object {
  return Object.fromEntries(
    Object.entries(service).map(([name, method]) => [
      name,
      (...args: ReadonlyArray<never>) => by(method(...args)),
    ]),
  )
}

const promisesBy = Effect.fnUntraced(function* (start: Draining.Start) {
  const { basePath, bodyLimit, connect, connectsAt, handle, maxRefusals, owns, patterns, refuse } =
    yield* Handler.Handler
  const readiness = yield* Readiness
  const status = yield* Status
  const activity = yield* Activity.Activity
  const metrics = yield* Metrics.Metrics
  const dispatcher = yield* Dispatcher.Dispatcher
  const memberships = yield* Memberships.Memberships
  const webhooks = yield* Webhooks.Webhooks
  const apiKeys = yield* ApiKeys.ApiKeys
  const events = yield* Events.Events
  const feed = yield* Feed.Feed
  const host = yield* Effect.serviceOption(Transactions)
  const answer: Mountable["answer"] = (request, deliver) =>
    start(
      handle(request),
      () => refuse(request),
      (exit) => deliver(responseOf(exit)),
    )
  const servicesBy = (by: Run): PromisedServices => ({
    memberships: promised(by, memberships),
    webhooks: promised(by, webhooks),
    apiKeys: promised(by, apiKeys),
    events: promised(by, events),
  })
  const services = servicesBy((effect) => run(start, effect))
  return {
    ...services,
    events: {
      ...services.events,
      ...FeedPromises.make(feed, (effect) => run(start, effect)),
    },
    within: (connection) => {
      if (Option.isNone(host)) throw new TransactionsUnsupported()
      const join = host.value.within(connection)
      return servicesBy((effect) => run(start, join(effect)))
    },
    answer,
    handle: (request) => new Promise((resolve) => answer(request, resolve)),
    connect: (request) =>
      run(start, connect(request), () =>
        Effect.map(refuse(request), (response) => ({ response, session: undefined })),
      ),
    connectsAt,
    owns,
    basePath,
    patterns,
    bodyLimit,
    maxRefusals,
    isReady: () => run(start, readiness.isReady, () => Effect.succeed(false)),
    flush: (given) => run(start, dispatcher.flush(given)),
    status: () => run(start, status.report),
    activity: () => run(start, activity.report),
    metrics: () => run(start, metrics.text),
  } satisfies Promises
})

/** Returns the services of an Effect host with promises, for example to mount them with an adapter. */
export const promises: Effect.Effect<Promises, never, Services> = Effect.flatMap(
  Effect.context<Services>(),
  (services) =>
    promisesBy(
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
export interface Tenure extends Promises {
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
    ...(await Effect.runPromiseWith(services)(promisesBy(start))),
    close: () =>
      (closed ??= Effect.runPromiseWith(services)(
        Effect.all([release, drain, closeInTime(scope)], { discard: true }),
      )),
  }
}
