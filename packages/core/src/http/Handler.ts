/** Answers HTTP requests in five steps: authenticate, limit, route, perform, respond. */

import * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { ApiKeyId } from "../base/ApiKeyId.ts"
import * as Callback from "../base/Callback.ts"
import { Faults } from "../base/Faults.ts"
import * as Moment from "../base/Moment.ts"
import * as Networks from "../base/Networks.ts"
import * as Setting from "../base/Setting.ts"
import * as Step from "../base/Step.ts"
import * as Traceparent from "../base/Traceparent.ts"
import type { Feed } from "../events/Feed.ts"
import type { Listeners } from "../events/Listeners.ts"
import type { Activity } from "../health/Activity.ts"
import type { Status } from "../health/Status.ts"
import { ApiKeys } from "../keys/ApiKeys.ts"
import type { Authenticate, Principal } from "../keys/Identity.ts"
import { Tickets } from "../keys/Tickets.ts"
import { type Decision, RateLimiter } from "../limits/RateLimiter.ts"
import { Memberships } from "../memberships/Memberships.ts"
import { Observer } from "../telemetry/Observer.ts"
import { Tracing } from "../telemetry/Tracing.ts"
import type { Events } from "../webhooks/Events.ts"
import type { Webhooks } from "../webhooks/Webhooks.ts"
import * as AllOperations from "./AllOperations.ts"
import { type Answer, closed, type Decide, unknownLimits } from "./Answer.ts"
import * as ApiRequest from "./ApiRequest.ts"
import * as Authentication from "./Authentication.ts"
import * as BodyLimit from "./BodyLimit.ts"
import * as ClientAddress from "./ClientAddress.ts"
import * as Connecting from "./Connecting.ts"
import * as Envelope from "./Envelope.ts"
import * as Idempotency from "./Idempotency.ts"
import * as MissingProject from "./MissingProject.ts"
import { type Outcome, settle } from "./Outcome.ts"
import type * as Realtime from "./Realtime.ts"
import * as Refusal from "./Refusal.ts"
import * as RequestId from "./RequestId.ts"
import * as Route from "./Route.ts"
import { route, type Routed } from "./Routing.ts"

/** A record of a response for an access log. It contains no secrets. */
export interface AccessRecord extends Envelope.Subject {
  readonly status: number
  readonly durationMillis: number
  /**
   * The client's address, as the limits count it: an IPv4 address, the /64 of an IPv6 address, or
   * `local` if the host does not know it.
   */
  readonly address: string
  /** The API key of the request if it is valid, or the key id that the host's authentication returned. */
  readonly keyId: ApiKeyId | undefined
}

