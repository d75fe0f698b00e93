/** The services with promises, for hosts without Effect. */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { InvalidInput, StoreUnavailable, closing } from "./base/errors.ts"
import { type Connection, Transactions, TransactionsUnsupported } from "./base/transactions.ts"
import { type FeedPromises, makeFeedPromises } from "./events/feed-promises.ts"
import { Feed } from "./events/feed.ts"
import { Activity, type ActivityReport } from "./health/activity.ts"
import { Metrics } from "./health/metrics.ts"
import { Readiness, Status, type StatusReport } from "./health/status.ts"
import { Handler } from "./http/handler.ts"
import type { Connectable, Mountable } from "./http/mountable.ts"
import type { ApiResponse } from "./http/response.ts"
import { ApiKeys } from "./keys/api-keys.ts"
import { Memberships } from "./memberships/memberships.ts"
import { Dispatcher, type FlushOptions } from "./webhooks/dispatcher.ts"
import { Events } from "./webhooks/published-events.ts"
import { Webhooks } from "./webhooks/webhooks.ts"

/** A service with promises. */
type Promised<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (
    ...args: infer Args
  ) => Effect.Effect<infer Value, infer _Error>
    ? (...args: Args) => Promise<Value>
    : never
}

/** The hosts' services, with promises. */
export interface PromisedServices {
  /**
   * Grants, imports, extends, ends and finds memberships. Besides a method's own errors, its promise
   * rejects with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store does
   * not answer.
   */
  readonly memberships: Promised<Memberships["Service"]>
  /**
   * Registers webhooks, deletes them and replays deliveries. Besides a method's own errors, its promise
   * rejects with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the store does
   * not answer.
   */
  readonly webhooks: Promised<Webhooks["Service"]>
  /**
   * Issues, revokes and lists API keys. Besides a method's own errors, its promise rejects with
   * `StoreUnavailable` if the store does not answer.
   */
  readonly apiKeys: Promised<ApiKeys["Service"]>
  /**
   * Publishes the host's events, and shows events' deliveries. Besides a method's own errors, its
   * promise rejects with `InvalidInput` if an argument is invalid and with `StoreUnavailable` if the
   * store does not answer.
   */
  readonly events: Promised<Events["Service"]>
}

/**
 * Tenure for hosts without Effect. Promises reject with the errors named in a method's comment, each an
 * `Error` with a `_tag`, such as `ProjectNotFound`.
 */
export interface Promises extends Mountable, Connectable, PromisedServices {
  /** Also reads and follows a project's events in an order without gaps. */
  readonly events: PromisedServices["events"] & FeedPromises
  /**
   * Returns the services for the open transaction on a connection from the host. Their changes, with
   * audit rows, events and deliveries, are committed or rolled back together with the host's own rows.
   * Call it once in each transaction.
   *
   * Besides a method's own errors, its promise rejects with `TransactionFailed` if a statement fails:
   * the host then has to roll back. It rejects with `NoTransaction` if no transaction is open, and with
   * `WrongServer` if there are several servers and it is on another than the project. After all other
   * errors, the transaction can continue: `webhooks.cancel`, unless it is a dry run, rejects with
   * `NotInTransaction`. Throws `TransactionsUnsupported` if the stores do not support this: those from
   * `tenure/postgres` do. Throws `InvalidInput` for another connection.
   *
   * @param connection - a client from `pg`, or the result of a function in `tenure/within`
   * @example
   * ```ts
   * import pg from "pg"
   * import { createTenure } from "tenure"
   * import { postgres } from "tenure/postgres"
   *
   * const url = "postgres://localhost/app"
   * const tenure = await createTenure({ stores: postgres({ url }) })
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
   * Tells whether requests can be answered: every necessary store answers and accepts changes. Never
   * rejects.
   */
  readonly isReady: () => Promise<boolean>
  /**
   * Sends due deliveries, for example before a serverless function is frozen. Returns when none is due
   * and no attempt from this process is in flight, or at the timeout. With `webhooks.dispatch: false`,
   * attempts then in flight are aborted; another process or the next `flush` can repeat them at once.
   *
   * @param options.timeout - how long to send: text such as `"5 seconds"`, or milliseconds; `"10
   *   seconds"` by default. The store has up to 5 seconds more to take back aborted deliveries
   * @returns how many deliveries wait in all projects, counted up to 10,000, including failed ones to
   *   retry later. Rejects with `InvalidInput` if the timeout is invalid, and with `StoreUnavailable`
   *   if the store does not answer
   * @example
   * ```ts
   * import { createTenure } from "tenure"
   * import { memory } from "tenure/memory"
   *
   * const tenure = await createTenure({ stores: memory(), webhooks: { dispatch: false } })
   * const left = await tenure.flush({ timeout: "5 seconds" })
   * ```
   */
  readonly flush: (options?: FlushOptions) => Promise<number>
  /**
   * Returns Tenure's status: whether each store answers, the backlog, and the suspended keys. Rejects
   * only with `StoreUnavailable`, after Tenure is closed.
   */
  readonly status: () => Promise<StatusReport>
  /**
   * Returns the last hour's activity by the minute: all processes' successful and failed deliveries, and requests that
   * this process refused, by API key. Rejects with `StoreUnavailable` if the store does not answer.
   */
  readonly activity: () => Promise<ActivityReport>
  /**
   * Returns all this process's metrics in Prometheus's text format. Rejects with `InvalidInput` if the
   * option `metrics` is off, and with `StoreUnavailable` after Tenure is closed.
   * @example
   * ```ts
   * import express from "express"
   * import { createTenure, prometheusContentType } from "tenure"
   * import { memory } from "tenure/memory"
   *
   * const tenure = await createTenure({ stores: memory(), metrics: true })
   *
   * // On a port of its own, which only the monitoring reaches.
   * const monitoring = express()
   * monitoring.get("/metrics", async (_request, response) => {
   *   response.type(prometheusContentType).send(await tenure.metrics())
   * })
   * monitoring.listen(9464, "127.0.0.1")
   * ```
   */
  readonly metrics: () => Promise<string>
}

