/** The API, at a server or in this process on a database: every command is written once. */

import { type CallOptions, type Client, createClient, type List } from "@tenure/client"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Failure, ofCall, usage } from "../Failure.ts"
import { paced } from "./pace.ts"
import * as Place from "./Place.ts"

/** Sends a request, as `fetch` does. */
type Fetch = typeof globalThis.fetch

// Whoever waits for a command learns soon that a server is down. Long work tries again by itself.
const maxRetries = 2

/** The API. */
interface Shape {
  readonly client: Client
  /** How many requests have been answered as repetitions of others. */
  readonly repetitions: () => number
  /** The header fields of the latest response, and when it came, in milliseconds since the epoch. */
  readonly latest: () => { readonly headers: Headers; readonly at: number } | undefined
}

/** What is wrong with a setting, by the name that users of the command know. */
const explain = (fault: unknown): Failure =>
  fault instanceof TypeError
    ? usage(fault.message.replace(/^baseUrl/, "The URL").replace(/^token/, "The token"))
    : ofCall(fault)

/** Fails if text is not the URL of a server. */
export const checkUrl = (baseUrl: string): Effect.Effect<void, Failure> =>
  Effect.asVoid(Effect.try({ try: () => createClient({ baseUrl }), catch: explain }))

const shapeOf = (baseUrl: string, token: string, fetch: Fetch): Effect.Effect<Shape, Failure> => {
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
      latest: () => latest,
    }),
    catch: explain,
  })
}

// Never resolved: requests do not leave the process.
const nowhere = "http://tenure.invalid"

const ofDatabase = Effect.fnUntraced(function* (place: Place.Database) {
  const { open } = yield* Effect.promise(() => import("./inProcess.ts"))
  return yield* shapeOf(nowhere, "none", yield* open(place))
})

const make = (place: Place.Place): Effect.Effect<Shape, Failure, Scope.Scope> =>
  place._tag === "Server"
    ? shapeOf(place.url, place.token, paced(globalThis.fetch))
    : ofDatabase(place)

/** The API, and what is known of its answers. */
export class Api extends Context.Service<Api, Shape>()("@tenure/cli/Api") {
  static readonly layer = Layer.effect(Api, Effect.flatMap(Place.find, make))
}

/** Calls an operation. */
export const call = <A>(
  operation: (client: Client, options: CallOptions) => Promise<A>,
): Effect.Effect<A, Failure, Api> =>
  Effect.flatMap(Api, ({ client }) =>
    Effect.tryPromise({
      try: (signal) => operation(client, { signal }),
      catch: ofCall,
    }),
  )

/** Requests a paged list, page after page. */
export const listed = <A>(operation: (client: Client) => List<A>): Stream.Stream<A, Failure, Api> =>
  Stream.unwrap(
    Effect.map(Api, ({ client }) => Stream.fromAsyncIterable(operation(client), ofCall)),
  )
