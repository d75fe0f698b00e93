/** The API, at a server or in this process on a database: every command is written once. */

import { type CallOptions, type Client, createClient } from "@tenure/client"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Failure, ofCall } from "../Failure.ts"
import { paced } from "./pace.ts"
import * as Place from "./Place.ts"

/** Sends a request, as `fetch` does. */
type Fetch = typeof globalThis.fetch

// Whoever waits for a command learns soon that a server is down. Long work tries again by itself.
const maxRetries = 2

const clientOf = (baseUrl: string, token: string, fetch: Fetch) =>
  Effect.try({
    try: () => createClient({ baseUrl, token, fetch, maxRetries }),
    catch: ofCall,
  })

// Never resolved: requests do not leave the process.
const nowhere = "http://tenure.invalid"

const ofDatabase = Effect.fnUntraced(function* (place: Place.Database) {
  const { open } = yield* Effect.promise(() => import("./inProcess.ts"))
  return yield* clientOf(nowhere, "none", yield* open(place))
})

const make = (place: Place.Place): Effect.Effect<Client, Failure, Scope.Scope> =>
  place._tag === "Server"
    ? clientOf(place.url, place.token, paced(globalThis.fetch))
    : ofDatabase(place)

/** The client of the API. */
export class Api extends Context.Service<Api, Client>()("@tenure/cli/Api") {
  static readonly layer = Layer.effect(Api, Effect.flatMap(Place.find, make))
}

/** Calls an operation. */
export const call = <A>(
  operation: (client: Client, options: CallOptions) => Promise<A>,
): Effect.Effect<A, Failure, Api> =>
  Effect.flatMap(Api, (client) =>
    Effect.tryPromise({
      try: (signal) => operation(client, { signal }),
      catch: ofCall,
    }),
  )
