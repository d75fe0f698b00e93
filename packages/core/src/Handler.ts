/** The HTTP behaviour, whole and free of any host: a request in, a response out. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ApiError from "./ApiError.ts"
import type { ApiKeyId } from "./ApiKey.ts"
import { ApiKeys } from "./ApiKeys.ts"
import type { ApiRequest } from "./ApiRequest.ts"
import * as Envelope from "./Envelope.ts"
import { single } from "./HeaderFields.ts"
import { Hooks } from "./Hooks.ts"
import * as Identity from "./Identity.ts"
import * as Callback from "./internal/callback.ts"
import * as ClientAddress from "./internal/clientAddress.ts"
import * as Networks from "./internal/networks.ts"
import * as Operations from "./internal/operations.ts"
import * as Route from "./internal/route.ts"
import { InvalidInput } from "./InvalidInput.ts"
import type { Memberships } from "./Memberships.ts"
import { RateLimiter, type Report } from "./RateLimiter.ts"
import * as Setting from "./Setting.ts"
import type { Webhooks } from "./Webhooks.ts"

/** What is told of every response: enough for an access log, and nothing secret. */
export interface AccessRecord {
  readonly requestId: string
  readonly method: string
  readonly path: string
  readonly status: number
  readonly durationMillis: number
  /** The key the request came with, if that is valid, or what the host's authentication gave for it. */
  readonly keyId: ApiKeyId | undefined
}

/** Options of the HTTP behaviour. */
export interface Options {
  /** What precedes `/v2` in every path, such as `/api`; nothing by default. */
  readonly basePath?: string | undefined
  /** Networks of proxies whose `X-Forwarded-For` counts, in CIDR notation; none by default. */
  readonly trustedProxies?: ReadonlyArray<string> | undefined
  /** The longest request body, in bytes; 65,536 by default. */
  readonly maxBodyBytes?: number | undefined
  /**
   * The host's own authentication in place of API keys, which are not looked at then; none by default.
   * An adapter may have one of its own, that is given the host's request, and comes before this.
   */
  readonly authenticate?: Identity.Authenticate<ApiRequest> | undefined
  /** Called with a record of every response; what it throws is logged and otherwise ignored. None by default. */
  readonly onResponse?: ((record: AccessRecord) => void) | undefined
}

/** Answers requests. */
export class Handler extends Context.Service<
  Handler,
  {
    /** What precedes `/v2` in every path. */
    readonly basePath: string
    /** The longest request body, in bytes: adapters read no further. */
    readonly maxBodyBytes: number
    /**
     * Tells whether a path (without the query) is one of the API's, so that a middleware knows
     * which requests to pass on to its host.
     */
    readonly owns: (path: string) => boolean
    /** Answers a request. Every failure is a response. */
    readonly handle: (request: ApiRequest) => Effect.Effect<Envelope.ApiResponse>
  }
>()("@tenure/core/Handler") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<Handler, InvalidInput, ApiKeys | RateLimiter | Memberships | Webhooks> =>
    Layer.effect(Handler, make(options))
}

/** Whose a request is, or why that cannot be said. */
type Caller =
  | { readonly _tag: "Known"; readonly client: Identity.Client }
  | { readonly _tag: "Unknown"; readonly error: ApiError.ApiError }

const unknown = (error: ApiError.ApiError): Caller => ({ _tag: "Unknown", error })

const known = (client: Identity.Client): Caller => ({ _tag: "Known", client })

const unauthorized = unknown({ _tag: "Unauthorized" })

const keyIdOf = (caller: Caller): ApiKeyId | undefined =>
  caller._tag === "Known" ? caller.client.keyId : undefined

// The scheme is case-insensitive (RFC 9110, 11.1).
const bearer = /^bearer +(.*[^ ]) *$/i

const respond = (
  subject: Envelope.Subject,
  { limit, remaining, reset }: Report,
  outcome: Envelope.Success | ApiError.ApiError,
): Envelope.ApiResponse => {
  const headers = {
    "Content-Type": "application/json",
    // Some responses hold secrets.
    "Cache-Control": "no-store",
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(reset),
  }
  if (outcome._tag === "Success") {
    return { status: 200, headers, body: Envelope.success(subject, outcome) }
  }
  const failure = ApiError.describe(outcome)
  return {
    status: failure.status,
    headers: { ...headers, ...failure.headers },
    body: Envelope.failure(subject, outcome, failure),
  }
}

