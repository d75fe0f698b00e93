/** Answers HTTP requests in five steps: authenticate, limit, route, perform, respond. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { PathPattern } from "../api/declaration.ts"
import type { ApiError } from "../api/errors.ts"
import { networksOption } from "../base/address.ts"
import { ErrorReporter, callHost } from "../base/faults.ts"
import { traceparentOfHeaders } from "../base/headers.ts"
import * as Setting from "../base/setting.ts"
import { type Moment, currentMoment, momentAt, readMonotonic } from "../base/time.ts"
import type { ApiKeyId } from "../base/values.ts"
import type { Feed } from "../events/feed.ts"
import type { Listeners } from "../events/listeners.ts"
import type { Activity } from "../health/activity.ts"
import type { Status } from "../health/status.ts"
import { type ApiKeyActs, ApiKeys } from "../keys/api-keys.ts"
import type { Authenticate, Principal } from "../keys/identity.ts"
import { Tickets } from "../keys/tickets.ts"
import { type LimitDecision, RateLimiter } from "../limits/rate-limiter.ts"
import { MembershipActs } from "../memberships/membership-acts.ts"
import { Observer } from "../telemetry/observer.ts"
import { Tracing } from "../telemetry/tracing.ts"
import type { EventActs, Events } from "../webhooks/published-events.ts"
import type { WebhookActs } from "../webhooks/webhooks.ts"
import { makeApiKeyOperations, makeIdentityOperations, makeRealtimeOperations } from "./api-keys.ts"
import { type Authentication, makeAuthentication } from "./authentication.ts"
import { makeEventOperations } from "./events.ts"
import { performWithIdempotency } from "./idempotency.ts"
import { makeMembershipOperations } from "./memberships.ts"
import { type Operations, type OperationsOn } from "./operation.ts"
import { makeAuditOperations, makeProjectOperations } from "./projects.ts"
import type { RealtimeSession, WebSocketHandshake } from "./realtime.ts"
import {
  type ApiRequest,
  makeClientAddress,
  makeScheme,
  makeRequestId,
  makeUntrustedPeer,
  readApiRequest,
  requestIdOption,
} from "./request.ts"
import {
  type ApiResponse,
  type OperationResult,
  type Outcome,
  type RawReply,
  type RequestSubject,
  respond,
  toOutcome,
} from "./response.ts"
import { type BodyLimit, type RouteMatch, apiParts, makeBodyLimit, makeRoutes } from "./routes.ts"
import { type RoutedCall, preferProjectNotFound, routeRequest } from "./routing.ts"
import { makeStatusOperations } from "./service-info.ts"
import { makeWebhookOperations } from "./webhooks.ts"

/** Returns the error for a request refused by the limiter. */
type RefusalOf = (decision: LimitDecision, keyId: ApiKeyId | undefined) => ApiError | undefined

/** Reports refusals to an observer. */
const makeRefusal =
  (observer: Observer): RefusalOf =>
  (decision, keyId) => {
    switch (decision._tag) {
      case "Admitted":
        return undefined
      case "Refused":
        observer.refused?.({ by: decision.by, keyId })
        return { _tag: "RateLimited", retryAfter: decision.retryAfter }
      case "Unavailable":
        return { _tag: "StoreUnavailable", cause: undefined }
    }
  }

/** Makes the operations for the API's documentation. */
type DocsOperations = Effect.Effect<OperationsOn<"docs">>

/**
 * @param renewal - returns a function that authenticates the request again
 */
const makeAllOperations = Effect.fnUntraced(function* (
  settings: HandlerSettings,
  docs: DocsOperations,
  renewal: Authentication["renewal"],
) {
  const { maxBodyBytes } = settings
  return {
    ...(yield* makeMembershipOperations(maxBodyBytes)),
    ...(yield* makeProjectOperations(maxBodyBytes)),
    ...(yield* makeWebhookOperations(maxBodyBytes)),
    ...(yield* makeEventOperations(maxBodyBytes, renewal)),
    ...(yield* makeApiKeyOperations(maxBodyBytes)),
    ...(yield* makeRealtimeOperations(maxBodyBytes)),
    ...makeIdentityOperations(maxBodyBytes),
    ...(yield* makeAuditOperations(maxBodyBytes)),
    ...(yield* makeStatusOperations(maxBodyBytes)),
    ...(yield* docs),
  } satisfies Operations
})