// Segments that every reader of URLs takes as they are: nothing encoded, neither "." nor "..".
const basePathPattern = /^(\/(?!\.{1,2}(\/|$))[\w\-.~!$&'()*+,;=:@]+)*$/

/** Reads a base path, without a slash at its end. */
const parseBasePath = (given: unknown): string | undefined => {
  const path = typeof given === "string" ? given.replace(/\/$/, "") : "?"
  return basePathPattern.test(path) ? path : undefined
}

/** The options of the HTTP API. */
export const options = Setting.struct({
  /** What precedes `/v2` in every path. Default: `""`. */
  basePath: Setting.withDefault(
    Setting.make<string>('a path without encoded characters, such as "/api"', parseBasePath),
    "",
  ),
  /** Networks of proxies whose `X-Forwarded-For` is trusted, in CIDR notation. Default: `[]`. */
  trustedProxies: Setting.withDefault(Networks.setting, []),
  /**
   * Which part of the API is served: `"contract"` for setting end dates and for registering, listing
   * and deleting webhooks; `"all"` also for everything else. Default: `"all"`.
   */
  api: Setting.withDefault(Setting.oneOf(Route.parts), "all"),
  /**
   * Whether the whole API has its OpenAPI document at `/v2/openapi.json`, an AsyncAPI document of its
   * events at `/v2/asyncapi.json` and a page to read at `/v2/docs`, all without a key. Default: `true`.
   */
  docs: Setting.withDefault(Setting.flag, true),
  /**
   * The header field with the id of a request, for example `"x-request-id"`, if a proxy or the host
   * sets one. An id of 1 to 128 visible ASCII characters becomes the `request_id` of the response, the
   * log, the audit trail and the event. Without the field, or with another value, the id is a new UUID.
   * Clients choose the field unless a proxy overwrites it. By default, every id is a new UUID.
   */
  requestIdHeader: Setting.optional(RequestId.setting),
  /** The longest request body, in bytes, except for that of an import. Default: `65536`. */
  maxBodyBytes: Setting.withDefault(Setting.count(), 65_536),
  /**
   * How many requests in a row may be refused by rate limits on one connection before it is closed,
   * in hosts on Node. Default: `100`.
   */
  maxRefusals: Setting.withDefault(Setting.count(), 100),
  /**
   * The host's own authentication in place of API keys, which are then ignored. An adapter's option
   * of this name receives the host's request and takes precedence over this one.
   */
  authenticate: Setting.callback<Authenticate<ApiRequest.ApiRequest>>(),
  /**
   * Called with a record of every response. What the function throws is logged and otherwise ignored.
   */
  onResponse: Setting.callback<(record: AccessRecord) => void>(),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}

/** The options as the library uses them. */
export interface Settings extends Setting.Output<typeof options> {}

/** Answers requests. */
export class Handler extends Context.Service<
  Handler,
  {
    /** What precedes `/v2` in every path. */
    readonly basePath: string
    /** The pattern of each path, for routers of hosts. The base path is not part of it. */
    readonly patterns: ReadonlyArray<Route.Pattern>
    /** Tells how to read the body of a request, by its method and its path (without the query). */
    readonly bodyLimit: (method: string, path: string) => BodyLimit.BodyLimit
    /** How many requests in a row may be refused on one connection. Adapters then close it. */
    readonly maxRefusals: number
    /**
     * Tells whether a path (without the query) is one of the API's. A middleware passes all others
     * on to its host.
     */
    readonly owns: (path: string) => boolean
    /** Answers a request. Never fails: errors and defects are responses too. */
    readonly handle: (request: ApiRequest.ApiRequest) => Effect.Effect<Envelope.ApiResponse>
    /** Tells whether a path (without the query) is that of WebSocket connections. */
    readonly connectsAt: (path: string) => boolean
    /** Answers a request for a connection. Never fails. */
    readonly connect: (request: ApiRequest.ApiRequest) => Effect.Effect<Realtime.Handshake>
    /** Answers a request 503, without a store: one that comes after closing has begun. */
    readonly refuse: (request: ApiRequest.ApiRequest) => Effect.Effect<Envelope.ApiResponse>
  }
>()("@tenure/core/Handler") {
  static readonly layer = (
    settings: Settings = Setting.readSync(options),
  ): Layer.Layer<
    Handler,
    never,
    | ApiKeys
    | Tickets
    | RateLimiter
    | Memberships
    | Status
    | Activity
    | Webhooks
    | Events
    | Feed
    | Listeners
  > => Layer.effect(Handler, make(settings))
}

const make = Effect.fnUntraced(function* (settings: Settings) {
  const { basePath, maxBodyBytes, maxRefusals, onResponse } = settings
  const routes = Route.make(settings.api, settings.docs)
  const faults = yield* Faults
  const observer = yield* Observer
  const tracing = yield* Tracing
  const isTimed = onResponse !== undefined || observer.answered !== undefined
  const crypto = yield* WebCrypto
  const limiter = yield* RateLimiter
  const authentication = Authentication.make(yield* ApiKeys, yield* Tickets, settings.authenticate)
  const addressOf = ClientAddress.make(settings.trustedProxies)
  const requestIdOf = RequestId.make(settings.requestIdHeader, () => crypto.randomUUID())
  const { findProject } = yield* Memberships
  const refusalOf = Refusal.make(observer)
  const operations = yield* AllOperations.make(settings, authentication.renewal)
  const connecting = yield* Connecting.make({ addressOf, authentication, refusalOf })
  const perform = (
    requestId: string,
    routed: Outcome<Routed>,
    clock: Clock.Clock,
  ): Effect.Effect<Outcome<Envelope.Reply>> => {
    if (Result.isFailure(routed)) return Effect.succeed(Result.fail(routed.failure))
    const call = routed.success
    const performed = Idempotency.perform(call, operations[call.operation])
    const told = MissingProject.told(call, Step.begin(performed, clock), findProject)
    return settle(faults, requestId, told)
  }

  /** Finds out who sent a request: only by what is known already, if its address is refused. */
  const identify = (
    request: ApiRequest.ApiRequest,
    requestId: string,
    isRefused: boolean,
    clock: Clock.Clock,
  ): Effect.Effect<Outcome<Principal>> => {
    const { identify: ask, recall } = authentication
    return settle(faults, requestId, Step.begin((isRefused ? recall : ask)(request), clock))
  }

  /** Finds what a request asks for. */
  const find = (
    request: ApiRequest.ApiRequest,
    requestId: string,
    principal: Outcome<Principal>,
    found: Route.Match | undefined,
  ): Outcome<Routed> => {
    const isRead = request.body._tag !== "Unreadable"
    return isRead && found === undefined && routes.isRealtime(request.path, basePath)
      ? Result.fail({ _tag: "UpgradeRequired" })
      : route(request, requestId, principal, found)
  }

  /** Decides on the answer to a request. */
  const decide: Decide = (request, requestId, start, clock) => {
    const address = addressOf(request)
    // Guesses beyond the limit of an address cost no look-up.
    const early = limiter.refusalOf(address, Moment.at(start, clock))
    const identified = identify(request, requestId, early !== undefined, clock)
    return Effect.flatMapEager(identified, (principal) => {
      const keyId = Result.isSuccess(principal) ? principal.success.keyId : undefined
      const limited =
        early === undefined || keyId !== undefined
          ? limiter.take({ address, keyId })
          : Effect.succeed(early)
      return Effect.flatMapEager(Step.begin(limited, clock), (decision): Effect.Effect<Answer> => {
        const refusal = refusalOf(decision, keyId)
        const { report } = decision
        if (refusal !== undefined) {
          return Effect.succeed({ address, keyId, report, outcome: Result.fail(refusal) })
        }
        const found = routes.match(request.path, basePath)
        const performed = perform(requestId, find(request, requestId, principal, found), clock)
        return Effect.mapEager(performed, (outcome) => ({ address, keyId, report, outcome, found }))
      })
    })
  }

  /** Adds the fields of the limiter to a response, if it has any. */
  const withFields = (
    response: Envelope.ApiResponse,
    report: Decision["report"],
  ): Envelope.ApiResponse => {
    const { fieldsOf } = limiter
    if (fieldsOf === undefined) return response
    return { ...response, headers: { ...response.headers, ...fieldsOf(report) } }
  }

  // Made once: a text that is new is slow to find in a table of metrics.
  const withBasePath: ReadonlyMap<Route.Pattern | undefined, string> = new Map(
    routes.patterns.map((pattern) => [pattern, basePath + pattern]),
  )

  /** Returns the pattern of a path, with the base path. */
  const routeOf = (path: string, found = routes.match(path, basePath)): string | undefined => {
    if (found !== undefined) return withBasePath.get(routes.patternOf(found))
    return routes.isRealtime(path, basePath) ? path : undefined
  }

  /** Answers a request that was read, as it is decided. */
  const answer = (request: ApiRequest.ApiRequest, decision: Decide) =>
    Step.make((clock) => {
      const start = Moment.precise(clock)
      const path = request.originalPath ?? request.path
      const subject = { requestId: requestIdOf(request), method: request.method, path }
      return Effect.flatMapEager(decision(request, subject.requestId, start, clock), (decided) => {
        const { address, keyId, outcome, report } = decided
        const response = withFields(Envelope.respond(subject, report, outcome), report)
        if (!isTimed) return Effect.succeed(response)
        const { status } = response
        const { method } = request
        const durationMillis = Moment.precise(clock) - start
        if (observer.answered !== undefined) {
          const pattern = routeOf(request.path, decided.found)
          observer.answered({ method, route: pattern, status, durationMillis })
        }
        if (onResponse === undefined) return Effect.succeed(response)
        const record = { ...subject, status, durationMillis, address, keyId }
        const told = Callback.call("onResponse", onResponse, record)
        return Effect.mapEager(Step.begin(told, clock), () => response)
      })
    })

  /** Answers a request that no other step could answer, such as one with getters that throw. */
  const answerDefect = (defect: unknown): Effect.Effect<Envelope.ApiResponse> => {
    const subject = { requestId: crypto.randomUUID(), method: "", path: "" }
    return Effect.as(
      faults.defect("A request ended in a defect", Cause.die(defect), subject.requestId),
      Envelope.respond(subject, unknownLimits, Result.fail({ _tag: "InternalError" })),
    )
  }

  /** Answers a request as it is decided, even if a step is defective. */
  const answerAlways = (request: ApiRequest.ApiRequest, decision: Decide) =>
    Step.make((clock) => {
      const answered = Step.begin(answer(ApiRequest.read(request), decision), clock)
      return Step.isDone(answered) && Exit.isSuccess(answered)
        ? answered
        : Effect.catchDefect(answered, answerDefect)
    })

  const handle: Handler["Service"]["handle"] = (request) => answerAlways(request, decide)

  /** Answers a request in a span. What follows from it, such as events, continues the trace of the span. */
  const handleTraced =
    ({ serve }: Tracing): typeof handle =>
    (given) =>
      Effect.suspend(() => {
        const request = ApiRequest.read(given)
        const { headers, method, path } = request
        const traceparent = Traceparent.ofHeaders(headers)
        return serve({ method, route: routeOf(path), traceparent }, (own) =>
          handle({ ...request, headers: { ...headers, traceparent: own } }),
        )
      })

  return Handler.of({
    basePath,
    patterns: routes.patterns,
    bodyLimit: BodyLimit.make(routes, basePath, maxBodyBytes),
    maxRefusals,
    owns: (path) => routes.match(path, basePath) !== undefined || routes.isRealtime(path, basePath),
    connectsAt: (path) => routes.isRealtime(path, basePath),
    connect: (request) =>
      Effect.suspend(() => {
        let session: Realtime.Session | undefined
        const decision = connecting((opened) => (session = opened))
        return Effect.map(answerAlways(request, decision), (response) => ({ response, session }))
      }),
    handle: tracing === undefined ? handle : handleTraced(tracing),
    refuse: (request) => answerAlways(request, (read) => Effect.succeed(closed(addressOf(read)))),
  })
})
