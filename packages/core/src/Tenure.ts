/** The whole of Tenure: a layer for Effect hosts, promises for everybody else. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as AddressPolicy from "./AddressPolicy.ts"
import * as ApiKeys from "./ApiKeys.ts"
import type { ApiKeyStore } from "./ApiKeyStore.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import * as Dispatcher from "./Dispatcher.ts"
import type { ApiResponse } from "./Envelope.ts"
import { Events } from "./Events.ts"
import * as Handler from "./Handler.ts"
import * as Hooks from "./Hooks.ts"
import * as Draining from "./internal/draining.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import * as Memberships from "./Memberships.ts"
import type { MembershipStore } from "./MembershipStore.ts"
import type { Outbox } from "./Outbox.ts"
import * as RateLimiter from "./RateLimiter.ts"
import type { RateLimitStore } from "./RateLimitStore.ts"
import * as Setting from "./Setting.ts"
import * as Webhooks from "./Webhooks.ts"
import type { WebhookStore } from "./WebhookStore.ts"
import { WebhookTransport } from "./WebhookTransport.ts"

/** All storage ports. */
export type Stores = MembershipStore | WebhookStore | ApiKeyStore | Outbox | RateLimitStore

/** All services. */
export type Services =
  | Memberships.Memberships
  | Webhooks.Webhooks
  | ApiKeys.ApiKeys
  | Events
  | RateLimiter.RateLimiter
  | Handler.Handler

/** Options of the whole. Each has a default. */
export interface Options
  extends Handler.Options, Memberships.Options, ApiKeys.Options, Hooks.Options {
  /** How many requests are answered; 100 a minute for each key and 300 for each address by default. */
  readonly rateLimits?: RateLimiter.Options | undefined
  /** Webhooks and their delivery: which are taken, how long and how often they are tried. */
  readonly webhooks?: WebhookOptions | undefined
  /** How notifications are sent; by the runtime's `fetch` by default. */
  readonly transport?: Layer.Layer<WebhookTransport, never, AddressPolicy.AddressPolicy> | undefined
}

/** Options of webhooks and of their delivery. */
export interface WebhookOptions
  extends Webhooks.Options, AddressPolicy.Options, Dispatcher.Options {}

const optionNames: Readonly<Record<keyof Options, true>> = {
  authenticate: true,
  basePath: true,
  bulk: true,
  keyCacheLife: true,
  maxBodyBytes: true,
  onError: true,
  onEvent: true,
  onResponse: true,
  rateLimits: true,
  transport: true,
  trustedProxies: true,
  webhooks: true,
}

const webhookOptionNames: Readonly<Record<keyof WebhookOptions, true>> = {
  allowedNetworks: true,
  disableAfter: true,
  maxInFlight: true,
  maxPerProject: true,
  onDisabled: true,
  requireHttps: true,
  retrySchedule: true,
  timeout: true,
}

const rateLimitOptionNames: Readonly<Record<keyof RateLimiter.Options, true>> = {
  burst: true,
  onStoreFailure: true,
  perAddress: true,
  perKey: true,
  suspension: true,
}

const checkNames = ({ rateLimits = {}, webhooks = {}, ...options }: Options) =>
  Effect.all([
    Setting.known("", options, optionNames),
    Setting.known("webhooks", webhooks, webhookOptionNames),
    Setting.known("rateLimits", rateLimits, rateLimitOptionNames),
  ])

/**
 * The services on the given stores. Deliveries are dispatched for as long as the layer lives. Fails
 * with `InvalidInput`, which names the option, where an option is not what it has to be.
 */
export const layer = (options: Options = {}): Layer.Layer<Services, InvalidInput, Stores> => {
  const { transport = WebhookTransport.layerFetch } = options
  const operations = Layer.mergeAll(
    Memberships.Memberships.layer(options),
    Webhooks.Webhooks.layer(options.webhooks),
    ApiKeys.ApiKeys.layer(options),
    Events.layer,
  )
  const services = Handler.Handler.layer(options).pipe(
    Layer.provideMerge(RateLimiter.RateLimiter.layer(options.rateLimits)),
    Layer.provideMerge(operations),
    Layer.provide(Dispatcher.Dispatcher.layer(options.webhooks)),
    Layer.provide(transport),
    Layer.provide(AddressPolicy.AddressPolicy.layer(options.webhooks)),
    Layer.provide(Hooks.layer(options)),
  )
  const check = Effect.andThen(checkNames(options), Setting.layer("transport", transport))
  return Layer.unwrap(Effect.as(check, services))
}

/** A service with promises in the place of effects. */
export type Promised<Service> = {
  readonly [Name in keyof Service]: Service[Name] extends (
    ...args: infer Args
  ) => Effect.Effect<infer Value, infer _Error>
    ? (...args: Args) => Promise<Value>
    : never
}