/** A host's method. */
type Callable = (...args: never) => unknown

/** Captures the frames below a function. V8 formats them only when they are read. */
interface Capturing {
  readonly captureStackTrace: (target: object, above: Callable) => void
}

const isCapturing = (given: object): given is Capturing =>
  "captureStackTrace" in given && Predicate.isFunction(given.captureStackTrace)

/** A call's frames, and perhaps a line before them. */
interface CallSite {
  readonly stack?: unknown
}

/** Returns the running method's call site. Outside V8, nothing may be known. */
const callSiteOf = (method: Callable): CallSite => {
  const site = {}
  const engine: object = Error
  if (isCapturing(engine)) engine.captureStackTrace(site, method)
  return site
}

const firstFrame = "\n    at "

/**
 * Makes a domain error's stack begin at the method's call site, in place of the library's own frames.
 * Other errors are bugs, and stay as they are.
 */
export const atCallSite = (error: unknown, { stack: frames }: CallSite): unknown => {
  if (!(error instanceof Error) || !Predicate.hasProperty(error, "_tag")) return error
  if (typeof frames !== "string" || typeof error.stack !== "string") return error
  const start = frames.indexOf(firstFrame)
  const end = error.stack.indexOf(firstFrame)
  if (start === -1) return error
  const head = end === -1 ? error.stack : error.stack.slice(0, end)
  // Does nothing if the error is sealed or frozen.
  Reflect.defineProperty(error, "stack", {
    value: head + frames.slice(start),
    configurable: true,
    writable: true,
  })
  return error
}

/** Runs a host's function called now. Its domain errors have this call's stack. */
export const fromCallSite = <A>(method: Callable, run: () => Promise<A>): Promise<A> => {
  const site = callSiteOf(method)
  return run().catch((error: unknown) => {
    throw atCallSite(error, site)
  })
}

/** Returns a call's error. An error thrown by a host's function keeps its stack. */
const failureOf = (cause: Cause.Cause<unknown>, site: CallSite): unknown => {
  const error = Cause.squash(cause)
  return Cause.hasFails(cause) ? atCallSite(error, site) : error
}

const failClosed = () => Effect.fail(new StoreUnavailable({ cause: closing }))

/**
 * Runs an effect as a promise. It rejects with the effect's error. Its stack begins at the method's
 * call site.
 *
 * @param method - the running method, called by the host
 */
const run = <A, E>(
  start: StartCall,
  effect: Effect.Effect<A, E>,
  method: Callable,
  closed: () => Effect.Effect<A, E | StoreUnavailable> = failClosed,
): Promise<A> =>
  new Promise((resolve, reject) => {
    let isDone = false
    let site: CallSite | undefined
    start(effect, closed, (exit) => {
      isDone = true
      if (Exit.isSuccess(exit)) resolve(exit.value)
      else reject(failureOf(exit.cause, site ?? callSiteOf(method)))
    })
    // Later, the caller is not on the stack any more.
    if (!isDone) site = callSiteOf(method)
  })

// The request's fiber was interrupted, so nobody has answered it.
const defective: ApiResponse = { status: 500, headers: { Connection: "close" }, body: "" }

const responseOf: (exit: Exit.Exit<ApiResponse, unknown>) => ApiResponse = Exit.match({
  onSuccess: (response) => response,
  onFailure: () => defective,
})

/** Runs a method's effect. */
type RunCall = <A, E>(effect: Effect.Effect<A, E>, method: Callable) => Promise<A>