/** An admitted connection in the request log. */
const switching: RawReply = { _tag: "Verbatim", status: 101, headers: {}, body: "" }

/** Logs that a peer's `X-Forwarded-For` is ignored. */
const logUntrusted = (peer: string): Effect.Effect<void> =>
  Effect.logWarning(
    `X-Forwarded-For from ${peer} is ignored, because trustedProxies does not contain this address. If it is your proxy's, all clients behind it count as one address for the rate limits: add its network to trustedProxies, in the bundled server TRUSTED_PROXIES. If not, a client has set the field, and nothing needs to be done. This is said once.`,
  )

/** The parts shared with the decisions on other requests. */
interface Shared {
  readonly addressOf: (request: ApiRequest) => string
  readonly authentication: Authentication
  readonly refusalOf: RefusalOf
}

/** @returns a function that takes a callback for an admitted connection */
const makeConnect = Effect.fnUntraced(function* ({ addressOf, authentication, refusalOf }: Shared) {
  const faults = yield* ErrorReporter
  const limiter = yield* RateLimiter
  const context = yield* Effect.context<Listeners | Scope.Scope>()
  // Loaded with the first connection: many programs have none.
  const loaded = yield* Effect.cached(
    Effect.gen(function* () {
      const { checkHandshake, makeRealtime } = yield* Effect.promise(() => import("./realtime.ts"))
      return { checkHandshake, ...(yield* makeRealtime(authentication.renewal)) }
    }).pipe(Effect.provideContext(context)),
  )

  return (opened: (session: RealtimeSession) => void): DecideRequest =>
    Effect.fnUntraced(function* (request, requestId, now): Effect.fn.Return<Answered> {
      const address = addressOf(request)
      const decision = yield* limiter.begin(address, now).take(undefined)
      const { report } = decision
      const refusal = refusalOf(decision, undefined)
      if (refusal !== undefined) {
        return { address, keyId: undefined, report, outcome: Result.fail(refusal) }
      }
      let keyId: ApiKeyId | undefined
      const admitted = Effect.flatMap(loaded, ({ admit, checkHandshake }) => {
        // A failed handshake uses up no ticket.
        const identified = Effect.andThen(checkHandshake(request), authentication.identify(request))
        return Effect.flatMap(identified, (principal) => {
          ;({ keyId } = principal)
          return admit({ request, requestId, principal })
        })
      })
      const outcome = yield* toOutcome(faults, requestId, admitted)
      return {
        address,
        keyId,
        report,
        outcome: Result.map(outcome, (session) => {
          opened(session)
          return switching
        }),
      }
    })
})

/** A request's response, with facts for the access log. */
interface Answered extends Pick<AccessRecord, "address" | "keyId"> {
  readonly report: LimitDecision["report"]
  readonly outcome: Outcome<OperationResult>
  /** The route found at the request's path, if one was looked for. */
  readonly found?: RouteMatch | undefined
}

/** A request's client, as far as known. */
interface Sender extends Pick<Answered, "address" | "keyId"> {
  readonly principal: Outcome<Principal>
}

/**
 * Decides on the answer to a request.
 *
 * @param now - when the request came
 */
type DecideRequest = (
  request: ApiRequest,
  requestId: string,
  now: Moment,
) => Effect.Effect<Answered>

/** A response's record for an access log. It contains no secrets. */
export interface AccessRecord extends RequestSubject {
  /** The status code of the response. */
  readonly status: number
  /** How long the response took, in milliseconds. */
  readonly durationMillis: number
  /**
   * The client's address, as the limits count it: an IPv4 address, an IPv6 address's /64, or `local` if
   * the host does not know it.
   */
  readonly address: string
  /** The request's API key if it is valid, or the key id returned by the host's authentication. */
  readonly keyId: ApiKeyId | undefined
}

