/** Calls the API at a server or in this process, within its rate limits, and again after outages. */

import { setTimeout } from "node:timers/promises"
import { type CallOptions, type Client, type PageList, createClient } from "@tenure/client"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Failure, callFailure, usageFailure } from "./failure.ts"
import { type ConnectionTarget, type DatabaseTarget, resolveTarget } from "./target.ts"

type PaceFetch = typeof globalThis.fetch

// Left for the key's other users.
const spare = 2

/**
 * How long to wait before the next request, in milliseconds: as long as it takes until one more request
 * is allowed, if hardly any is left.
 *
 * @param now - milliseconds since the epoch
 */
export const pauseAfterResponse = (headers: Pick<Headers, "get">, now: number): number => {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    Number(headers.get(`x-ratelimit-${name}`) ?? NaN),
  )
  if (limit === undefined || remaining === undefined || reset === undefined) return 0
  const isScarce = remaining <= spare && remaining < limit
  if (!isScarce || Number.isNaN(reset)) return 0
  return Math.max(0, (reset * 1000 - now) / (limit - remaining))
}

/** Delays requests as the responses before them ask for. */
export const rateLimited = (fetch: PaceFetch): PaceFetch => {
  let next = 0
  return async (input, init) => {
    const wait = next - Date.now()
    if (wait > 0) await setTimeout(wait, undefined, { signal: init?.signal ?? undefined })
    const response = await fetch(input, init)
    const now = Date.now()
    next = now + pauseAfterResponse(response.headers, now)
    return response
  }
}

/** Sends a request, as `fetch` does. */
type Fetch = typeof globalThis.fetch

// Someone waiting for a command should soon learn about an outage. Long work has retries in addition.
const maxRetries = 2

/** The API. */
interface Shape {
  readonly client: Client
  /** The number of replayed responses. */
  readonly repetitions: () => number
  /** Converts an error from a call, with the cause if the API is in this process. */
  readonly failureOf: (error: unknown) => Failure
  /** The latest response's header fields, and its time in milliseconds since the epoch. */
  readonly latest: () => { readonly headers: Headers; readonly at: number } | undefined
}

/** Explains an invalid setting by its name in the command. */
const explain = (fault: unknown): Failure =>
  fault instanceof TypeError
    ? usageFailure(fault.message.replace(/^baseUrl/, "The URL").replace(/^token/, "The token"))
    : callFailure(fault)

/** Fails unless text is a server's URL. */
export const checkUrl = (baseUrl: string): Effect.Effect<void, Failure> =>
  Effect.asVoid(Effect.try({ try: () => createClient({ baseUrl }), catch: explain }))

const shapeOf = (
  baseUrl: string,
  token: string,
  fetch: Fetch,
  failureOf = callFailure,
): Effect.Effect<Shape, Failure> => {
  let repetitions = 0
  let latest: ReturnType<Shape["latest"]>
  const counting: Fetch = async (input, init) => {
    const response = await fetch(input, init)
    latest = { headers: response.headers, at: Date.now() }
    if (response.headers.get("idempotent-replayed") === "true") repetitions += 1
    return response
  }
  return Effect.try({
    try: () => ({
      client: createClient({ baseUrl, token, fetch: counting, maxRetries }),
      repetitions: () => repetitions,
      failureOf,
      latest: () => latest,
    }),
    catch: explain,
  })
}

/** A server's URL for requests that do not leave the process. It is never resolved. */
export const nowhere = "http://tenure.invalid"

const ofDatabase = Effect.fnUntraced(function* (place: DatabaseTarget) {
  const { openInProcess: open } = yield* Effect.promise(() => import("./in-process.ts"))
  const { fetch, latestFault } = yield* open(place)
  return yield* shapeOf(nowhere, "none", fetch, (error) => {
    const failure = callFailure(error)
    const message = latestFault()
    return failure.status === 503 && message !== undefined
      ? new Failure({ ...failure, message })
      : failure
  })
})

const make = (place: ConnectionTarget): Effect.Effect<Shape, Failure, Scope.Scope> =>
  place._tag === "Server"
    ? shapeOf(place.url, place.token, rateLimited(globalThis.fetch))
    : ofDatabase(place)

/** The API, and facts about its responses. */
export class Api extends Context.Service<Api, Shape>()("@tenure/cli/Api") {
  static readonly layer = Layer.effect(Api, Effect.flatMap(resolveTarget, make))
}

/** Calls an operation. */
export const callApi = <A>(
  operation: (client: Client, options: CallOptions) => Promise<A>,
): Effect.Effect<A, Failure, Api> =>
  Effect.flatMap(Api, ({ client, failureOf }) =>
    Effect.tryPromise({
      try: (signal) => operation(client, { signal }),
      catch: failureOf,
    }),
  )

/** Requests a paged list, page after page. */
export const listed = <A>(
  operation: (client: Client) => PageList<A>,
): Stream.Stream<A, Failure, Api> =>
  Stream.unwrap(
    Effect.map(Api, ({ client, failureOf }) =>
      Stream.fromAsyncIterable(operation(client), failureOf),
    ),
  )

// Together about six minutes; a suspended key may be told to wait longer.
const maxAttempts = 15
const longestWait = 30

/** Returns the wait after a number of failed attempts, in seconds. */
const waitAfter = ({ retryAfter }: Failure, failures: number): number =>
  retryAfter ?? Math.min(longestWait, 2 ** (failures - 1))

/** Repeats a call during an outage. The call must be repeatable. */
export const retryUntilAvailable = <A, R>(
  call: Effect.Effect<A, Failure, R>,
  failures = 0,
): Effect.Effect<A, Failure, R> =>
  Effect.catchIf(
    call,
    ({ kind }) => kind === "unavailable" && failures + 1 < maxAttempts,
    (failure) =>
      Effect.andThen(
        Effect.sleep(`${waitAfter(failure, failures + 1)} seconds`),
        retryUntilAvailable(call, failures + 1),
      ),
  )