type Method = (...args: ReadonlyArray<never>) => Effect.Effect<unknown, unknown>

/** Converts a service's methods to run their effects. */
function promised<Service extends object>(by: RunCall, service: Service): Promised<Service>
function promised(by: RunCall, service: Readonly<Record<string, Method>>): object {
  return Object.fromEntries(
    Object.entries(service).map(([name, method]) => {
      const called = (...args: ReadonlyArray<never>) => by(method(...args), called)
      return [name, called]
    }),
  )
}

/** The services with callable methods. */
export type CalledServices =
  | Handler
  | Readiness
  | Status
  | Activity
  | Metrics
  | Dispatcher
  | Memberships
  | Webhooks
  | ApiKeys
  | Events
  | Feed

const notConnection = new InvalidInput({
  field: "connection",
  problem:
    "must be a client of pg, or the result of a function of tenure/within, such as fromDrizzle(transaction)",
})

/** Creates the context's services with promises. A given function runs their effects. */
export const makePromises = Effect.fnUntraced(function* (
  start: StartCall,
): Effect.fn.Return<Promises, never, CalledServices> {
  const { basePath, bodyLimit, connect, connectsAt, handle, maxRefusals, owns, patterns, refuse } =
    yield* Handler
  const readiness = yield* Readiness
  const status = yield* Status
  const activity = yield* Activity
  const metrics = yield* Metrics
  const dispatcher = yield* Dispatcher
  const memberships = yield* Memberships
  const webhooks = yield* Webhooks
  const apiKeys = yield* ApiKeys
  const events = yield* Events
  const feed = yield* Feed
  const host = yield* Effect.serviceOption(Transactions)
  const answer: Mountable["answer"] = (request, deliver) =>
    start(
      handle(request),
      () => refuse(request),
      (exit) => deliver(responseOf(exit)),
    )
  const servicesBy = (by: RunCall): PromisedServices => ({
    memberships: promised(by, memberships),
    webhooks: promised(by, webhooks),
    apiKeys: promised(by, apiKeys),
    events: promised(by, events),
  })
  const runCall: RunCall = (effect, method) => run(start, effect, method)
  const services = servicesBy(runCall)
  const connected: Promises["connect"] = (request) =>
    run(start, connect(request), connected, () =>
      Effect.map(refuse(request), (response) => ({ response, session: undefined })),
    )
  const isReady = () => run(start, readiness.isReady, isReady, () => Effect.succeed(false))
  const flush: Promises["flush"] = (given) => runCall(dispatcher.flush(given), flush)
  const reportStatus = () => runCall(status.report, reportStatus)
  const reportActivity = () => runCall(activity.report, reportActivity)
  const reportMetrics = () => runCall(metrics.text, reportMetrics)
  return {
    ...services,
    events: {
      ...services.events,
      ...makeFeedPromises(feed, runCall),
    },
    within: (connection) => {
      if (Option.isNone(host)) throw new TransactionsUnsupported()
      if (!Predicate.hasProperty(connection, "query") || !Predicate.isFunction(connection.query)) {
        throw notConnection
      }
      const join = host.value.within(connection)
      return servicesBy((effect, method) => runCall(join(effect), method))
    },
    answer,
    handle: (request) => new Promise((resolve) => answer(request, resolve)),
    connect: connected,
    connectsAt,
    owns,
    basePath,
    patterns,
    bodyLimit,
    maxRefusals,
    isReady,
    flush,
    status: reportStatus,
    activity: reportActivity,
    metrics: reportMetrics,
  }
})

/**
 * Runs an effect, and calls `done` with its exit: before it returns, if nothing waits.
 *
 * @param closed - returns the replacement after closing. It needs no store
 */
export type StartCall = <A, E>(
  effect: Effect.Effect<A, E>,
  closed: () => Effect.Effect<A, E | StoreUnavailable>,
  done: (exit: Exit.Exit<A, E | StoreUnavailable>) => void,
) => void

const timeout = "10 seconds"

/**
 * Creates a function to run effects, and an effect to wait up to 10 seconds for running ones. Calls
 * started later could not be waited for: the stores would be closed under them, and nobody would know
 * their results.
 */
export const makeCallTracker = (
  services: Context.Context<never>,
): { readonly start: StartCall; readonly drain: Effect.Effect<void> } => {
  const fork = Effect.runForkWith(services)
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  let isDraining = false
  return {
    start: (effect, closed, done) => {
      const fiber = fork(isDraining ? closed() : effect)
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return done(exit)
      running.add(fiber)
      fiber.addObserver((later) => {
        running.delete(fiber)
        done(later)
      })
    },
    drain: Effect.suspend(() => {
      isDraining = true
      return Effect.asVoid(Effect.timeoutOption(Fiber.awaitAll([...running]), timeout))
    }),
  }
}