// Segments that every URL parser takes literally: nothing encoded, neither "." nor "..".
const basePathPattern = /^(\/(?!\.{1,2}(\/|$))[\w\-.~!$&'()*+,;=:@]+)*$/

/** Reads a base path, without a slash at its end. */
const parseBasePath = (given: unknown): string | undefined => {
  const path = typeof given === "string" ? given.replace(/\/$/, "") : "?"
  return basePathPattern.test(path) ? path : undefined
}

/** Options for the HTTP API. */
export const handlerOptions = Setting.object({
  /** The prefix before `/v2` in every path. Default: `""`. */
  basePath: Setting.withDefault(
    Setting.custom<string>('a path without encoded characters, such as "/api"', parseBasePath),
    "",
  ),
  /** Networks of trusted proxies, in CIDR notation: their `X-Forwarded-For` counts. Default: `[]`. */
  trustedProxies: Setting.withDefault(networksOption, []),
  /**
   * The served part of the API: `"contract"` for setting end dates and for registering, listing and
   * deleting webhooks; `"all"` also for everything else. Default: `"all"`.
   */
  api: Setting.withDefault(Setting.oneOf(apiParts), "all"),
  /**
   * Whether to serve the OpenAPI document at `/v2/openapi.json`, the AsyncAPI document at
   * `/v2/asyncapi.json` and a page at `/v2/docs`, without a key and only with the whole API. Default:
   * `true`.
   */
  docs: Setting.withDefault(Setting.boolean, true),
  /**
   * The header field with the request id, 1 to 128 visible ASCII characters, for responses, logs, the
   * audit trail and events. Clients choose the id unless a proxy overwrites it. By default, and without
   * a valid one, the id is a new UUID.
   */
  requestIdHeader: Setting.optional(requestIdOption),
  /** The longest request body, in bytes, except for an import's. Default: `65536`. */
  maxBodyBytes: Setting.withDefault(Setting.integer(), 65_536),
  /**
   * How many requests in a row may be refused by rate limits on one connection before it is closed,
   * in hosts on Node. Default: `100`.
   */
  maxRefusals: Setting.withDefault(Setting.integer(), 100),
  /**
   * The host's own authentication in place of API keys: these are then ignored. An adapter's option
   * with this name receives the host's request and takes precedence over this one.
   */
  authenticate: Setting.callback<Authenticate<ApiRequest>>(),
  /**
   * Called with a record for every response. Errors thrown by the function are logged and otherwise
   * ignored.
   */
  onResponse: Setting.callback<(record: AccessRecord) => void>(),
})

/** The options as a host passes them. */
export interface HandlerOptions extends Setting.InputOf<typeof handlerOptions> {}

/** The options as the library uses them. */
export interface HandlerSettings extends Setting.OutputOf<typeof handlerOptions> {}

/** Answers requests. */
export class Handler extends Context.Service<
  Handler,
  {
    /** The prefix before `/v2` in every path. */
    readonly basePath: string
    /** Each path's pattern, for host routers. The base path is not part of it. */
    readonly patterns: ReadonlyArray<PathPattern>
    /** Tells how to read a request's body, by its method and its path (without the query). */
    readonly bodyLimit: (method: string, path: string) => BodyLimit
    /** How many requests in a row may be refused on one connection. Adapters then close it. */
    readonly maxRefusals: number
    /**
     * Tells whether a path (without the query) belongs to the API. A middleware passes all others on to
     * its host.
     */
    readonly owns: (path: string) => boolean
    /** Answers a request. Never fails: errors and defects are responses too. */
    readonly handle: (request: ApiRequest) => Effect.Effect<ApiResponse>
    /** Tells whether a path (without the query) is for WebSocket connections. */
    readonly connectsAt: (path: string) => boolean
    /** Answers a request for a connection. Never fails. */
    readonly connect: (request: ApiRequest) => Effect.Effect<WebSocketHandshake>
    /** Answers a request 503, without a store, because it arrived after closing began. */
    readonly refuse: (request: ApiRequest) => Effect.Effect<ApiResponse>
  }
>()("@tenure/core/Handler") {
  static readonly layer = (
    settings: HandlerSettings,
    docs: DocsOperations,
  ): Layer.Layer<
    Handler,
    never,
    | ApiKeyActs
    | ApiKeys
    | Tickets
    | RateLimiter
    | MembershipActs
    | Status
    | Activity
    | WebhookActs
    | EventActs
    | Events
    | Feed
    | Listeners
  > => Layer.effect(Handler, make(settings, docs))
}

const make = Effect.fnUntraced(function* (settings: HandlerSettings, docs: DocsOperations) {
  const { basePath, maxBodyBytes, maxRefusals, onResponse } = settings
  const routes = makeRoutes(settings.api, settings.docs)
  const faults = yield* ErrorReporter
  const observer = yield* Observer
  const tracing = yield* Tracing
  const isTimed = onResponse !== undefined || observer.answered !== undefined
  const crypto = yield* WebCrypto
  const limiter = yield* RateLimiter
  const authentication = makeAuthentication(yield* ApiKeys, yield* Tickets, settings.authenticate)
  const addressOf = makeClientAddress(settings.trustedProxies)
  const untrustedPeerOf = makeUntrustedPeer(settings.trustedProxies)
  const schemeOf = makeScheme(settings.trustedProxies)
  const requestIdOf = makeRequestId(settings.requestIdHeader, () => crypto.randomUUID())
  const { findProject } = yield* MembershipActs
  const refusalOf = makeRefusal(observer)
  const operations = yield* makeAllOperations(settings, docs, authentication.renewal)
  const connecting = yield* makeConnect({ addressOf, authentication, refusalOf })
  const perform = (
    requestId: string,
    routed: Outcome<RoutedCall>,
  ): Effect.Effect<Outcome<OperationResult>> => {
    if (Result.isFailure(routed)) return Effect.succeed(Result.fail(routed.failure))
    const call = routed.success
    const performed = performWithIdempotency(call, operations[call.operation])
    return toOutcome(faults, requestId, preferProjectNotFound(call, performed, findProject))
  }

  /** Finds the requested operation. */
  const find = (
    request: ApiRequest,
    requestId: string,
    principal: Outcome<Principal>,
    found: RouteMatch | undefined,
  ): Outcome<RoutedCall> => {
    const isRead = request.body._tag !== "Unreadable"
    return isRead && found === undefined && routes.isRealtime(request.path, basePath)
      ? Result.fail({ _tag: "UpgradeRequired" })
      : routeRequest(request, requestId, principal, found)
  }

  // Without generators, up to the operation: each request takes these steps.

  /** Decides on the answer to a request, once its sender is known. */
  const decideFor = (
    request: ApiRequest,
    requestId: string,
    { address, keyId, principal }: Sender,
    decision: LimitDecision,
  ): Effect.Effect<Answered> => {
    const { report } = decision
    const refusal = refusalOf(decision, keyId)
    if (refusal !== undefined) {
      return Effect.succeed({ address, keyId, report, outcome: Result.fail(refusal) })
    }
    const found = routes.match(request.path, basePath)
    const performed = perform(requestId, find(request, requestId, principal, found))
    return Effect.mapEager(performed, (outcome) => ({ address, keyId, report, outcome, found }))
  }

  /** Decides on the answer to a request. */
  const decide: DecideRequest = (request, requestId, now) => {
    const address = addressOf(request)
    const { refusal: early, take } = limiter.begin(address, now)
    // Guesses beyond an address's limit cost no look-up: only cached knowledge counts.
    const identify = early === undefined ? authentication.identify : authentication.recall
    const decided = Effect.flatMap(toOutcome(faults, requestId, identify(request)), (principal) => {
      const keyId = Result.isSuccess(principal) ? principal.success.keyId : undefined
      const sender = { address, keyId, principal }
      return early === undefined || keyId !== undefined
        ? Effect.flatMap(take(keyId), (taken) => decideFor(request, requestId, sender, taken))
        : decideFor(request, requestId, sender, early)
    })
    const untrusted = untrustedPeerOf(request)
    return untrusted === undefined ? decided : Effect.andThen(logUntrusted(untrusted), decided)
  }

  /** Adds the limiter's fields to a response, if it has any. */
  const withFields = (response: ApiResponse, { address, keyId, report }: Answered): ApiResponse => {
    const { fieldsOf } = limiter
    if (fieldsOf === undefined) return response
    const fields = fieldsOf(report, { address, keyId })
    return { ...response, headers: { ...response.headers, ...fields } }
  }

  // Made once: a new string is slow to find in a metrics table.
  const withBasePath: ReadonlyMap<PathPattern | undefined, string> = new Map(
    routes.patterns.map((pattern) => [pattern, basePath + pattern]),
  )

  /** Returns a path's pattern, with the base path. */
  const routeOf = (path: string, found = routes.match(path, basePath)): string | undefined => {
    if (found !== undefined) return withBasePath.get(routes.patternOf(found))
    return routes.isRealtime(path, basePath) ? path : undefined
  }

  /** Reports a response to the host. */
  const reportResponse = (
    request: ApiRequest,
    subject: RequestSubject,
    { address, found, keyId }: Answered,
    { status }: ApiResponse,
    durationMillis: number,
  ): Effect.Effect<void> => {
    if (observer.answered !== undefined) {
      const { method } = request
      const route = routeOf(request.path, found)
      const scheme = schemeOf(request)
      observer.answered({ method, route, scheme, status, durationMillis })
    }
    const record = { ...subject, status, durationMillis, address, keyId }
    return callHost("onResponse", onResponse, record)
  }

  /** Decides on the answer to a request once Tenure is closing. */
  const decideClosed: DecideRequest = (request, _requestId, now) =>
    Effect.succeed({
      address: addressOf(request),
      keyId: undefined,
      report: limiter.unserved(now),
      outcome: Result.fail({ _tag: "StoreUnavailable", cause: undefined }),
    })

  /** Answers a readable request, as decided. */
  const answer = (request: ApiRequest, decision: DecideRequest): Effect.Effect<ApiResponse> =>
    Clock.clockWith((clock) => {
      const start = readMonotonic(clock)
      const path = request.originalPath ?? request.path
      const subject = { requestId: requestIdOf(request), method: request.method, path }
      const deciding = decision(request, subject.requestId, momentAt(start, clock))
      return Effect.flatMap(deciding, (decided) => {
        const { outcome, report } = decided
        const response = withFields(respond(subject, report, outcome), decided)
        if (!isTimed) return Effect.succeed(response)
        const durationMillis = readMonotonic(clock) - start
        return Effect.as(
          reportResponse(request, subject, decided, response, durationMillis),
          response,
        )
      })
    })

  /** Answers a request that no other step could answer, such as one with throwing getters. */
  const answerDefect = (defect: unknown): Effect.Effect<ApiResponse> => {
    const subject = { requestId: crypto.randomUUID(), method: "", path: "" }
    return Effect.andThen(
      faults.defect("A request ended in a defect", Cause.die(defect), subject.requestId),
      Effect.map(currentMoment, (now) =>
        respond(subject, limiter.unserved(now), Result.fail({ _tag: "InternalError" })),
      ),
    )
  }

  /** Answers a request as it is decided, even if a step is defective. */
  const answerAlways = (request: ApiRequest, decision: DecideRequest) =>
    Effect.catchDefect(
      Effect.suspend(() => answer(readApiRequest(request), decision)),
      answerDefect,
    )

  const handle: Handler["Service"]["handle"] = (request) => answerAlways(request, decide)

  /** Answers a request in a span. Effects such as events continue the span's trace. */
  const handleTraced =
    ({ serve }: Tracing): typeof handle =>
    (given) =>
      Effect.suspend(() => {
        const request = readApiRequest(given)
        const { headers, method, path } = request
        const traceparent = traceparentOfHeaders(headers)
        const scheme = schemeOf(request)
        return serve({ method, route: routeOf(path), scheme, traceparent }, (own) =>
          handle({ ...request, headers: { ...headers, traceparent: own } }),
        )
      })

  return Handler.of({
    basePath,
    patterns: routes.patterns,
    bodyLimit: makeBodyLimit(routes, basePath, maxBodyBytes),
    maxRefusals,
    owns: (path) => routes.match(path, basePath) !== undefined || routes.isRealtime(path, basePath),
    connectsAt: (path) => routes.isRealtime(path, basePath),
    connect: (request) =>
      Effect.suspend(() => {
        let session: RealtimeSession | undefined
        const decision = connecting((opened) => (session = opened))
        return Effect.map(answerAlways(request, decision), (response) => ({ response, session }))
      }),
    handle: tracing === undefined ? handle : handleTraced(tracing),
    refuse: (request) => answerAlways(request, decideClosed),
  })
})