/** Tenure for hosts that know nothing of Effect. A promise rejects with the typed errors. */
export interface Promises {
  readonly memberships: Promised<Memberships.Memberships["Service"]>
  readonly webhooks: Promised<Webhooks.Webhooks["Service"]>
  readonly apiKeys: Promised<ApiKeys.ApiKeys["Service"]>
  readonly events: Promised<Events["Service"]>
  /** Answers a request; never rejects. */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>
  /** Tells whether a path (without the query) is one of the API's. */
  readonly owns: (path: string) => boolean
  /** What precedes `/v2` in every path. */
  readonly basePath: string
  /** The longest request body, in bytes. */
  readonly maxBodyBytes: number
  /** Tells whether the store answers, and requests with it; never rejects. */
  readonly isReady: () => Promise<boolean>
}

/** What adapters need of Tenure. */
export type Mountable = Pick<Promises, "handle" | "owns" | "basePath" | "maxBodyBytes">

/** Looks for a membership that need not be there. */
const isReady = (memberships: Memberships.Memberships["Service"]): Effect.Effect<boolean> =>
  memberships.find({ projectId: "-", userId: "0" }).pipe(
    Effect.match({
      onSuccess: () => true,
      onFailure: ({ _tag }) => _tag === "MembershipNotFound",
    }),
    Effect.catchDefect(() => Effect.succeed(false)),
  )

const promisesBy = Effect.fnUntraced(function* (run: Draining.Run) {
  const lift =
    <Args extends ReadonlyArray<unknown>, A, E>(f: (...args: Args) => Effect.Effect<A, E>) =>
    (...args: Args): Promise<A> =>
      run(f(...args))
  const memberships = yield* Memberships.Memberships
  const webhooks = yield* Webhooks.Webhooks
  const apiKeys = yield* ApiKeys.ApiKeys
  const events = yield* Events
  const handler = yield* Handler.Handler
  return {
    memberships: {
      createProject: lift(memberships.createProject),
      grant: lift(memberships.grant),
      extend: lift(memberships.extend),
      extendAll: lift(memberships.extendAll),
      end: lift(memberships.end),
      find: lift(memberships.find),
      list: lift(memberships.list),
      history: lift(memberships.history),
    },
    webhooks: {
      create: lift(webhooks.create),
      list: lift(webhooks.list),
      delete: lift(webhooks.delete),
      rotateSecret: lift(webhooks.rotateSecret),
      verificationKey: lift(webhooks.verificationKey),
      enable: lift(webhooks.enable),
      ping: lift(webhooks.ping),
      deliveries: lift(webhooks.deliveries),
      replay: lift(webhooks.replay),
      replayFailed: lift(webhooks.replayFailed),
    },
    apiKeys: {
      issue: lift(apiKeys.issue),
      revoke: lift(apiKeys.revoke),
      list: lift(apiKeys.list),
      authenticate: lift(apiKeys.authenticate),
    },
    events: { publish: lift(events.publish) },
    handle: lift(handler.handle),
    owns: handler.owns,
    basePath: handler.basePath,
    maxBodyBytes: handler.maxBodyBytes,
    isReady: lift(() => isReady(memberships)),
  } satisfies Promises
})

/** The services of an Effect host, with promises: what adapters mount. */
export const promises: Effect.Effect<Promises, never, Services> = Effect.flatMap(
  Effect.context<Services>(),
  (services) => promisesBy(Effect.runPromiseWith(services)),
)

/** Tenure as a host holds it. */
export interface Tenure extends Promises {
  /**
   * Waits for the calls under way, ten seconds at most, stops dispatching, and lets go of the stores.
   * It may be called again. Requests that come later may be answered 503.
   */
  readonly close: () => Promise<void>
}

/**
 * Makes Tenure on the given stores, and starts to deliver.
 *
 * @param options.stores - where everything is kept, such as `memory()` of `@tenure/memory`
 * @returns a promise that rejects with `InvalidInput`, which names the option, where an option is
 *   not what it has to be, and with the stores' own error where they cannot be set up
 * @example
 * ```ts
 * import * as Tenure from "@tenure/core/Tenure"
 * import { memory } from "@tenure/memory"
 *
 * const tenure = await Tenure.make({ stores: memory() })
 * await tenure.memberships.createProject("p1")
 * const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
 * ```
 */
export const make = async <E>({
  stores,
  ...options
}: Options & {
  /** Where everything is kept. */
  readonly stores: Layer.Layer<Stores, E>
}): Promise<Tenure> => {
  await Effect.runPromise(Setting.layer("stores", stores))
  const runtime = ManagedRuntime.make(Layer.provide(layer(options), stores))
  const services = await runtime.context()
  const { drain, run } = Draining.make(services)
  const closing = Effect.andThen(drain, runtime.disposeEffect)
  return {
    ...(await Effect.runPromiseWith(services)(promisesBy(run))),
    close: () => Effect.runPromise(closing),
  }
}