// Segments that mean themselves in every URL: nothing encoded, neither "." nor "..".
const basePathPattern = /^(\/(?!\.{1,2}(\/|$))[\w\-.~!$&'()*+,;=:@]+)*$/

const parseBasePath = (text: string): Effect.Effect<string, InvalidInput> => {
  const path = String(text).replace(/\/$/, "")
  return basePathPattern.test(path)
    ? Effect.succeed(path)
    : Effect.fail(
        new InvalidInput({ field: "basePath", message: `basePath: "${text}" is no path` }),
      )
}

/** Asks a host whose a request is. What it throws is a defect of the host's. */
const ask = (authenticate: Identity.Authenticate<void>): Effect.Effect<Caller> =>
  Effect.suspend(() => {
    const answer = authenticate()
    return Predicate.isPromiseLike(answer) ? Effect.promise(() => answer) : Effect.succeed(answer)
  }).pipe(
    Effect.map((identity) =>
      // A host without types may say so by `null` or `false` as well.
      identity ? known(Identity.toClient(identity)) : unauthorized,
    ),
  )

const make = Effect.fnUntraced(function* (options: Options) {
  const onResponse = yield* Setting.callback("onResponse", options.onResponse)
  const hostAuthenticate = yield* Setting.callback("authenticate", options.authenticate)
  const hooks = yield* Hooks
  const maxBodyBytes = yield* Setting.count("maxBodyBytes", options.maxBodyBytes ?? 65_536)
  const crypto = yield* WebCrypto
  const apiKeys = yield* ApiKeys
  const limiter = yield* RateLimiter
  const perform = yield* Operations.make(maxBodyBytes)
  const basePath = yield* parseBasePath(options.basePath ?? "")
  const proxies = yield* Networks.parse("trustedProxies", options.trustedProxies ?? [])
  const addressOf = ClientAddress.make(proxies)

  /** Makes what turns failures into what the client is told; of a defect, that is nothing. */
  const recovering = <B>(failed: (error: ApiError.ApiError) => B) =>
    Effect.catchCause((cause: Cause.Cause<ApiError.ApiError>) => {
      const failure = Cause.findError(cause)
      if (Result.isFailure(failure) || Cause.hasDies(cause)) {
        return Effect.as(
          hooks.defect("A request ended in a defect", cause),
          failed({ _tag: "InternalError" }),
        )
      }
      const error = failure.success
      return error._tag === "StoreUnavailable"
        ? Effect.as(hooks.failure("The store does not answer", error.cause), failed(error))
        : Effect.succeed(failed(error))
    })

  // Made once, and not for each request.
  const orUnknown = recovering(unknown)
  const orError = recovering((error) => error)

  const byToken = Effect.fnUntraced(function* ({ headers }: ApiRequest) {
    const field = single(headers, "authorization")
    if (field._tag === "Repeated") {
      const message = "The Authorization header was sent more than once."
      return unknown({ _tag: "MalformedRequest", message })
    }
    const token = field._tag === "Value" ? bearer.exec(field.value)?.[1] : undefined
    if (token === undefined) return unauthorized
    const key = yield* apiKeys.authenticate(token)
    return key === undefined ? unauthorized : known({ keyId: key.id, projects: key.projects })
  })

  const authenticate = (request: ApiRequest) => {
    if (request.body._tag === "Unreadable") return Effect.succeed(unknown(request.body.error))
    if (request.authenticate !== undefined) return ask(request.authenticate)
    if (hostAuthenticate !== undefined) return ask(() => hostAuthenticate(request))
    return byToken(request)
  }

  /** What a request comes to that is within its limits. */
  const outcomeOf = (request: ApiRequest, requestId: string, caller: Caller) => {
    const route = Route.match(request.path, basePath)
    if (request.body._tag === "Unreadable") return Effect.fail(request.body.error)
    if (route === undefined) return Effect.fail({ _tag: "RouteNotFound" } as const)
    return caller._tag === "Known"
      ? perform({ request, requestId, client: caller.client, route })
      : Effect.fail(caller.error)
  }

  const answer = Effect.fnUntraced(function* (
    request: ApiRequest,
    requestId: string,
    caller: Caller,
  ) {
    const keyId = keyIdOf(caller)
    const decision = yield* limiter.take({ address: addressOf(request), keyId })
    const path = request.originalPath ?? request.path
    const subject = { requestId, method: request.method, path }
    switch (decision._tag) {
      case "Refused": {
        const { report, retryAfter } = decision
        return respond(subject, report, { _tag: "RateLimited", retryAfter })
      }
      case "Unavailable":
        return respond(subject, decision.report, { _tag: "StoreUnavailable", cause: undefined })
      case "Admitted": {
        const outcome = yield* orError(outcomeOf(request, requestId, caller))
        return respond(subject, decision.report, outcome)
      }
    }
  })

  const handle = Effect.fnUntraced(function* (request: ApiRequest) {
    const start = yield* Clock.monotonicTimeNanos
    const requestId = crypto.randomUUID()
    const caller = yield* orUnknown(authenticate(request))
    const response = yield* answer(request, requestId, caller)
    if (onResponse !== undefined) {
      yield* Callback.call("onResponse", onResponse, {
        requestId,
        method: request.method,
        path: request.originalPath ?? request.path,
        status: response.status,
        durationMillis: Number((yield* Clock.monotonicTimeNanos) - start) / 1_000_000,
        keyId: keyIdOf(caller),
      })
    }
    return response
  })

  return Handler.of({
    basePath,
    maxBodyBytes,
    owns: (path) => Route.match(path, basePath) !== undefined,
    handle,
  })
})
